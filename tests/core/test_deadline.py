"""Calls that are given up at the deadline, whatever they bring afterwards."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator

import pytest

from lara_plugins import TooManyAbandonedCalls
from lara_plugins.answering.deadline import (
    MOST_ABANDONED,
    DeadlinePassed,
    acall_within,
    call_all_within,
    call_within,
    iterate_within,
)


class ClientError(Exception):
    """What a client raises."""


def fail() -> str:
    raise ClientError


def fail_for_the_deadline() -> str:
    raise ClientError from DeadlinePassed()


def failing_stream(fail: Callable[[], str]) -> Iterator[str]:
    yield fail()


@pytest.mark.parametrize(("seconds", "call"), [(0.0, fail), (-1.0, fail), (60.0, fail_for_the_deadline)])
async def test_an_error_that_is_late_or_the_deadlines_own_is_the_deadline(
    seconds: float, call: Callable[[], str]
) -> None:
    """Such as that of a client whose timeout was what was left."""

    async def acall() -> str:
        return call()

    with pytest.raises(DeadlinePassed):
        call_within(seconds, call)
    with pytest.raises(DeadlinePassed):
        await acall_within(seconds, acall())
    with pytest.raises(DeadlinePassed):
        list(iterate_within(lambda: seconds, lambda: failing_stream(call)))
    assert call_all_within(seconds, [call, call]) == [None, None]


async def test_an_error_before_the_deadline_is_the_clients() -> None:
    async def acall() -> str:
        return fail()

    with pytest.raises(ClientError):
        call_within(60.0, fail)
    with pytest.raises(ClientError):
        await acall_within(60.0, acall())
    with pytest.raises(ClientError):
        list(iterate_within(lambda: 60.0, lambda: failing_stream(fail)))
    with pytest.raises(ClientError):
        call_all_within(60.0, [fail, fail])


def test_a_call_runs_in_a_copy_of_the_callers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert call_within(60.0, variable.get) == "set"
    assert list(iterate_within(lambda: 60.0, lambda: iter([variable.get()]))) == ["set"]


def test_calls_given_up_are_bounded_and_forgotten_when_they_end() -> None:
    release = threading.Event()
    started: list[threading.Thread] = []

    def hang() -> None:
        started.append(threading.current_thread())
        release.wait()

    for _ in range(MOST_ABANDONED):
        with pytest.raises(DeadlinePassed):
            call_within(0.01, hang)
    with pytest.raises(TooManyAbandonedCalls, match="afford more time"):
        call_within(60.0, lambda: None)
    assert call_within(60.0, lambda: "another callee", object()) == "another callee"
    assert all(thread.daemon for thread in started)
    release.set()
    for thread in started:
        thread.join()
    assert call_within(60.0, lambda: "again") == "again"


def test_many_calls_in_time_are_never_counted_as_given_up() -> None:
    results: list[int] = []

    def work(start: int) -> None:
        results.extend(call_within(60.0, lambda n=n: n) for n in range(start, start + 25))  # type: ignore[misc]

    threads = [threading.Thread(target=work, args=(25 * n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(500))
