"""Retrieval: the plan for the index's size, and the candidates that it finds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lara_plugins.arguments import check_count
from lara_plugins.gate import checked_question
from lara_plugins.query import QueryState
from lara_plugins.retrieval import HybridIndex, Match, RetrievalPlan, retrieval_plan


def run_retrieval(
    state: QueryState, question: str, index: HybridIndex, limit: int | None = None, alpha: float | None = None
) -> list[Match]:
    """Find the candidates, best first, as the plan for the index's size says.

    Args:
        state: the query's state.
        question: the user's question.
        index: where passages are found.
        limit: so many candidates in place of the plan's pool.
        alpha: weight of the dense half in place of the plan's.

    Raises:
        InvalidArgument: the question is empty, ``limit`` is below 1, ``alpha`` outside 0..1.
    """
    began = state.clock.now()
    search = _planned(question, index, limit, alpha)
    matches = index.search(question, limit=search.limit, alpha=search.plan.alpha) if search.size else []
    return _retrieved(state, search, matches, state.clock.now() - began)


async def arun_retrieval(
    state: QueryState, question: str, index: HybridIndex, limit: int | None = None, alpha: float | None = None
) -> list[Match]:
    """As ``run_retrieval``, without blocking the event loop."""
    began = state.clock.now()
    # Counting asks the index, which may wait for a lock or a network.
    search = await asyncio.to_thread(_planned, question, index, limit, alpha)
    matches = (
        await index.asearch(question, limit=search.limit, alpha=search.plan.alpha) if search.size else []
    )
    return _retrieved(state, search, matches, state.clock.now() - began)


@dataclass(frozen=True, slots=True)
class _Search:
    size: int
    limit: int
    plan: RetrievalPlan


def _planned(question: str, index: HybridIndex, limit: int | None, alpha: float | None) -> _Search:
    checked_question(question)
    if limit is not None:
        check_count("limit", limit, "give the most candidates to find, 1 or more, or None")
    size = index.count()
    plan = retrieval_plan(size, alpha=alpha, alpha_ceiling=index.alpha_ceiling)
    return _Search(size, plan.pool_size if limit is None else limit, plan)


def _retrieved(state: QueryState, search: _Search, matches: list[Match], seconds: float) -> list[Match]:
    state.trace.record(
        "retrieval",
        search.plan.reason if search.size else "the index holds no passage",
        seconds,
        corpus=search.size,
        found=len(matches),
        limit=search.limit,
        alpha=search.plan.alpha,
    )
    if not matches:
        reason = "no passage was found" if search.size else "the index holds no passage"
        state.leave_empty(reason, "ingest documents that hold the answer")
    return matches
