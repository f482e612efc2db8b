"""One query's deadline, trace and passages, shared by every part that serves it."""

from __future__ import annotations

import contextvars
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from lara_plugins.arguments import check_seconds
from lara_plugins.budget import LatencyModel
from lara_plugins.passages import Passage, Score
from lara_plugins.trace import Trace

_logger = logging.getLogger(__name__)

EXPLICIT_CLOCK = "explicit clock"


def check_afford(afford: float) -> None:
    """Refuse what is not a positive, finite number of seconds."""
    check_seconds("afford", afford, "give the seconds the caller can wait, such as 4.0")


class QueryClock:
    """When a query began and until when it may run.

    Used as a context manager it becomes the clock of every query inside, whatever the
    framework's own events say::

        with QueryClock(afford=4.0):
            engine.query("...")

    Args:
        afford: seconds that the query may take, or None for no deadline.
        started: when it began, as ``now()`` tells it; by default this moment.
        now: a monotonic clock, in seconds.

    Raises:
        InvalidArgument: ``afford`` is not a positive number of seconds.
    """

    def __init__(
        self,
        afford: float | None = None,
        started: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = now
        self.started = now() if started is None else started
        self.queries: list[object] = []
        """What a framework's plug-ins remember of the queries that run under this clock."""
        self._afford: float | None = None
        self._entered: list[contextvars.Token[QueryState | None]] = []
        if afford is not None:
            self.allow(afford)

    @property
    def afford(self) -> float | None:
        """Seconds that the query may take; None while nobody has set a deadline."""
        return self._afford

    def allow(self, afford: float) -> None:
        """Open the deadline, or move it earlier; of several, the strictest counts."""
        check_afford(afford)
        self._afford = afford if self._afford is None else min(self._afford, afford)

    def elapsed(self) -> float:
        """Seconds since the query began; a clock that goes backwards has not moved."""
        return max(0.0, self.now() - self.started)

    def time_left(self) -> float:
        """Seconds until the deadline, negative once it has passed, infinite without one."""
        return math.inf if self._afford is None else self._afford - self.elapsed()

    def __enter__(self) -> QueryClock:
        state = QueryState(clock=self, trace=Trace(clock=EXPLICIT_CLOCK))
        self._entered.append(_current.set(state))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _current.reset(self._entered.pop())


@dataclass(slots=True, eq=False)
class QueryState:
    """What the parts of LARA tell each other about one query.

    It is one mutable object, so that what a worker thread writes into it is seen by all.

    Attributes:
        clock: start and deadline.
        trace: the decisions so far.
        candidates: how many passages came into the gate.
        best: the best passages seen, kept or not, best first: the sources of an abstention.
        originals: the framework's own objects behind the passages, by passage id.
        scores: the scores of the passages that were kept, by passage id.
        empty_reason: why no passage is left, where none is, and what can be done about it.
        latency: the latency model of the query's budget, for whoever asks afterwards.
        over_budget: ids of passages that are sent although they do not fit the budget.
        closed: set when the query has ended; a closed state is not found any more.
    """

    clock: QueryClock = field(default_factory=QueryClock)
    trace: Trace = field(default_factory=Trace)
    candidates: int = 0
    best: tuple[Passage, ...] = ()
    originals: dict[str, object] = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    empty_reason: str | None = None
    latency: LatencyModel | None = None
    over_budget: frozenset[str] = frozenset()
    closed: bool = False

    def leave_empty(self, reason: str, remedy: str) -> None:
        """Say why no passage is left and what can be done about it, here and in the log."""
        self.empty_reason = f"{reason} (remedy: {remedy})"
        _logger.info("nothing is sent: %s", self.empty_reason)


def say_start_unseen(state: QueryState) -> None:
    """Note in a state's trace that it begins with the part that asked for it, and what that means."""
    state.trace.note(
        "no query was seen to start, so what came before is not charged to the budget and not told "
        "to what follows: wrap the calls in `with QueryClock(seconds):`"
    )


_current: contextvars.ContextVar[QueryState | None] = contextvars.ContextVar("lara_query_state", default=None)


def current_state() -> QueryState | None:
    """The state of the query that is running in this context, or None."""
    state = _current.get()
    return None if state is None or state.closed else state


def set_current_state(state: QueryState | None) -> None:
    """Make ``state`` the one that ``current_state`` finds in this context."""
    _current.set(state)


Listener = Callable[[QueryState], None]

_listeners: list[Listener] = []


def add_listener(listener: Listener) -> None:
    """Call ``listener`` with the state of every query that has been answered in this process."""
    _listeners.append(listener)


def tell_listeners(state: QueryState) -> None:
    """A query has been answered."""
    for listener in _listeners:
        listener(state)
