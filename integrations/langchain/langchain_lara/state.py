"""Where a LangChain query begins, and the state that all of its parts share.

A callback handler that every runnable inherits sees the runs of chains, tools and retrievers
start and end, and remembers the open ones with their parents. A plug-in asks with its own run's
id, and is given the one ``QueryState`` of the query that this run belongs to.

Which start counts, first that applies: an explicit ``QueryClock``, the innermost tool run (an
agent's root run is the whole turn), the root run, the plug-in's own. All that runs under one start
shares its clock, and so its deadline.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.tracers.context import register_configure_hook

from langchain_lara.queries import RANK, Part, Query, queries_of, remembered, waiting_query
from lara_plugins import QueryClock, QueryState, Trace
from lara_plugins.query import EXPLICIT_CLOCK, current_state, say_start_unseen

MOST_OPEN_RUNS = 10_000
"""Runs that are remembered; with one more, the oldest and all that runs under its root is forgotten."""

_OWN_START = "own start"

Kind = Literal["chain", "tool", "retriever"]


def query_state(run_id: UUID, part: Part, question: str) -> QueryState:
    """The state of the query that this run belongs to; a new one where it begins a query.

    Args:
        run_id: the plug-in's own run (``run_manager.run_id``).
        part: what the plug-in does in the query.
        question: the question as the plug-in was given it.
    """
    return _starts.state(run_id, part, question)


def query_clock(run_id: UUID) -> QueryClock:
    """The clock that counts for what runs inside this run."""
    return _starts.clock(run_id)


def install() -> None:
    """Let every runnable inherit the handler, once a process."""
    with _starts.lock:
        if not _starts.installed:
            register_configure_hook(_handler, inheritable=True)
            _starts.installed = True


def open_runs() -> int:
    """How many runs are remembered at this moment."""
    with _starts.lock:
        return len(_starts.runs)


@dataclass(slots=True, eq=False)
class _Run:
    """An open run.

    Attributes:
        clock: the clock of all that runs under it, where it is a start that counts.
        query: the query that it is a part of, where it is one.
        retrieval_began: when a retrieval began on the query's clock, until something tells of it.
        members: the open runs under a root.
        unwatch: takes back the watch over a root's task.
    """

    id: UUID
    kind: Kind
    parent: _Run | None
    started: float
    clock: QueryClock | None = None
    query: Query | None = None
    retrieval_began: float | None = None
    members: set[UUID] = field(default_factory=set)
    unwatch: Callable[[], object] | None = None

    def path(self) -> list[_Run]:
        """This run and those around it, out to the start that counts."""
        path = [self]
        while path[-1].kind != "tool" and path[-1].parent is not None:
            path.append(path[-1].parent)
        return path

    def path_ids(self) -> list[UUID]:
        return [run.id for run in self.path()]

    @property
    def root(self) -> _Run:
        run = self
        while run.parent is not None:
            run = run.parent
        return run


class _Starts:
    """The open runs and the queries in them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.installed = False
        self.runs: dict[UUID, _Run] = {}

    def enter(self, run_id: UUID, parent_id: UUID | None, kind: Kind) -> _Run:
        with self.lock:
            parent = self.runs.get(parent_id) if parent_id is not None else None
            run = self.runs[run_id] = _Run(run_id, kind, parent, time.monotonic())
            run.root.members.add(run_id)
            if parent is None:
                run.unwatch = self._forget_with_task(run)
            if len(self.runs) > MOST_OPEN_RUNS:
                self._close(next(iter(self.runs.values())).root)
            return run

    def leave(self, run_id: UUID) -> None:
        with self.lock:
            run = self.runs.pop(run_id, None)
            if run is None:
                return
            run.root.members.discard(run_id)
            if run.query is not None:
                run.query.running.discard(run_id)
            if run.clock is not None:
                _close_queries(run.clock)
            if run.parent is None:
                self._close(run)

    def retrieval_started(self, run_id: UUID, parent_id: UUID | None, question: str) -> None:
        with self.lock:
            run = self.enter(run_id, parent_id, "retriever")
            inside = _inside(run)
            query = inside or self._begin(run, "retrieval", question)
            for around in run.path()[1:]:
                around.retrieval_began = None  # what runs inside tells of it
            _take_part(run, query)
            run.retrieval_began = query.state.clock.now()

    def retrieval_ended(self, run_id: UUID, found: int) -> None:
        with self.lock:
            run = self.runs.get(run_id)
            if run is not None and run.query is not None and run.retrieval_began is not None:
                state = run.query.state
                seconds = state.clock.now() - run.retrieval_began
                state.trace.record("retrieval", f"{found} passages were retrieved", seconds, found=found)
        self.leave(run_id)

    def state(self, run_id: UUID, part: Part, question: str) -> QueryState:
        with self.lock:
            run = self.runs.get(run_id)
            if run is None:
                state = QueryState()
                say_start_unseen(state)
                return state
            clock, _ = self._clock(run)
            waiting = _inside(run) or waiting_query(clock, run.path_ids(), part, question)
            query = waiting or self._begin(run, part, question)
            query.reached = max(query.reached, RANK[part])
            query.questions.add(question)
            _take_part(run, query)
            for around in run.path():
                around.retrieval_began = None  # the plug-in tells what was retrieved
            return query.state

    def clock(self, run_id: UUID) -> QueryClock:
        with self.lock:
            run = self.runs.get(run_id)
            return QueryClock() if run is None else self._clock(run)[0]

    def _begin(self, run: _Run, part: Part, question: str) -> Query:
        clock, name = self._clock(run)
        query = Query(QueryState(clock=clock, trace=Trace(clock=name)), {question}, RANK[part])
        if name == _OWN_START:
            say_start_unseen(query.state)
        return remembered(query)

    def _clock(self, run: _Run) -> tuple[QueryClock, str]:
        """The clock that counts for a run, and which start it counts from."""
        explicit = current_state()
        if explicit is not None and explicit.trace.clock == EXPLICIT_CLOCK:
            return explicit.clock, EXPLICIT_CLOCK
        start = run.path()[-1]
        if start.clock is None:
            start.clock = QueryClock(started=start.started)
        if start.kind == "tool":
            return start.clock, "tool run"
        if start.kind == "retriever":
            return start.clock, "retrieval start"
        return start.clock, _OWN_START if start is run else "chain start"

    def _close(self, root: _Run) -> None:
        """A root has ended or is forgotten, and all that ran under it with it."""
        if root.unwatch is not None:
            root.unwatch()
        for member in [root.id, *root.members]:
            run = self.runs.pop(member, None)
            if run is not None and run.clock is not None:
                _close_queries(run.clock)

    def _forget_with_task(self, root: _Run) -> Callable[[], object] | None:
        """A cancelled tool or retriever announces no end, so its task's end is watched.

        Nor does a chain that is cancelled before its first step. Its stream, though, may go on
        after the task that began it.
        """
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no event loop runs in this thread
            return None
        if task is None:
            return None

        def done(task: asyncio.Task[Any]) -> None:
            if root.kind != "chain" or task.cancelled():
                self.leave(root.id)

        task.add_done_callback(done)
        return lambda: task.remove_done_callback(done)


