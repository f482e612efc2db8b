"""Where a query ends: what has ended, failed or was cancelled leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import langchain_lara.queries
import langchain_lara.state
import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnablePassthrough,
)
from langchain_core.tools import create_retriever_tool
from langchain_lara import ThresholdGate
from langchain_lara.state import open_runs
from langchain_parts import (
    WHOLE_QUERY,
    StateRecorder,
    WatchedRetriever,
    gated_query,
    nothing,
    phases,
)
from towers import LISTING, LOOKUP

from lara_plugins import CallableScorer, QueryClock


def test_a_stream_keeps_the_state_it_was_made_with(recorder: StateRecorder) -> None:
    query = gated_query(WatchedRetriever(during=nothing), recorder)
    first, second = query.stream({"input": LOOKUP}), query.stream({"input": LISTING})
    [one], [two] = [next(first)["state"]], [next(second)["state"]]
    assert phases(one) == phases(two) == WHOLE_QUERY
    assert one is not two
    assert not one.closed
    assert not list(first)
    assert one.closed
    assert not two.closed
    second.close()  # type: ignore[attr-defined]  # it is a generator


async def test_a_stream_that_is_left_leaves_nothing_behind(recorder: StateRecorder) -> None:
    query = gated_query(WatchedRetriever(during=nothing), recorder)
    stream = query.astream({"input": LOOKUP})
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
    del stream
    await asyncio.get_running_loop().shutdown_asyncgens()  # where the framework leaves the inner ones
    assert open_runs() == 0


def fail(question: str) -> None:
    raise ConnectionError("no index")


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("host", ["chain", "retriever", "tool"])
async def test_a_query_that_fails_leaves_nothing_behind(
    host: str, kind: str, recorder: StateRecorder
) -> None:
    retriever = WatchedRetriever(during=fail)
    hosts: dict[str, tuple[Runnable[Any, Any], object]] = {
        "chain": (gated_query(retriever, recorder), {"input": LOOKUP}),
        "retriever": (retriever, LOOKUP),
        "tool": (create_retriever_tool(retriever, "t", "d"), {"query": LOOKUP}),
    }
    runnable, given = hosts[host]
    ThresholdGate(scorer="embedded")
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await runnable.ainvoke(given) if kind == "async" else runnable.invoke(given)
        assert open_runs() == 0


@pytest.mark.parametrize("host", ["chain", "retriever", "tool", "tool in a chain"])
async def test_a_cancelled_query_leaves_nothing_behind(host: str, recorder: StateRecorder) -> None:
    """A cancelled tool or retriever announces no end at all."""
    entered = asyncio.Event()

    class Waiting(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            return []

        async def _aget_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            entered.set()
            await asyncio.Event().wait()
            return []

    asking = create_retriever_tool(Waiting(), "t", "d")
    hosts: dict[str, tuple[Runnable[Any, Any], object]] = {
        "chain": (gated_query(Waiting(), recorder), {"input": LOOKUP}),
        "retriever": (Waiting(), LOOKUP),
        "tool": (asking, {"query": LOOKUP}),
        "tool in a chain": (RunnablePassthrough() | asking, {"query": LOOKUP}),
    }
    runnable, given = hosts[host]
    ThresholdGate(scorer="embedded")
    task = asyncio.create_task(runnable.ainvoke(given))
    await entered.wait()
    assert open_runs() > 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert open_runs() == 0


@pytest.mark.parametrize("consumed", range(8))
async def test_events_that_nobody_waits_for_leave_nothing_behind(
    consumed: int, recorder: StateRecorder
) -> None:
    """Cancelled before its first step, a chain announces no end either."""
    query = gated_query(WatchedRetriever(during=nothing), recorder)
    events = query.astream_events({"input": LOOKUP}, version="v2")
    for _ in range(consumed):
        await anext(events)
    await events.aclose()  # type: ignore[attr-defined]  # it is a generator
    cancelled = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*cancelled, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()  # where the framework leaves the inner ones
    assert open_runs() == 0


async def test_a_stream_outlives_the_task_that_began_it(recorder: StateRecorder) -> None:
    parts = gated_query(WatchedRetriever(during=nothing), recorder).astream({"input": LOOKUP})

    async def next_part() -> dict[str, Any] | None:
        return await anext(parts, None)

    while await asyncio.create_task(next_part()) is not None:
        pass
    assert phases(recorder.states[0]) == WHOLE_QUERY
    assert open_runs() == 0


async def test_a_query_cancelled_while_it_scores_leaves_nothing_behind() -> None:
    entered, free = threading.Event(), threading.Event()

    def slow(query: str, texts: object) -> list[float]:
        entered.set()
        free.wait(10)
        return [0.9]

    gate = ThresholdGate(scorer=CallableScorer(slow, "probability"))
    task = asyncio.create_task(gate.ainvoke({"input": LOOKUP, "context": [Document("A tower.")]}))
    await asyncio.to_thread(entered.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert open_runs() == 0
    free.set()


async def test_a_long_lived_task_gathers_nothing() -> None:
    retriever = WatchedRetriever(during=nothing)
    ThresholdGate(scorer="embedded")
    task = asyncio.current_task()
    before = len(getattr(task, "_callbacks", None) or ())
    for _ in range(5):
        await retriever.ainvoke(LOOKUP)
    assert len(getattr(task, "_callbacks", None) or ()) == before


def test_what_never_ends_is_forgotten(monkeypatch: pytest.MonkeyPatch, recorder: StateRecorder) -> None:
    monkeypatch.setattr(langchain_lara.state, "MOST_OPEN_RUNS", 20)
    query = gated_query(WatchedRetriever(during=nothing), recorder)
    managers = [
        CallbackManager.configure().on_retriever_start({}, LOOKUP, run_id=uuid4()) for _ in range(100)
    ]
    assert open_runs() <= 20
    query.invoke({"input": LOOKUP})
    assert phases(recorder.states[0]) == WHOLE_QUERY
    for manager in managers:
        manager.on_retriever_end([])


def test_many_queries_under_one_clock_are_not_all_kept(
    monkeypatch: pytest.MonkeyPatch, recorder: StateRecorder
) -> None:
    monkeypatch.setattr(langchain_lara.queries, "MOST_QUERIES", 3)
    with QueryClock(60.0) as clock:
        for _ in range(9):
            WatchedRetriever(during=nothing).invoke(LOOKUP)
            recorder.invoke({"input": LOOKUP})
    assert len(clock.queries) == 3
