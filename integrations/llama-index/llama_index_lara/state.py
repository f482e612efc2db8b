"""Where a LlamaIndex query begins, and the state that all of its parts share.

Handlers on the root dispatcher see every query, retrieval and tool run start in the very context
in which it runs. They open one ``QueryState`` and leave it in a context variable; the object is
changed in place, so that what a worker thread writes into it is seen by all.

Which start counts, first that applies: an explicit ``QueryClock``, the innermost tool run, the
outermost query, the retrieval (chat engines announce no query), the plug-in itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.query import QueryStartEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.tools.types import BaseTool

from lara_plugins import QueryState, Trace
from lara_plugins.query import EXPLICIT_CLOCK, current_state, say_start_unseen, set_current_state
from llama_index_lara.spans import SpanWatch

MOST_OPEN_SPANS = 10_000
"""Spans that are remembered; one that never ends is forgotten when so many have come after it."""


def query_state() -> QueryState:
    """The state of the query that runs in this context; a new one where none was announced."""
    state = current_state()
    if state is None:
        state = QueryState()
        say_start_unseen(state)
    return state


def install() -> None:
    """Put the handlers on the root dispatcher, once a process."""
    with _starts.lock:
        if not _starts.installed:
            root = get_dispatcher()
            root.add_span_handler(_Spans())
            root.add_event_handler(_Events())
            _starts.installed = True


@dataclass(slots=True, eq=False)
class _Opened:
    """A state that is open, the one that it hides, and the span with which it closes."""

    state: QueryState
    hidden: QueryState | None
    owner: str


class _Starts:
    """The open spans, the states that they opened, and the retrievals that run in them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.installed = False
        self._parents: OrderedDict[str, str | None] = OrderedDict()
        self._opened: dict[str, _Opened] = {}
        self._retrievals: dict[str, float] = {}

    def enter(self, span: str, parent: str | None, instance: object) -> None:
        with self.lock:
            self._parents[span] = parent
            if len(self._parents) > MOST_OPEN_SPANS:
                self.leave(next(iter(self._parents)))
        if isinstance(instance, BaseTool):
            outer = current_state()
            explicit = outer is not None and outer.trace.clock == EXPLICIT_CLOCK
            self._open(span, "tool run", outer if explicit else None)

    def leave(self, span: str) -> None:
        """A span has ended or was dropped: its state closes and the one that it hid is back."""
        with self.lock:
            self._parents.pop(span, None)
            self._retrievals.pop(span, None)
            opened = self._opened.pop(span, None)
        if opened is not None:
            if current_state() is opened.state:
                set_current_state(opened.hidden)
            opened.state.closed = True

    def query_started(self, span: str) -> None:
        # The outer query's clock counts, but each query has a trace and passages of its own.
        self._open(span, "query start", current_state())

    def retrieval_started(self, span: str) -> None:
        with self.lock:
            root = self._root(span)
            nested = any(self._within(span, other) for other in self._retrievals)
            if not nested:
                earlier = self._opened.get(root)
        if nested:
            return
        state = current_state()
        if state is not None and state.trace.phases and self._by_hand(state):
            # One clock over several turns by hand: each has a trace and passages of its own.
            state = QueryState(clock=state.clock, trace=Trace(clock=EXPLICIT_CLOCK))
            set_current_state(state)
        if state is None or (earlier is not None and earlier.state is state and _from_retrieval(state)):
            # Under one root, as in an agent's turn, each retrieval begins a query of its own.
            self._open(root, "retrieval start", None)
            state = current_state()
        if state is not None:
            with self.lock:
                self._retrievals[span] = state.clock.now()

    def retrieval_ended(self, span: str, found: int) -> None:
        with self.lock:
            started = self._retrievals.pop(span, None)
        state = current_state()
        if started is not None and state is not None and state.trace.last("retrieval") is None:
            seconds = state.clock.now() - started
            state.trace.record("retrieval", f"{found} passages were retrieved", seconds, found=found)

    def _open(self, span: str, clock: str, outer: QueryState | None) -> None:
        hidden = current_state()
        trace = Trace(clock=clock if outer is None else outer.trace.clock)
        state = QueryState(trace=trace) if outer is None else QueryState(clock=outer.clock, trace=trace)
        with self.lock:
            earlier = self._opened.get(span)
            if earlier is not None:
                earlier.state.closed = True
                hidden = earlier.hidden
            self._opened[span] = _Opened(state, hidden, span)
        set_current_state(state)

    def _by_hand(self, state: QueryState) -> bool:
        """Whether it is the state of a clock that the user has entered, and of no span."""
        with self.lock:
            opened = any(one.state is state for one in self._opened.values())
        return state.trace.clock == EXPLICIT_CLOCK and not opened

    def _root(self, span: str) -> str:
        while (parent := self._parents.get(span)) is not None and parent in self._parents:
            span = parent
        return span

    def _within(self, span: str, ancestor: str) -> bool:
        here: str | None = span
        while here is not None and here != ancestor:
            here = self._parents.get(here)
        return here is not None


def _from_retrieval(state: QueryState) -> bool:
    return state.trace.clock == "retrieval start"


_starts = _Starts()


class _Events(BaseEventHandler):
    """Tells the starts of queries and retrievals."""

    @classmethod
    def class_name(cls) -> str:
        return "LaraEvents"

    def handle(self, event: BaseEvent, **kwargs: object) -> None:
        span = event.span_id or ""
        if isinstance(event, QueryStartEvent):
            _starts.query_started(span)
        elif isinstance(event, RetrievalStartEvent):
            _starts.retrieval_started(span)
        elif isinstance(event, RetrievalEndEvent):
            _starts.retrieval_ended(span, len(event.nodes))


class _Spans(SpanWatch):
    """Tells the spans as they open and close."""

    @classmethod
    def class_name(cls) -> str:
        return "LaraSpans"

    def entered(self, span: str, parent: str | None, instance: object) -> None:
        _starts.enter(span, parent, instance)

    def left(self, span: str, failed: bool) -> None:
        _starts.leave(span)
