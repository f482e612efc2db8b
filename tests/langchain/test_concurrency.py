"""Many queries at once give what they give one by one."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_lara import HybridRetriever, LatencyBudget, ThresholdGate
from langchain_parts import StateRecorder
from towers import COMPARISON, LOOKUP, UNANSWERABLE

from lara_plugins import EmbeddedIndex

QUESTIONS = [
    LOOKUP,
    "Which towers were completed?",
    UNANSWERABLE,
    "When was Tokyo Tower completed?",
    COMPARISON,
    "Who built the Eiffel Tower?",
    "What is the capital of France?",
    "Why does the Tower of Pisa lean?",
    "How many hours of sun do tomatoes need?",
    "Compare the heights of the CN Tower and Ostankino Tower.",
] * 5
GIVEN = [{"input": question} for question in QUESTIONS]

Query = Runnable[dict[str, Any], dict[str, Any]]


def outcome(output: dict[str, Any]) -> dict[str, object]:
    """All that must not depend on what else is running."""
    state = output["state"]
    return {
        "kept": [
            (document.id, round(document.metadata["relevance_score"], 4)) for document in output["context"]
        ],
        "phases": [(phase.name, phase.facts.get("sent")) for phase in state.trace.phases],
        "reason": state.trace.last("gate").reason,
        "empty": state.empty_reason,
        "best": [passage.id for passage in state.best],
        "clock": state.trace.clock,
        "notes": state.trace.notes,
        "asked": state.trace.last("answer").reason,
    }


@pytest.fixture(params=["vector store", "hybrid"])
def query(request: pytest.FixtureRequest, retriever: BaseRetriever, hybrid: EmbeddedIndex) -> Query:
    chosen = retriever if request.param == "vector store" else HybridRetriever(hybrid, limit=12)
    return (
        RunnablePassthrough.assign(context=itemgetter("input") | chosen)
        .assign(context=ThresholdGate(scorer="embedded"))
        .assign(context=LatencyBudget(afford=600.0))
        | StateRecorder()
    )


async def test_fifty_async_queries_at_once(query: Query) -> None:
    one_by_one = [outcome(await query.ainvoke(given)) for given in GIVEN]
    at_once = await asyncio.gather(*(query.ainvoke(given) for given in GIVEN))
    assert [outcome(output) for output in at_once] == one_by_one
    assert [outcome(output) for output in await query.abatch(GIVEN)] == one_by_one
    under_one_root = await query.map().ainvoke(GIVEN)
    assert [outcome(output) for output in under_one_root] == one_by_one


def test_queries_from_eight_threads(query: Query) -> None:
    one_by_one = [outcome(query.invoke(given)) for given in GIVEN]
    with ThreadPoolExecutor(8) as threads:
        assert [outcome(output) for output in threads.map(query.invoke, GIVEN)] == one_by_one
    assert [outcome(output) for output in query.batch(GIVEN)] == one_by_one


async def test_async_is_sync(query: Query) -> None:
    for given in GIVEN[:10]:
        assert outcome(await query.ainvoke(given)) == outcome(query.invoke(given))
