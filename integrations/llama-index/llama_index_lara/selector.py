"""The shape of the question as a LlamaIndex selector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import BaseComponent, QueryBundle
from llama_index.core.tools.types import ToolMetadata
from pydantic import ConfigDict, Field, SkipValidation

from lara_plugins import InvalidArgument, NotSerializable, QueryState, QuestionParser
from lara_plugins.gate import checked_question
from lara_plugins.phases import run_route
from lara_plugins.query import current_state
from llama_index_lara.events import announce
from llama_index_lara.state import install

Lane = Literal["sequential", "batch"]


class QuestionShapeSelector(BaseSelector, BaseComponent):
    """Chooses one of two tools by the shape of the question, with no LLM.

    It drops into LlamaIndex's ``RouterQueryEngine`` and ``RouterRetriever``::

        RouterQueryEngine(
            selector=QuestionShapeSelector(choices={"sequential": "lookup", "batch": "overview"}),
            query_engine_tools=[lookup, overview],
            llm=llm,
        )

    It runs before anything is retrieved, so the shape alone decides: a question that one value
    answers takes ``sequential``, every other one ``batch``. ``refine`` is batch in windows, for
    passages that do not fit one call, and counts as ``batch``.

    Args:
        choices: the name of the tool for ``sequential``, and for ``batch``.
        parser: reads the question's shape; by default that of the package's lexicons.

    Raises:
        InvalidArgument: ``choices`` does not name a tool for each of the two.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    choices: dict[Lane, str]
    parser: SkipValidation[QuestionParser | None] = Field(default=None, exclude=True)

    def __init__(
        self, choices: Mapping[Lane, str], *, parser: QuestionParser | None = None, **saved: object
    ) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        if not isinstance(choices, Mapping) or set(choices) != set(get_args(Lane)):
            raise InvalidArgument("choices", choices, 'name a tool for "sequential" and one for "batch"')
        if not all(isinstance(name, str) and name for name in choices.values()):
            raise InvalidArgument("choices", choices, "name tools by their metadata's name")
        super().__init__(choices=dict(choices), parser=parser, **saved)  # type: ignore[call-arg]
        install()

    @classmethod
    def class_name(cls) -> str:
        return "LaraQuestionShapeSelector"

    def to_dict(self, **kwargs: object) -> dict[str, object]:
        if self.parser is not None:
            raise NotSerializable(
                "a parser of one's own has no name and cannot be saved: "
                "save the selector without it, or pickle it"
            )
        return super().to_dict(**kwargs)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """It prompts nobody."""

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        places = self._places(choices)
        state = current_state() or QueryState()
        _, route = run_route(state, checked_question(query.query_str), (), self.parser)
        announce(state, "route")
        lane: Lane = "sequential" if route.regime == "sequential" else "batch"
        return SelectorResult(selections=[SingleSelection(index=places[lane], reason=route.reason)])

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)

    def _places(self, choices: Sequence[ToolMetadata]) -> dict[Lane, int]:
        """Where among the tools those of ``choices`` stand.

        Raises:
            InvalidArgument: one is missing, or two have its name.
        """
        names = [choice.name for choice in choices]
        places: dict[Lane, int] = {}
        for lane, name in self.choices.items():
            if names.count(name) != 1:
                have = ", ".join(repr(other) for other in names) or "none"
                raise InvalidArgument(
                    f"choices[{lane!r}]",
                    name,
                    f"give the name of exactly one tool; the tools given are named {have}",
                )
            places[lane] = names.index(name)
        return places
