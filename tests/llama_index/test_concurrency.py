"""Many queries at once give what they give one by one."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms import LLM
from llama_index_lara import HybridRetriever, QuestionShapeQueryEngine, lara_query_engine
from support_traces import facts, lara
from towers import COMPARISON, LOOKUP, UNANSWERABLE

from lara_plugins import EmbeddedIndex
from lara_plugins.query import current_state

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


def outcome(response: RESPONSE_TYPE) -> dict[str, object]:
    """All that must not depend on what else is running."""
    trace = lara(response)
    return {
        "answer": str(response),
        "typed": trace["answer"],
        "sources": [node.node_id for node in response.source_nodes],
        "scores": [round(node.score or 0.0, 4) for node in response.source_nodes],
        "phases": [phase["phase"] for phase in trace["phases"]],
        "regime": [phase["regime"] for phase in trace["phases"] if phase["phase"] == "route"],
        "calls": facts(response, "answer")["calls"],
        "clock": trace["clock"],
        "notes": trace["notes"],
    }


@pytest.fixture(params=["vector store", "hybrid"])
def engine(
    request: pytest.FixtureRequest, index: VectorStoreIndex, hybrid: EmbeddedIndex, llm: LLM
) -> QuestionShapeQueryEngine:
    retriever = (
        index.as_retriever(similarity_top_k=50)
        if request.param == "vector store"
        else HybridRetriever(hybrid, limit=12)
    )
    return lara_query_engine(retriever, llm, afford=600.0, scorer="embedded")


async def test_fifty_async_queries_at_once(engine: QuestionShapeQueryEngine) -> None:
    one_by_one = [outcome(await engine.aquery(question)) for question in QUESTIONS]
    at_once = await asyncio.gather(*(engine.aquery(question) for question in QUESTIONS))
    assert [outcome(response) for response in at_once] == one_by_one
    assert {tuple(each["regime"]) for each in one_by_one} == {("sequential",), ("batch",), ()}  # type: ignore[arg-type]


def test_queries_from_eight_threads(engine: QuestionShapeQueryEngine) -> None:
    def ask(question: str) -> dict[str, object]:
        answered = outcome(engine.query(question))
        assert current_state() is None, "a query leaves no state behind in its thread"
        return answered

    one_by_one = [ask(question) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, QUESTIONS)) == one_by_one


async def test_async_is_sync(engine: QuestionShapeQueryEngine) -> None:
    for question in QUESTIONS[:10]:
        assert outcome(await engine.aquery(question)) == outcome(engine.query(question))
