"""Where a query begins: the time already spent counts, with no clock for the user to thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index_lara import (
    LatencyBudget,
    QuestionShapeQueryEngine,
    RefineInThrees,
    ThresholdGate,
    lara_query_engine,
)
from llama_index_lara.state import query_state
from pydantic import PrivateAttr
from support_traces import facts, lara
from towers import LOOKUP, UNANSWERABLE

from lara_plugins import QueryClock, QueryState
from lara_plugins.query import current_state


class Watching(BaseRetriever):
    """Another retriever, with a call while it runs."""

    def __init__(self, inner: BaseRetriever, during: Callable[[], object]) -> None:
        super().__init__()
        self.inner, self.during = inner, during

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.during()
        return self.inner.retrieve(query_bundle)


class Recorder(BaseNodePostprocessor):
    """Keeps the state that each postprocessing run finds."""

    _states: list[QueryState] = PrivateAttr(default_factory=list)

    @property
    def states(self) -> list[QueryState]:
        return self._states

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.states.append(query_state())
        return nodes


@pytest.fixture
def retriever(index: VectorStoreIndex) -> BaseRetriever:
    return index.as_retriever(similarity_top_k=50)


def engine_over(retriever: BaseRetriever, llm: LLM, *more: BaseNodePostprocessor) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(
        retriever,
        llm=llm,
        node_postprocessors=[ThresholdGate(scorer="embedded"), *more, LatencyBudget(afford=60.0)],
        response_synthesizer=RefineInThrees(llm),
    )


def spend(seconds: float) -> Callable[[], None]:
    """Busy for at least so long on the monotonic clock."""

    def wait() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    return wait


def test_retrieval_time_counts_against_the_budget(retriever: BaseRetriever, llm: LLM) -> None:
    slow = engine_over(Watching(retriever, spend(0.2)), llm)
    response = slow.query(LOOKUP)
    assert facts(response, "budget")["time_left"] <= 59.8
    assert lara(response)["clock"] == "query start"


async def test_retrieval_time_counts_in_async_too(retriever: BaseRetriever, llm: LLM) -> None:
    response = await engine_over(Watching(retriever, spend(0.2)), llm).aquery(LOOKUP)
    assert facts(response, "budget")["time_left"] <= 59.8


def test_an_explicit_clock_comes_first(retriever: BaseRetriever, llm: LLM) -> None:
    now = [100.0]
    with QueryClock(afford=10.0, now=lambda: now[0]) as clock:
        now[0] = 104.0
        response = engine_over(retriever, llm).query(LOOKUP)
    assert lara(response)["clock"] == "explicit clock"
    assert facts(response, "budget")["time_left"] == 6.0
    assert clock.afford == 10.0
    assert current_state() is None


def test_a_query_without_events_starts_at_the_plug_in(index: VectorStoreIndex) -> None:
    recorder = Recorder()
    recorder.postprocess_nodes([], query_str="q")
    assert recorder.states[0].trace.clock == "own start"


def test_a_chat_turn_starts_at_its_retrieval_and_ends_with_the_turn(retriever: BaseRetriever) -> None:
    recorder = Recorder()
    chat = ContextChatEngine.from_defaults(
        retriever=Watching(retriever, spend(0.1)),
        llm=MockLLM(),
        memory=ChatMemoryBuffer.from_defaults(llm=MockLLM()),
        node_postprocessors=[recorder],
    )
    for _ in range(2):
        chat.chat(LOOKUP)
        assert current_state() is None
    first, second = recorder.states
    assert first.trace.clock == second.trace.clock == "retrieval start"
    assert first is not second
    assert first.closed
    assert second.clock.started - first.clock.started >= 0.1


def test_nested_queries_share_the_outer_clock_and_have_their_own_trace(
    retriever: BaseRetriever, llm: LLM
) -> None:
    inner_states, outer_states = Recorder(), Recorder()
    inner = engine_over(retriever, llm, inner_states)

    class Nesting(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            inner.query(query_bundle)
            inner.query(query_bundle)
            return retriever.retrieve(query_bundle)

    engine_over(Nesting(), llm, outer_states).query(LOOKUP)
    [outer], (one, two) = outer_states.states, inner_states.states
    assert one.clock is two.clock is outer.clock
    assert len({id(state.trace) for state in (outer, one, two)}) == 3
    assert outer.trace.clock == "query start"


def test_a_tool_run_starts_its_own_clock(retriever: BaseRetriever, llm: LLM) -> None:
    inner_states, outer_states = Recorder(), Recorder()
    tool = QueryEngineTool.from_defaults(engine_over(retriever, llm, inner_states), name="t", description="t")
    wrapped = FunctionTool.from_defaults(lambda question: str(tool.call(question)), name="w", description="w")

    class Agent(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            spend(0.05)()
            wrapped.call(query_bundle.query_str)
            return retriever.retrieve(query_bundle)

    engine_over(Agent(), llm, outer_states).query(LOOKUP)
    [inner], [outer] = inner_states.states, outer_states.states
    assert inner.trace.clock == "tool run"
    assert outer.trace.clock == "query start"
    assert inner.clock.started - outer.clock.started >= 0.05


def test_each_retrieval_of_one_agent_turn_is_a_query_of_its_own(retriever: BaseRetriever) -> None:
    recorder = Recorder()
    chat = ContextChatEngine.from_defaults(
        retriever=retriever,
        llm=MockLLM(),
        memory=ChatMemoryBuffer.from_defaults(llm=MockLLM()),
        node_postprocessors=[recorder],
    )

    class Turn(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return []

    Turn().retrieve("before")
    for _ in range(2):
        nodes = retriever.retrieve(LOOKUP)
        recorder.postprocess_nodes(nodes, query_str=LOOKUP)
    chat.chat(LOOKUP)
    assert len({id(state) for state in recorder.states}) == 3


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_query_that_fails_leaves_nothing_behind(
    kind: str, retriever: BaseRetriever, llm: LLM
) -> None:
    def fail() -> None:
        raise ConnectionError("no index")

    engine = engine_over(Watching(retriever, fail), llm)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await engine.aquery(LOOKUP) if kind == "async" else engine.query(LOOKUP)
        assert current_state() is None
    response = engine_over(retriever, llm).query(LOOKUP)
    assert facts(response, "budget")["time_left"] > 59.0


async def test_concurrent_queries_have_states_of_their_own(retriever: BaseRetriever, llm: LLM) -> None:
    recorder = Recorder()
    engine = engine_over(retriever, llm, recorder)
    await asyncio.gather(*(engine.aquery(LOOKUP) for _ in range(8)))
    assert len({id(state) for state in recorder.states}) == 8
    threads = [threading.Thread(target=engine.query, args=(LOOKUP,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(state) for state in recorder.states}) == 12
    assert all(state.closed for state in recorder.states)


async def test_what_a_worker_thread_writes_is_seen_by_the_synthesizer(
    retriever: BaseRetriever, llm: LLM
) -> None:
    response = await engine_over(retriever, llm).aquery(LOOKUP)
    assert [phase["phase"] for phase in lara(response)["phases"]] == ["retrieval", "gate", "budget", "answer"]


def test_a_stream_keeps_the_state_it_was_made_with(retriever: BaseRetriever, llm: LLM) -> None:
    engine = lara_query_engine(retriever, llm, afford=60.0, scorer="embedded", streaming=True)
    first, second = engine.query(LOOKUP), engine.query("How tall is Blackpool Tower?")
    assert current_state() is None
    second_text, first_text = str(second), str(first)
    assert "330" in first_text
    assert "158" in second_text
    for response in (first, second):
        assert [phase["phase"] for phase in lara(response)["phases"]].count("answer") == 1


def test_an_unused_state_is_not_kept(retriever: BaseRetriever, llm: LLM) -> None:
    node = NodeWithScore(node=TextNode(text="x"))
    ThresholdGate(scorer="embedded", on_empty="abstain").postprocess_nodes([node], query_str="q")
    assert current_state() is None


def by_hand(retriever: BaseRetriever, llm: LLM, question: str) -> dict[str, Any]:
    """Retrieve, gate, budget and answer without an engine."""
    nodes = retriever.retrieve(question)
    nodes = ThresholdGate(scorer="embedded").postprocess_nodes(nodes, query_str=question)
    nodes = LatencyBudget(afford=60.0).postprocess_nodes(nodes, query_str=question)
    return lara(RefineInThrees(llm).synthesize(question, nodes))


def test_parts_called_by_hand_share_an_explicit_clock_and_each_turn_its_own_trace(
    retriever: BaseRetriever, llm: LLM
) -> None:
    with QueryClock(60.0):
        turns = [by_hand(retriever, llm, LOOKUP), by_hand(retriever, llm, UNANSWERABLE)]
    for trace in turns:
        assert [phase["phase"] for phase in trace["phases"]] == ["retrieval", "gate", "budget", "answer"]
        assert trace["clock"] == "explicit clock"
        assert not trace["notes"] or "no query was seen" not in " ".join(trace["notes"])
    assert turns[0]["answer"]["answer_found"]
    assert not turns[1]["answer"]["answer_found"]


def test_parts_called_by_hand_without_a_clock_say_what_they_cannot_know(
    retriever: BaseRetriever, llm: LLM
) -> None:
    assert any("QueryClock" in note for note in by_hand(retriever, llm, LOOKUP)["notes"])


def test_a_part_that_adds_nodes_after_the_gate_is_served(retriever: BaseRetriever, llm: LLM) -> None:
    class Adding(BaseNodePostprocessor):
        def _postprocess_nodes(
            self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
        ) -> list[NodeWithScore]:
            return [*nodes, NodeWithScore(node=TextNode(text="Another tower is 12 metres tall."))]

    parts = [ThresholdGate(scorer="embedded"), Adding(), LatencyBudget(afford=60.0)]
    response = QuestionShapeQueryEngine(retriever, llm, parts).query(LOOKUP)
    assert "330" in str(response)


def test_a_part_that_takes_all_nodes_after_the_gate_is_named(retriever: BaseRetriever, llm: LLM) -> None:
    parts = [ThresholdGate(scorer="embedded"), SimilarityPostprocessor(similarity_cutoff=1.1)]
    response = QuestionShapeQueryEngine(retriever, llm, parts).query(LOOKUP)
    assert "none was left after it" in str(response)
