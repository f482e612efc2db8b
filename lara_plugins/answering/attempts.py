"""The time that a client of HTTP gets for each attempt at one call.

Clients such as OpenAI's try again by themselves, each time with the timeout that the call was
given. A timeout of this kind looks at the clock before every attempt: none lasts longer than the
deadline, and none begins after it.

What a client waits between two attempts is its own: sync, the abandoned thread of a call sleeps on
until then, as long as a Retry-After says, and counts as a call that is left running. Where threads
matter more than retries within the deadline, give the client ``max_retries=0``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import httpx

from lara_plugins.answering.deadline import DeadlinePassed

Limits: TypeAlias = tuple[float | None, float | None, float | None, float | None]
"""Seconds for the connection, for reading, for writing, and for a free connection."""

GRACE = 0.1
"""Seconds after the deadline at which an attempt ends, so that the client's own error, which it may
take as a reason to try again, never comes before the deadline."""


class UntilDeadline(httpx.Timeout):
    """The timeout of a call that is of no use after a deadline.

    It prints the same for every call, so that caches which are asked by a call's arguments find it.

    Args:
        seconds: until the deadline, from now.
        own: the timeout that the client has without it; the shorter one counts.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        seconds: float,
        own: float | Limits | httpx.Timeout | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        # The four limits of the base are not set: they are what is left whenever somebody asks.
        self._until, self._own, self._now = now() + max(0.0, seconds) + GRACE, httpx.Timeout(own), now

    def _left(self, own: float | None) -> float:
        left = self._until - self._now()
        if left <= 0.0:
            raise DeadlinePassed
        return left if own is None else min(left, own)

    @property
    def connect(self) -> float:  # type: ignore[override]
        """Seconds for the connection."""
        return self._left(self._own.connect)

    @property
    def read(self) -> float:  # type: ignore[override]
        """Seconds for the next bytes of the reply."""
        return self._left(self._own.read)

    @property
    def write(self) -> float:  # type: ignore[override]
        """Seconds for the next bytes of the request."""
        return self._left(self._own.write)

    @property
    def pool(self) -> float:  # type: ignore[override]
        """Seconds for a free connection."""
        return self._left(self._own.pool)

    def __repr__(self) -> str:
        return "UntilDeadline()"