_starts = _Starts()


def _close_queries(clock: QueryClock) -> None:
    for query in queries_of(clock):
        query.state.closed = True


def _inside(run: _Run) -> Query | None:
    """The query of the part in which a run runs, or of the run itself."""
    return next((around.query for around in run.path() if around.query is not None), None)


def _take_part(run: _Run, query: Query) -> None:
    run.query = query
    query.take_part(run.path_ids())


class _Handler(BaseCallbackHandler):
    """Tells the starts and ends of chains, tools and retrievers; keeps nothing of what they carry."""

    run_inline = True  # in an async application too: it takes no time, and the order counts
    ignore_llm = True
    ignore_chat_model = True

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: object,
    ) -> None:
        _starts.enter(run_id, parent_run_id, "chain")

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: object,
    ) -> None:
        _starts.enter(run_id, parent_run_id, "tool")

    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: object,
    ) -> None:
        _starts.retrieval_started(run_id, parent_run_id, query)

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **kwargs: object) -> None:
        _starts.retrieval_ended(run_id, len(documents))

    def _on_end(self, *outcome: object, run_id: UUID, **kwargs: object) -> None:
        _starts.leave(run_id)

    on_chain_end = on_chain_error = on_tool_end = on_tool_error = on_retriever_error = _on_end


_SEES_ALL = _Handler()
# The handler is the variable's default: one that is set in one thread is not seen in another.
_handler: ContextVar[BaseCallbackHandler | None] = ContextVar("lara_starts", default=_SEES_ALL)
