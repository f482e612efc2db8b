"""The five phases as one chain."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import AddableDict, ConfigurableFieldSpec, get_unique_config_specs
from pydantic import BaseModel, Field, SkipValidation

from langchain_lara.budget import LatencyBudget
from langchain_lara.documents import originals
from langchain_lara.gate import ThresholdGate
from langchain_lara.inputs import PassagesInput, asked
from langchain_lara.limits import Model
from langchain_lara.retriever import HybridRetriever
from langchain_lara.router import QuestionShapeRouter
from langchain_lara.state import query_clock, query_state
from langchain_lara.traced import RunManager, TracedRunnable
from lara_plugins import (
    Calibration,
    InvalidArgument,
    LatencyModel,
    Limits,
    QueryState,
    QuestionParser,
    Scorer,
)
from lara_plugins.budget import latency_model
from lara_plugins.gate import DEFAULT_SCORER, DEFAULT_THETA
from lara_plugins.question import DEFAULT_LIMITS, load_parser

Values: TypeAlias = dict[str, Any]
"""A chain's input (``input`` is the question; other keys reach retriever and prompts) or output."""


class ChainInputSchema(BaseModel):
    """A question."""

    input: Annotated[str, Field(description="the question")]


class ChainOutputSchema(BaseModel):
    """An answered question."""

    input: Annotated[str, Field(description="the question")]
    context: Annotated[list[Document], Field(description="the documents that [n] in the answer cites")]
    answer: Annotated[str, Field(description="the answer, or why there is none")]
    lara: Annotated[dict[str, Any], Field(description="what was decided at each phase, and why")]


@dataclass(frozen=True, slots=True)
class _Work:
    """One query when its documents are chosen.

    Args:
        state: the query's state.
        shown: the chain's output so far; its context holds the best documents seen where none is sent.
        to_answer: the router's input.
    """

    state: QueryState
    shown: Values
    to_answer: PassagesInput

    @classmethod
    def of(cls, given: Values, run: RunManager, sent: list[Document]) -> _Work:
        state = query_state(run.run_id, "route", given["input"])
        sources = sent or originals(state.best, state.originals)
        shown = {**given, "context": sources}
        return cls(state, shown, {**shown, "context": sent, "sources": sources})


class LaraChain(TracedRunnable[Values, Values]):
    """Retrieves, gates, budgets, routes and answers; see ``lara_chain``.

    Args:
        retriever: finds the candidates.
        gate: keeps those that are relevant.
        budget: cuts them to the time that is left.
        router: answers over the rest.
    """

    name: str | None = "lara_chain"
    retriever: SkipValidation[Runnable[Any, list[Document]]]
    gate: SkipValidation[ThresholdGate]
    budget: SkipValidation[LatencyBudget]
    router: SkipValidation[QuestionShapeRouter]

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        parts = (self.retriever, self.gate, self.budget, self.router)
        return get_unique_config_specs(spec for part in parts for spec in part.config_specs)

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return ChainInputSchema

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return ChainOutputSchema

    def _run(self, given: Values, run: RunManager, config: RunnableConfig) -> Values:
        work = _Work.of(given, run, self._sent(given, run, config))
        answer = self.router.invoke(work.to_answer, config)
        return {**work.shown, "answer": answer, "lara": work.state.trace.to_dict()}

    async def _arun(self, given: Values, run: RunManager, config: RunnableConfig) -> Values:
        work = _Work.of(given, run, await self._asent(given, run, config))
        answer = await self.router.ainvoke(work.to_answer, config)
        return {**work.shown, "answer": answer, "lara": work.state.trace.to_dict()}

    def _run_stream(self, given: Values, run: RunManager, config: RunnableConfig) -> Iterator[Values]:
        asked(given)
        yield AddableDict(given)
        work = _Work.of(given, run, self._sent(given, run, config))
        yield AddableDict(context=work.shown["context"])
        for text in self.router.stream(work.to_answer, config):
            yield AddableDict(answer=text)
        yield AddableDict(lara=work.state.trace.to_dict())

    async def _arun_stream(
        self, given: Values, run: RunManager, config: RunnableConfig
    ) -> AsyncGenerator[Values, None]:
        asked(given)
        yield AddableDict(given)
        work = _Work.of(given, run, await self._asent(given, run, config))
        yield AddableDict(context=work.shown["context"])
        async with aclosing(self.router.astream(work.to_answer, config)) as texts:
            async for text in texts:
                yield AddableDict(answer=text)
        yield AddableDict(lara=work.state.trace.to_dict())

    def _sent(self, inputs: Values, run: RunManager, config: RunnableConfig) -> list[Document]:
        found = self.retriever.invoke(self._to_retrieve(inputs, run), config)
        self._tell_latency(inputs, run)
        kept = self.gate.invoke({"input": inputs["input"], "context": found}, config)
        return self.budget.invoke({"input": inputs["input"], "context": kept}, config)

    async def _asent(self, inputs: Values, run: RunManager, config: RunnableConfig) -> list[Document]:
        found = await self.retriever.ainvoke(self._to_retrieve(inputs, run), config)
        self._tell_latency(inputs, run)
        kept = await self.gate.ainvoke({"input": inputs["input"], "context": found}, config)
        return await self.budget.ainvoke({"input": inputs["input"], "context": kept}, config)

    def _tell_latency(self, inputs: Values, run: RunManager) -> None:
        """Tell the gate what answering will take."""
        query_state(run.run_id, "retrieval", inputs["input"]).latency = latency_model(self.budget.latency)

    def _to_retrieve(self, inputs: Values, run: RunManager) -> object:
        question = asked(inputs)
        query_clock(run.run_id).allow(self.budget.afford)  # a retriever may ask an LLM, too
        return question if isinstance(self.retriever, BaseRetriever) else inputs


