"""Calls to Pinecone as values, what to do about those that fail, and the loops that make them.

The logic of searching and writing is written once, as generators that yield the calls to make and
are sent what came back. A synchronous and an asynchronous loop carry them out, over the official
SDK of any major from 7 to 10.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, TypeVar

from lara_plugins.arguments import check_count, check_seconds

Plane = Literal["dense", "sparse"]
"""Which index a call goes to; one that holds both kinds of vectors is the dense one."""

Reply: TypeAlias = Any
"""What the SDK returns: read by attribute, its types differ from major to major."""

Handle: TypeAlias = Any
"""The SDK's object for one index: ``Index`` or ``IndexAsyncio``."""

TRANSIENT = {408, 429, 500, 502, 503, 504}
"""The statuses after which the same request may succeed."""

NOT_FOUND = 404

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A method of an index, with its keyword arguments."""

    plane: Plane
    method: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Together:
    """Calls that may be made at the same time; the replies come back in their order."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """So many seconds in which nothing is done."""

    seconds: float


Step: TypeAlias = Together | Pause
Steps: TypeAlias = Generator[Step, list[Reply], T]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to keep at it, beyond what the SDK does by itself.

    Args:
        attempts: how often a request that throttling, an overload or the network stopped is made.
        first_pause: seconds before the second attempt, doubled before each further one; where
            Pinecone asks for a longer pause (``Retry-After``), that one.
        visible_within: seconds in which what was written must be found.

    Raises:
        InvalidArgument: a number is out of its range.
    """

    attempts: int = 5
    first_pause: float = 0.5
    visible_within: float = 60.0

    def __post_init__(self) -> None:
        check_count("attempts", self.attempts, "give a whole number, 1 or more")
        check_seconds("first_pause", self.first_pause, "give a positive number of seconds")
        check_seconds("visible_within", self.visible_within, "give a positive number of seconds")

    def pauses(self) -> list[float]:
        """The pauses between the attempts."""
        return [self.first_pause * 2**attempt for attempt in range(self.attempts - 1)]


def ask(*calls: Call) -> Steps[list[Reply]]:
    """Make calls at the same time."""
    replies = yield Together(calls)
    return replies


def insist(call: Call, patience: Patience) -> Steps[Reply]:
    """Make one call, again and again where its failure may pass."""
    for pause in patience.pauses():
        try:
            replies = yield Together((call,))
            return replies[0]
        except failures() as error:
            if not is_transient(error):
                raise
            asked = asked_pause(error)
        yield Pause(max(pause, asked))
    replies = yield Together((call,))
    return replies[0]


@dataclass(frozen=True, slots=True)
class Planes:
    """The SDK's objects that calls are made on.

    Attributes:
        handles: for the synchronous loop.
        asynchronous: for the asynchronous one; empty where there are none.
    """

    handles: Mapping[Plane, Handle]
    asynchronous: Mapping[Plane, Handle] = field(default_factory=dict)

    def run(self, steps: Steps[T]) -> T:
        """Carry out the steps and return what they come to."""
        return _advance(steps, self._perform)

    async def arun(self, steps: Steps[T]) -> T:
        """As ``run``, without blocking the event loop."""
        if not self.asynchronous:
            return await asyncio.to_thread(self.run, steps)
        try:
            step = next(steps)
            while True:
                try:
                    replies = await self._aperform(step)
                except failures() as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(replies)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _perform(self, step: Step) -> list[Reply]:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return []
        if len(step.calls) == 1:
            return [_made(self.handles, step.calls[0])]
        with ThreadPoolExecutor(len(step.calls)) as threads:
            return list(threads.map(lambda call: _made(self.handles, call), step.calls))

    async def _aperform(self, step: Step) -> list[Reply]:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return []
        return list(await asyncio.gather(*(_made(self.asynchronous, call) for call in step.calls)))


def _advance(steps: Steps[T], perform: Callable[[Step], list[Reply]]) -> T:
    try:
        step = next(steps)
        while True:
            try:
                replies = perform(step)
            except failures() as error:
                step = steps.throw(error)
            else:
                step = steps.send(replies)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _made(handles: Mapping[Plane, Handle], call: Call) -> Reply:
    return getattr(handles[call.plane], call.method)(**call.arguments)


@cache
def failures() -> tuple[type[Exception], ...]:
    """What the SDK raises where a request fails: its own errors and, on 7 and 8, its transport's."""
    from pinecone.exceptions import PineconeException  # noqa: PLC0415

    found: list[type[Exception]] = [PineconeException, ConnectionError, TimeoutError]
    if sdk_major() < 9:
        from pinecone.utils.error_handling import ProtocolError  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        found += [ProtocolError, HTTPError]
        if find_spec("aiohttp"):  # comes with pinecone[asyncio]
            from aiohttp import ClientError  # noqa: PLC0415

            found.append(ClientError)
    return tuple(found)


@cache
def sdk_major() -> int:
    """The major version of the SDK that is installed."""
    from pinecone import __version__  # noqa: PLC0415

    return int(__version__.split(".")[0])


def status_of(error: BaseException) -> int | None:
    """The HTTP status of a failure; None where no answer came."""
    for name in ("status_code", "status"):
        status = getattr(error, name, None)
        if isinstance(status, int):
            return status
    return None


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    status = status_of(error)
    if status is not None:
        return status in TRANSIENT
    from pinecone.exceptions import PineconeException  # noqa: PLC0415

    # Of the SDK's own errors without a status, those that a lost connection caused.
    return not isinstance(error, PineconeException) or type(error).__name__ in (
        "PineconeConnectionError",
        "PineconeTimeoutError",
    )


def asked_pause(error: BaseException) -> float:
    """The seconds that the service asks to wait; 0 where it asks for none."""
    headers = getattr(error, "headers", None) or {}
    named = {str(name).lower(): value for name, value in dict(headers).items()}
    try:
        return max(0.0, float(named.get("retry-after", 0)))
    except ValueError:  # a date: the next attempt's own pause must do
        return 0.0
