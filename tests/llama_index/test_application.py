"""An existing LlamaIndex application, with three lines changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from llama_index_lara import LatencyBudget, RefineInThrees, ThresholdGate, lara_query_engine
from support_traces import facts, lara
from towers import LISTING, LOOKUP, UNANSWERABLE


class First(BaseSelector):
    """Selects the first choice, whatever the question."""

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """There is none."""

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=0, reason="it is the first")])

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


def application(index: VectorStoreIndex, llm: LLM) -> RetrieverQueryEngine:
    engine = index.as_query_engine(
        llm=llm,
        similarity_top_k=50,
        node_postprocessors=[ThresholdGate(scorer="embedded"), LatencyBudget(afford=30.0)],
        response_synthesizer=RefineInThrees(llm),
    )
    assert isinstance(engine, RetrieverQueryEngine)
    return engine


def test_three_changed_lines(index: VectorStoreIndex, llm: LLM) -> None:
    response = application(index, llm).query(LOOKUP)
    assert "330" in str(response)
    assert "[1]" in str(response)
    assert response.source_nodes[0].node.node_id == "p0"
    trace = lara(response)
    assert [phase["phase"] for phase in trace["phases"]] == ["retrieval", "gate", "budget", "answer"]
    assert trace["clock"] == "query start"
    assert facts(response, "gate")["candidates"] == 12
    assert (
        facts(response, "answer")["citations"]["1"][0]["quote"] in response.source_nodes[0].node.get_content()
    )


async def test_three_changed_lines_async(index: VectorStoreIndex, llm: LLM) -> None:
    response = await application(index, llm).aquery(LOOKUP)
    assert str(response) == str(application(index, llm).query(LOOKUP))
    assert facts(response, "gate") == facts(application(index, llm).query(LOOKUP), "gate")


def test_an_unanswerable_question_says_why_and_asks_nothing(index: VectorStoreIndex, llm: LLM) -> None:
    response = application(index, llm).query(UNANSWERABLE)
    assert "No answer" in str(response)
    assert "theta 0.3" in str(response)
    assert "remedy" in str(response)
    assert facts(response, "answer")["calls"] == 0
    assert len(response.source_nodes) == 3


def test_a_stock_synthesizer_after_an_empty_gate(
    index: VectorStoreIndex, llm: LLM, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="lara_plugins")
    engine = index.as_query_engine(
        llm=llm, similarity_top_k=50, node_postprocessors=[ThresholdGate(scorer="embedded")]
    )
    assert str(engine.query(UNANSWERABLE)) == "Empty Response"
    assert "reaches theta 0.3" in caplog.text
    assert UNANSWERABLE not in caplog.text


def test_a_stock_synthesizer_takes_what_the_gate_keeps(index: VectorStoreIndex, llm: LLM) -> None:
    engine = index.as_query_engine(
        llm=llm, similarity_top_k=50, node_postprocessors=[ThresholdGate(scorer="embedded")]
    )
    assert "330" in str(engine.query(LOOKUP))


@pytest.mark.parametrize(
    ("chat_engine", "turns"), [(ContextChatEngine, 2), (CondensePlusContextChatEngine, 1)]
)
def test_a_chat_engine(index: VectorStoreIndex, chat_engine: type[ContextChatEngine], turns: int) -> None:
    budget = LatencyBudget(afford=30.0)
    chat = chat_engine.from_defaults(
        retriever=index.as_retriever(similarity_top_k=50),
        llm=MockLLM(),
        memory=ChatMemoryBuffer.from_defaults(llm=MockLLM()),
        node_postprocessors=[ThresholdGate(scorer="embedded"), budget],
    )
    for _ in range(turns):
        response = chat.chat(LOOKUP)
        assert [node.node.node_id for node in response.source_nodes][:1] == ["p0"]
        assert len(response.source_nodes) < 12


def test_a_router_query_engine(index: VectorStoreIndex, llm: LLM) -> None:
    retriever = index.as_retriever(similarity_top_k=50)
    tools = [
        QueryEngineTool.from_defaults(
            lara_query_engine(retriever, llm, afford=30.0, scorer="embedded"), name=name, description=name
        )
        for name in ("towers", "cities")
    ]

    router = RouterQueryEngine(First(), tools, llm=llm)
    response = router.query(LOOKUP)
    assert "330" in str(response)
    assert lara(response)["clock"] == "query start"
    assert facts(response, "budget")["time_left"] < 30.0


def test_a_lookup_and_a_listing_are_answered_by_different_regimes(index: VectorStoreIndex, llm: LLM) -> None:
    engine = lara_query_engine(index.as_retriever(similarity_top_k=50), llm, afford=30.0, scorer="embedded")
    lookup, listing = engine.query(LOOKUP), engine.query(LISTING)
    assert facts(lookup, "route")["regime"] == "sequential"
    assert facts(listing, "route")["regime"] == "batch"
    assert "330" in str(lookup)