def lara_chain(
    retriever: Runnable[Any, list[Document]],
    llm: Model,
    afford: float = 4.0,
    scorer: str | Scorer = DEFAULT_SCORER,
    *,
    theta: float | Calibration = DEFAULT_THETA,
    latency: float | LatencyModel | None = None,
    at_once: int = 1,
    parser: QuestionParser | None = None,
    limits: Limits = DEFAULT_LIMITS,
    escalate: bool = False,
) -> Runnable[Values, Values]:
    """The five phases over a retriever: ``{input}`` -> ``{input, context, answer, lara}``.

    ``[n]`` in the answer cites ``context[n - 1]``; where nothing was sent, the context holds the
    best documents seen. ``lara`` is the trace and the typed answer as plain values. A stream's
    chunks add up to the same. Scorer, parser and a ``HybridRetriever``'s encoders are loaded here,
    so that no query pays for it.

    Rephrase a chat's follow-up before it comes here: not only the retriever, gate and router, too,
    read ``input`` as it is.

    Args:
        retriever: finds the candidates, 50 to 200 of them; a retriever is given the question, any
            other runnable the whole input.
        llm: a chat model, a text model, or either under ``bind``, ``with_config`` or ``with_retry``.
        afford: seconds that a query may take.
        scorer: a scorer or its name; ``"embedded"`` needs no download.
        theta: the gate's threshold, or a ``Calibration`` of this scorer.
        latency: a latency model, such as ``observe_latency(llm)``, the seconds of one passage, or
            None for 0.1 s a passage.
        at_once: calls that the model takes at once; above 1, windows may be read at once.
        parser: reads the question's shape; by default that of the package's lexicons.
        limits: the routing table, budget exits of the sequential regime included.
        escalate: where no document alone gave a complete answer, ask once over all of them.

    Raises:
        InvalidArgument: an argument is out of its range, no retriever or no model, or the scorer is unknown.
        CalibrationMismatch: ``theta`` was calibrated on another scorer.
        MissingExtra: what the scorer needs is not installed.
    """
    if not isinstance(retriever, Runnable):
        raise InvalidArgument("retriever", retriever, "give a retriever, or a RunnableLambda(function)")
    router = QuestionShapeRouter(
        llm, latency=latency, at_once=at_once, parser=parser, limits=limits, escalate=escalate
    )
    gate = ThresholdGate(scorer=scorer, theta=theta, afford=afford)
    gate.load()
    load_parser()
    if isinstance(retriever, HybridRetriever):
        retriever.load()
    budget = LatencyBudget(afford=afford, latency=latency)
    return LaraChain(retriever=retriever, gate=gate, budget=budget, router=router)
