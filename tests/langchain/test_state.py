"""Where a query begins: the time already spent counts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
)
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    chain,
)
from langchain_core.tools import tool
from langchain_lara import HybridRetriever, LatencyBudget, ThresholdGate
from langchain_parts import (
    WHOLE_QUERY,
    Decisions,
    StateRecorder,
    WatchedRetriever,
    gated_query,
    nothing,
    phases,
    spend,
)
from towers import LISTING, LOOKUP

from lara_plugins import EmbeddedIndex, QueryClock


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_retrieval_time_counts_against_the_budget(kind: str, recorder: StateRecorder) -> None:
    query = gated_query(WatchedRetriever(during=spend(0.2)), recorder)
    decisions = Decisions()
    if kind == "sync":
        query.invoke({"input": LOOKUP}, {"callbacks": [decisions]})
    else:
        await query.ainvoke({"input": LOOKUP}, {"callbacks": [decisions]})
    [state] = recorder.states
    assert decisions.facts("budget")["time_left"] <= 59.8
    assert state.trace.clock == "chain start"
    assert phases(state) == WHOLE_QUERY
    retrieval = state.trace.last("retrieval")
    assert retrieval is not None
    assert retrieval.facts["found"] == 12
    assert retrieval.seconds >= 0.2
    assert state.closed


def test_an_explicit_clock_comes_first(recorder: StateRecorder) -> None:
    now = [100.0]
    decisions = Decisions()
    with QueryClock(afford=10.0, now=lambda: now[0]):
        now[0] = 104.0
        gated_query(WatchedRetriever(during=nothing), recorder).invoke(
            {"input": LOOKUP}, {"callbacks": [decisions]}
        )
    assert recorder.states[0].trace.clock == "explicit clock"
    assert decisions.facts("budget")["time_left"] == 6.0


def test_an_explicit_clock_comes_before_a_tool_run(recorder: StateRecorder) -> None:
    asking = gated_query(WatchedRetriever(during=nothing), recorder).as_tool(name="t", description="d")
    with QueryClock(afford=10.0) as clock:
        asking.invoke({"input": LOOKUP})
    assert recorder.states[0].clock is clock


def by_hand(retriever: BaseRetriever, question: str, recorder: StateRecorder) -> None:
    """Each part called by itself."""
    documents = retriever.invoke(question)
    documents = ThresholdGate(scorer="embedded").invoke({"input": question, "context": documents})
    documents = LatencyBudget(afford=60.0).invoke({"input": question, "context": documents})
    recorder.invoke({"input": question, "context": documents})


def test_parts_called_by_hand_say_what_they_cannot_know(
    hybrid: EmbeddedIndex, recorder: StateRecorder
) -> None:
    by_hand(HybridRetriever(hybrid), LOOKUP, recorder)
    [state] = recorder.states
    assert state.trace.clock == "own start"
    assert any("QueryClock" in note for note in state.trace.notes)
    assert phases(state) == ["answer"]


def test_parts_called_by_hand_share_an_explicit_clock_and_each_turn_its_own_trace(
    hybrid: EmbeddedIndex, recorder: StateRecorder
) -> None:
    with QueryClock(60.0) as clock:
        for question in (LOOKUP, LISTING, LOOKUP):
            by_hand(HybridRetriever(hybrid), question, recorder)
    assert [phases(state) for state in recorder.states] == [WHOLE_QUERY] * 3
    assert all(state.clock is clock for state in recorder.states)
    assert not [
        note for state in recorder.states for note in state.trace.notes if "no query was seen" in note
    ]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_tool_run_starts_its_own_clock_and_query(kind: str, recorder: StateRecorder) -> None:
    inner = StateRecorder()
    asking = gated_query(WatchedRetriever(during=nothing), inner).as_tool(name="t", description="d")

    @chain
    def turn(given: dict[str, Any]) -> dict[str, Any]:
        spend(0.05)(LOOKUP)
        asking.invoke(given)
        asking.invoke(given)
        return given

    @chain
    async def aturn(given: dict[str, Any]) -> dict[str, Any]:
        spend(0.05)(LOOKUP)
        await asyncio.gather(asking.ainvoke(given), asking.ainvoke(given))
        return given

    if kind == "sync":
        (turn | gated_query(WatchedRetriever(during=nothing), recorder)).invoke({"input": LOOKUP})
    else:
        await (aturn | gated_query(WatchedRetriever(during=nothing), recorder)).ainvoke({"input": LOOKUP})
    [outer], (one, two) = recorder.states, inner.states
    assert outer.trace.clock == "chain start"
    assert one.trace.clock == two.trace.clock == "tool run"
    assert one.clock is not two.clock
    assert one.clock.started - outer.clock.started >= 0.05
    assert phases(one) == phases(two) == phases(outer) == WHOLE_QUERY


def test_a_tool_as_a_tool(recorder: StateRecorder) -> None:
    """A function that is a tool and calls a chain: the tool's start counts, not the chain's."""
    query = gated_query(WatchedRetriever(during=nothing), recorder)

    @tool
    def ask(question: str) -> str:
        """Ask."""
        spend(0.05)(question)
        query.invoke({"input": question})
        return "done"

    ask.invoke({"question": LOOKUP})
    [state] = recorder.states
    assert state.trace.clock == "tool run"
    assert state.clock.elapsed() >= 0.05


def test_a_retriever_alone_starts_the_query(hybrid: EmbeddedIndex) -> None:
    recorder = StateRecorder(part="budget")

    class Last(ThresholdGate):
        """Looks at the state where a budget would."""

        def compress_documents(
            self, documents: Sequence[Document], query: str, callbacks: Callbacks = None
        ) -> list[Document]:
            recorder.invoke({"input": query}, {"callbacks": callbacks})
            return list(documents)

    pipeline = DocumentCompressorPipeline(
        transformers=[ThresholdGate(scorer="embedded"), Last(scorer="embedded")]
    )
    ContextualCompressionRetriever(
        base_retriever=WatchedRetriever(during=nothing), base_compressor=pipeline
    ).invoke(LOOKUP)
    [state] = recorder.states
    assert state.trace.clock == "retrieval start"
    assert phases(state) == ["retrieval", "gate", "budget"]


def test_a_part_made_in_the_middle_of_a_chain_starts_at_itself() -> None:
    code = """
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import _configure_hooks
before = len(_configure_hooks)
import langchain_lara
assert len(_configure_hooks) == before, "the import installs nothing"
made = []
def late(question):
    gate = langchain_lara.ThresholdGate(scorer="embedded")
    made.append(gate.invoke({"input": question, "context": []}))
RunnableLambda(late).invoke("q")
langchain_lara.LatencyBudget()
assert made == [[]]
assert len(_configure_hooks) == before + 1, "one handler a process"
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own code
