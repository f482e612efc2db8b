"""From the starts and ends of calls, as a framework tells them, to what a latency model learns.

A framework's handler is thin: it says when a call began, when a piece of a streamed reply came,
and how the call ended. What must not be learned from is known here:

* a call that never ends, such as a stream that is dropped unread, is forgotten after a while;
* a stream may be read slowly, which inflates its time: one teaches only where its reader says,
  through ``prompt_reader``, that it reads promptly, and was seldom elsewhere;
* a call that failed or was cut teaches only that it took too long, where it did.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lara_plugins.budget.latency import LatencyModel
from lara_plugins.budget.observations import Observation

MOST_PENDING = 1_000
EXPIRES_AFTER = 600.0
MOST_ELSEWHERE = 0.05
"""Share of a stream's time that its reader may spend elsewhere."""

BRIEFLY_ELSEWHERE = 0.1
"""Seconds that it may spend elsewhere, however short the stream."""


class PromptReader:
    """Someone who reads a stream as it comes, and tells when it was not reading."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds_elsewhere = 0.0
        self._now = now

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """The reader hands a piece on and waits until it is wanted again."""
        left = self._now()
        try:
            yield
        finally:
            self.seconds_elsewhere += self._now() - left


_reader: contextvars.ContextVar[PromptReader | None] = contextvars.ContextVar("lara_reader", default=None)


@contextmanager
def prompt_reader() -> Iterator[PromptReader]:
    """Whoever starts a stream in here reads it promptly."""
    reader = PromptReader()
    token = _reader.set(reader)
    try:
        yield reader
    finally:
        _reader.reset(token)


@dataclass(slots=True)
class _Pending:
    latency: LatencyModel
    input_tokens: int
    began: float
    reader: PromptReader | None
    first_token: float | None = None


class CallWatch:
    """The calls that are under way, and what their ends teach.

    Args:
        now: a monotonic clock, in seconds.
        most: calls that are remembered; the oldest is forgotten for one more.
        expires: seconds after which a call without an end is forgotten.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        most: int = MOST_PENDING,
        expires: float = EXPIRES_AFTER,
    ) -> None:
        self._now, self._most, self._expires = now, most, expires
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, call: object) -> bool:
        return call in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def began(self, call: str, latency: LatencyModel, input_tokens: int) -> None:
        """A call began.

        Args:
            call: what the framework calls it; unique in the process.
            latency: the model of its LLM.
            input_tokens: tokens of the whole prompt.
        """
        now = self._now()
        with self._lock:
            self._pending[call] = _Pending(latency, input_tokens, now, _reader.get())
            while len(self._pending) > self._most or self._oldest_began() < now - self._expires:
                self._pending.popitem(last=False)

    def brought(self, call: str) -> None:
        """A piece of its streamed reply came."""
        pending = self._pending.get(call)
        if pending is not None and pending.first_token is None:
            pending.first_token = self._now() - pending.began

    def ended(self, call: str, output_tokens: int | None = None) -> None:
        """It ended with a whole reply of so many tokens."""
        self._close(call, output_tokens, cut=False)

    def failed(self, call: str) -> None:
        """It was given up or ended with an error."""
        self._close(call, None, cut=True)

    def _close(self, call: str, output_tokens: int | None, *, cut: bool) -> None:
        with self._lock:
            pending = self._pending.pop(call, None)
        if pending is None:
            return
        seconds = max(0.0, self._now() - pending.began)
        if pending.first_token is not None:
            reader = pending.reader
            allowed = max(BRIEFLY_ELSEWHERE, MOST_ELSEWHERE * seconds)
            if reader is None or reader.seconds_elsewhere > allowed:
                return
        first = None if pending.first_token is None else min(max(0.0, pending.first_token), seconds)
        pending.latency.observe(Observation(pending.input_tokens, seconds, first, output_tokens, cut))

    def _oldest_began(self) -> float:
        return next(iter(self._pending.values())).began
