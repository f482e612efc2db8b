"""Calls that are given up when the deadline passes.

A synchronous call cannot be stopped from outside: it is left to its daemon thread, which does
not keep the interpreter from exiting, and its result is thrown away. Of each callee so many may
be left running at once; beyond that its next call is refused rather than piling up threads.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lara_plugins.errors import TooManyAbandonedCalls

T = TypeVar("T")

MOST_ABANDONED = 8
"""Calls to one callee that may be left running."""


class DeadlinePassed(Exception):
    """The time for a call is over; what it would have brought is given up."""


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


class _End:
    pass


_abandoned: dict[int, set[threading.Thread]] = {}
_lock = threading.Lock()


def call_within(seconds: float, call: Callable[[], T], callee: object = None) -> T:
    """Call, and give up after ``seconds``; an infinite time calls in this very thread.

    Args:
        seconds: how long it may take.
        call: what to call; in a daemon thread it runs in a copy of this context.
        callee: whose call it is; calls that are left running are counted by callee.

    Raises:
        DeadlinePassed: the call takes longer, or has failed by then.
        TooManyAbandonedCalls: too many earlier ones are still running.
    """
    if seconds == math.inf:
        return call()

    def once() -> Iterator[T]:
        yield call()

    until = time.monotonic() + seconds
    [value] = iterate_within(lambda: until - time.monotonic(), once, callee)
    return value


async def acall_within(seconds: float, call: Awaitable[T]) -> T:
    """Await a call, and cancel it after ``seconds``, which may be infinite.

    Raises:
        DeadlinePassed: the call takes longer, or has failed by then.
    """
    if seconds == math.inf:
        return await call
    now = asyncio.get_running_loop().time
    until = now() + max(0.0, seconds)
    timeout = asyncio.timeout_at(until)
    try:
        async with timeout:
            return await call
    except StopAsyncIteration:
        raise  # a stream has come to its end
    except Exception as error:
        # Before the deadline a TimeoutError is the LLM's client's own.
        if timeout.expired() or _is_late(error, until - now()):
            raise DeadlinePassed from error
        raise


def call_all_within(
    seconds: float, calls: Sequence[Callable[[], T]], callee: object = None
) -> list[tuple[T] | None]:
    """Call all at once, each in a daemon thread of its own, and give up what takes too long.

    Args:
        seconds: how long they may take together; infinite for no limit.
        calls: what to call; each runs in a copy of this context.
        callee: whose calls they are; calls that are left running are counted by callee.

    Returns:
        Each call's result in a tuple of one, or None where it takes longer, or has failed by then.

    Raises:
        TooManyAbandonedCalls: too many earlier ones are still running.
    """
    _check_abandoned(callee)
    ended: queue.SimpleQueue[tuple[int, _Item[T] | _Raised]] = queue.SimpleQueue()

    def run(place: int) -> None:
        try:
            ended.put((place, _Item(calls[place]())))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            ended.put((place, _Raised(error)))

    threads = [
        threading.Thread(
            target=contextvars.copy_context().run, args=(run, place), name="lara-call", daemon=True
        )
        for place in range(len(calls))
    ]
    results: list[tuple[T] | None] = [None] * len(calls)
    running = set(range(len(calls)))
    until = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    try:
        while running:
            left = None if seconds == math.inf else max(0.0, until - time.monotonic())
            place, item = ended.get(timeout=left)
            running.discard(place)
            if isinstance(item, _Item):
                results[place] = (item.value,)
            elif not _is_late(item.error, until - time.monotonic()):
                raise item.error
    except queue.Empty:
        pass  # what is still running is given up
    finally:
        for place in running:
            _abandon(threads[place], callee)
    return results


def iterate_within(
    seconds_left: Callable[[], float], iterate: Callable[[], Iterator[T]], callee: object = None
) -> Iterator[T]:
    """Iterate, and give up when the time is over.

    Args:
        seconds_left: seconds until the deadline, read before every item; infinite for none.
        iterate: starts the iteration; it runs in a daemon thread, in a copy of this context.
        callee: whose call it is; calls that are left running are counted by callee.

    Raises:
        DeadlinePassed: the next item takes longer, or the iteration has failed by then.
        TooManyAbandonedCalls: too many earlier ones are still running.
    """
    if seconds_left() == math.inf:
        yield from iterate()
        return
    _check_abandoned(callee)
    items: queue.SimpleQueue[_Item[T] | _Raised | _End] = queue.SimpleQueue()
    given_up = threading.Event()

    def produce() -> None:
        try:
            for value in iterate():
                items.put(_Item(value))
                if given_up.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            items.put(_Raised(error))
        else:
            items.put(_End())

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(produce,), name="lara-call", daemon=True)
    thread.start()
    try:
        while True:
            item = items.get(timeout=max(0.0, seconds_left()))
            if isinstance(item, _End):
                return
            if isinstance(item, _Raised):
                if _is_late(item.error, seconds_left()):
                    raise DeadlinePassed from item.error
                raise item.error
            yield item.value
    except queue.Empty:
        _abandon(thread, callee)
        raise DeadlinePassed from None
    except GeneratorExit:
        _abandon(thread, callee)
        raise
    finally:
        given_up.set()


def _is_late(error: BaseException, left: float) -> bool:
    """Whether a call has failed because of the deadline, or too late for anybody to care."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, DeadlinePassed):
            return True  # a client may have wrapped it
        cause = cause.__cause__
    return left <= 0.0


def _abandon(thread: threading.Thread, callee: object) -> None:
    with _lock:
        _abandoned.setdefault(id(callee), set()).add(thread)


def _check_abandoned(callee: object) -> None:
    with _lock:
        running = {thread for thread in _abandoned.pop(id(callee), ()) if thread.is_alive()}
        if running:
            _abandoned[id(callee)] = running
    if len(running) >= MOST_ABANDONED:
        raise TooManyAbandonedCalls(
            f"{len(running)} calls that outlived their deadline are still running: "
            "give the LLM client a timeout of its own, or afford more time"
        )
