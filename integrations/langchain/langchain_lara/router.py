"""The answer as the shape of the question asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from pydantic import SkipValidation

from langchain_lara.answerer import TypedAnswerer
from langchain_lara.limits import Model
from langchain_lara.prompts import PROMPT, REFINE_PROMPT
from lara_plugins import LatencyModel, Limits, NotSerializable, Passage, QueryState, QuestionParser
from lara_plugins.answering import Fits, Loop
from lara_plugins.phases import answer_loop
from lara_plugins.question import DEFAULT_LIMITS, limits_of


class QuestionShapeRouter(TypedAnswerer):
    """Sends single-value lookups passage by passage, listings and comparisons in one call.

    It takes ``{input, context}`` and gives the answer's text. The parse of the question is
    deterministic and asks no model; the ``lara_decision`` event of the phase ``route`` says which
    rule chose which regime.

    Args:
        llm: a chat model, a text model, or either under ``bind``, ``with_config`` or ``with_retry``.
        latency: a latency model, the seconds of one passage, or None for that of the query's
            ``LatencyBudget``, or 0.1 s a passage where it has none.
        at_once: calls that the model takes at once. Above 1, windows that do not fit the time left
            one after the other are read at once and their answers merged; 1 never does that.
        prompt: variables ``context`` and ``input``; others are taken from the chain's input.
        refine_prompt: variables ``existing_answer``, ``context`` and ``input``, and others as above.
        context_window: the model's tokens, prompt and reply together; None takes the model's own
            profile, and where it has none every prompt is taken to fit.
        parser: reads the question's shape; by default that of the package's lexicons. A router with
            a parser of one's own is pickled, and not saved.
        limits: the routing table, budget exits of the sequential regime included; it is saved as its
            plain values and made again from them.
        escalate: where no document alone gave a complete answer, ask once over all of them, if they
            look as if they answer (the gate kept them), fit one call, and the budget pays for it.
        name: its name in traces.

    Raises:
        InvalidArgument: an argument is out of its range, or a prompt leaves a variable out.
    """

    parser: SkipValidation[QuestionParser | None] = None
    limits: SkipValidation[Limits] = DEFAULT_LIMITS
    escalate: bool = False

    def __init__(
        self,
        llm: Model,
        *,
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        prompt: BasePromptTemplate[Any] = PROMPT,
        refine_prompt: BasePromptTemplate[Any] = REFINE_PROMPT,
        context_window: int | None = None,
        parser: QuestionParser | None = None,
        limits: Limits | Mapping[str, Any] = DEFAULT_LIMITS,
        escalate: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            llm,
            latency=latency,
            at_once=at_once,
            prompt=prompt,
            refine_prompt=refine_prompt,
            context_window=context_window,
            parser=parser,
            limits=limits_of(limits),
            escalate=escalate,
            name=name,
        )

    @property
    def lc_attributes(self) -> dict[str, Any]:
        if self.parser is not None:
            raise NotSerializable(
                "a parser of one's own has no name and cannot be saved: "
                "save the router without it, or pickle it"
            )
        return {**super().lc_attributes, "limits": self.limits.to_dict()}

    def _loop(self, state: QueryState, question: str, passages: Sequence[Passage], fits: Fits) -> Loop:
        return answer_loop(
            state,
            question,
            passages,
            self._latency_model(),
            fits,
            self.at_once,
            parser=self.parser,
            limits=self.limits,
            escalate=self.escalate,
        )
