"""Retrieval: the plan for the index's size, and the candidates that it finds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lara_plugins.gate import checked_question
from lara_plugins.phases.hyde import HypothesisWriter, arun_hyde, run_hyde
from lara_plugins.phases.usual import usual_seconds
from lara_plugins.query import QueryState
from lara_plugins.retrieval import Filter, HybridIndex, Match, RetrievalPlan, SearchSettings, retrieval_plan

_DEFAULTS = SearchSettings()


def run_retrieval(
    state: QueryState,
    question: str,
    index: HybridIndex,
    settings: SearchSettings = _DEFAULTS,
    hyde: HypothesisWriter | None = None,
) -> list[Match]:
    """Find the candidates, best first, as the plan for the index's size says.

    Args:
        state: the query's state.
        question: the user's question.
        index: where passages are found, in the namespace that the settings name.
        settings: what is given in place of the plan's, and the filter.
        hyde: writes a hypothetical answer that is embedded densely in place of the question.

    Raises:
        InvalidArgument: the question is empty.
    """
    began = state.clock.now()
    search = _planned(question, index, settings, hyde is not None)
    hypothesis = run_hyde(state, question, hyde) if hyde is not None and search.embeds else None
    matches = (
        index.search(
            question,
            limit=search.limit,
            alpha=search.plan.alpha,
            dense_text=hypothesis,
            filter=search.filter,
        )
        if search.size
        else []
    )
    return _retrieved(state, search, matches, state.clock.now() - began)


async def arun_retrieval(
    state: QueryState,
    question: str,
    index: HybridIndex,
    settings: SearchSettings = _DEFAULTS,
    hyde: HypothesisWriter | None = None,
) -> list[Match]:
    """As ``run_retrieval``, without blocking the event loop."""
    began = state.clock.now()
    # Counting asks the index, which may wait for a lock or a network.
    search = await asyncio.to_thread(_planned, question, index, settings, hyde is not None)
    hypothesis = await arun_hyde(state, question, hyde) if hyde is not None and search.embeds else None
    matches = (
        await index.asearch(
            question,
            limit=search.limit,
            alpha=search.plan.alpha,
            dense_text=hypothesis,
            filter=search.filter,
        )
        if search.size
        else []
    )
    return _retrieved(state, search, matches, state.clock.now() - began)


@dataclass(frozen=True, slots=True)
class _Search:
    size: int
    limit: int
    plan: RetrievalPlan
    filter: Filter | None
    where: str
    index: str
    hyde: bool

    @property
    def kind(self) -> tuple[object, ...]:
        """What searches have in common that take about as long: the index's kind and size, and how."""
        return "retrieval", self.index, self.size.bit_length(), self.limit, bool(self.filter), self.hyde

    @property
    def embeds(self) -> bool:
        """Whether the dense half counts, so that another text for it makes a difference."""
        return self.size > 0 and self.plan.alpha > 0


def _planned(question: str, index: HybridIndex, settings: SearchSettings, hyde: bool) -> _Search:
    checked_question(question)
    size = index.count()
    plan = retrieval_plan(
        size,
        alpha=settings.alpha,
        top_k=settings.top_k,
        pool=settings.pool,
        alpha_ceiling=index.alpha_ceiling,
        alpha_floor=index.alpha_floor,
    )
    limit = plan.pool_size if settings.limit is None else settings.limit
    where = "the index" if settings.namespace is None else f"the namespace {settings.namespace!r}"
    kind = f"{type(index).__qualname__}/{index.fingerprint}"
    return _Search(size, limit, plan, settings.filter, where, kind, hyde)


def _retrieved(state: QueryState, search: _Search, matches: list[Match], seconds: float) -> list[Match]:
    state.trace.record(
        "retrieval",
        search.plan.reason if search.size else f"{search.where} holds no passage",
        seconds,
        corpus=search.size,
        found=len(matches),
        limit=search.limit,
        alpha=search.plan.alpha,
        filtered=bool(search.filter),
        predicted=usual_seconds.at_most(search.kind),
    )
    if search.size:
        usual_seconds.took(search.kind, seconds)
    if matches:
        return matches
    if search.size and search.filter:
        state.leave_empty("no passage passes the filter", "widen the filter")
    else:
        reason = "no passage was found" if search.size else f"{search.where} holds no passage"
        state.leave_empty(reason, "ingest documents that hold the answer")
    return matches
