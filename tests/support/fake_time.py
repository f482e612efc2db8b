"""A clock for tests: time passes when they say so."""

from __future__ import annotations


class FakeTime:
    """A monotonic clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds
