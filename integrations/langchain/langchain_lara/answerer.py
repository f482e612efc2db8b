"""Runnables that answer over documents by LARA's answering loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import ConfigurableFieldSpec
from pydantic import BaseModel, SkipValidation

from langchain_lara.documents import shown_passage
from langchain_lara.events import aannounce, announce
from langchain_lara.inputs import PassagesInput, PassagesSchema, question_and_documents, shown_sources
from langchain_lara.limits import Model, check_model
from langchain_lara.model import LangChainModel
from langchain_lara.prompts import (
    PROMPT,
    PROMPT_VARIABLES,
    REFINE_PROMPT,
    REFINE_VARIABLES,
    check_prompt,
)
from langchain_lara.state import install, query_state
from langchain_lara.traced import RunManager, TracedRunnable
from lara_plugins import Answer, LatencyModel, Passage, QueryState
from lara_plugins.answering import Fits, Loop, aanswer, answer, astream_answer, stream_answer
from lara_plugins.arguments import check_count
from lara_plugins.budget import latency_model, serializable_seconds
from lara_plugins.phases import abstention, record_answer

_AT_ONCE_REMEDY = "give the calls that the model takes at once, 1 for one after the other"


@dataclass(frozen=True, slots=True)
class _Work:
    """One query as an answerer sees it."""

    state: QueryState
    loop: Loop
    model: LangChainModel

    def finish(self, answered: Answer) -> None:
        record_answer(self.state, answered)


class TypedAnswerer(TracedRunnable[PassagesInput, str]):
    """Answers the question ``input`` over the documents ``context``, typed, verified and traced.

    ``[n]`` in the answer cites ``context[n - 1]``. Without documents no model is called, and the
    answer is the reason why there is none. A stream shows the answer's text as the model writes
    it, where the last ask decides it; what was decided before is shown in pieces at the end.
    The model's own stream is the contract's JSON, and no LangGraph message stream shows it: a node
    that streams the answer writes the pieces with ``get_stream_writer()``.

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
        **fields: a subclass's own, and ``name``.

    Raises:
        InvalidArgument: an argument is out of its range, or a prompt leaves a variable out.
    """

    llm: SkipValidation[Model]
    latency: SkipValidation[float | LatencyModel | None] = None
    at_once: int = 1
    prompt: SkipValidation[BasePromptTemplate[Any]] = PROMPT
    refine_prompt: SkipValidation[BasePromptTemplate[Any]] = REFINE_PROMPT
    context_window: int | None = None

    def __init__(
        self,
        llm: Model,
        *,
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        prompt: BasePromptTemplate[Any] = PROMPT,
        refine_prompt: BasePromptTemplate[Any] = REFINE_PROMPT,
        context_window: int | None = None,
        **fields: object,
    ) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        check_model(llm)
        check_prompt("prompt", prompt, PROMPT_VARIABLES)
        check_prompt("refine_prompt", refine_prompt, REFINE_VARIABLES)
        if latency is not None:
            latency_model(latency)
        check_count("at_once", at_once, _AT_ONCE_REMEDY)
        if context_window is not None:
            check_count("context_window", context_window, "give the model's tokens, such as 32_000, or None")
        super().__init__(  # type: ignore[call-arg]  # mypy takes it for the base's synthesised one
            llm=llm,
            latency=latency,
            at_once=at_once,
            prompt=prompt,
            refine_prompt=refine_prompt,
            context_window=context_window,
            **fields,  # type: ignore[arg-type]
        )
        install()

    @abstractmethod
    def _loop(self, state: QueryState, question: str, passages: Sequence[Passage], fits: Fits) -> Loop:
        """The loop that answers over the passages."""

    @property
    def lc_attributes(self) -> dict[str, Any]:
        return {} if self.latency is None else {"latency": serializable_seconds(self.latency)}

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return self.llm.config_specs

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return PassagesSchema

    def _run(self, given: PassagesInput, run: RunManager, config: RunnableConfig) -> str:
        work = self._work(given, run, config)
        announce(work.state, "route", config)
        answered = answer(work.loop, work.model, work.state.clock)
        work.finish(answered)
        announce(work.state, "answer", config)
        return answered.text

    async def _arun(self, given: PassagesInput, run: RunManager, config: RunnableConfig) -> str:
        work = self._work(given, run, config)
        await aannounce(work.state, "route", config)
        answered = await aanswer(work.loop, work.model, work.state.clock)
        work.finish(answered)
        await aannounce(work.state, "answer", config)
        return answered.text

    def _run_stream(self, given: PassagesInput, run: RunManager, config: RunnableConfig) -> Iterator[str]:
        work = self._work(given, run, config)
        announce(work.state, "route", config)
        yield from stream_answer(work.loop, work.model, work.state.clock, work.finish)
        announce(work.state, "answer", config)

    async def _arun_stream(
        self, given: PassagesInput, run: RunManager, config: RunnableConfig
    ) -> AsyncGenerator[str, None]:
        work = self._work(given, run, config)
        await aannounce(work.state, "route", config)
        stream = astream_answer(work.loop, work.model, work.state.clock, work.finish)
        async with aclosing(stream) as texts:
            async for text in texts:
                yield text
        await aannounce(work.state, "answer", config)

    def _latency_model(self) -> LatencyModel | None:
        return None if self.latency is None else latency_model(self.latency)

    def _work(self, inputs: PassagesInput, run: RunManager, config: RunnableConfig) -> _Work:
        question, documents = question_and_documents(inputs)
        state = query_state(run.run_id, "answer", question)
        model = LangChainModel(
            self.llm, self.prompt, self.refine_prompt, self.context_window, dict(inputs), config
        )
        if not documents:
            return _Work(state, abstention(state, len(shown_sources(inputs))), model)
        passages = [shown_passage(document) for document in documents]
        return _Work(state, self._loop(state, question, passages, model.fits(question)), model)
