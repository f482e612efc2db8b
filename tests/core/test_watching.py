"""From the starts and ends of calls to what a latency model learns."""

from __future__ import annotations

import pytest
from fake_time import FakeTime

from lara_plugins import CalibratedLatency, QueryClock
from lara_plugins.budget import CallWatch, PromptReader, prompt_reader


@pytest.fixture
def clock() -> FakeTime:
    return FakeTime()


def test_a_whole_reply_teaches_its_duration(clock: FakeTime) -> None:
    watch, latency = CallWatch(clock), CalibratedLatency()
    watch.began("a", latency, 900)
    clock.seconds += 2.0
    watch.ended("a", 40)
    assert latency.learned.observed == 1
    assert "a" not in watch
    watch.ended("a", 40)
    assert latency.learned.observed == 1


def test_a_stream_teaches_only_where_it_is_read_promptly(clock: FakeTime) -> None:
    watch, latency = CallWatch(clock), CalibratedLatency()

    def stream(call: str, elsewhere: float) -> None:
        with prompt_reader() as reader:
            watch.began(call, latency, 900)
        clock.seconds += 1.0
        watch.brought(call)
        reader.seconds_elsewhere += elsewhere
        clock.seconds += 1.0 + elsewhere
        watch.ended(call, 40)

    stream("prompt", 0.0)
    assert latency.learned.observed == 1
    stream("slow", 0.5)
    assert latency.learned.observed == 1
    watch.began("somebody else's", latency, 900)
    watch.brought("somebody else's")
    watch.ended("somebody else's", 40)
    assert latency.learned.observed == 1


def test_a_reader_tells_when_it_was_elsewhere(clock: FakeTime) -> None:
    reader = PromptReader(clock)
    with reader.elsewhere():
        clock.seconds += 3.0
    clock.seconds += 5.0
    assert reader.seconds_elsewhere == 3.0


def test_a_failed_call_teaches_only_that_it_took_too_long(clock: FakeTime) -> None:
    watch, latency = CallWatch(clock), CalibratedLatency()
    for number in range(40):
        watch.began(str(number), latency, 900)
        clock.seconds += 1.0 + number / 100
        watch.ended(str(number), 40)
    known = latency.learned
    watch.began("refused", latency, 900)
    clock.seconds += 0.01
    watch.failed("refused")
    assert latency.learned == known
    watch.began("cut", latency, 900)
    clock.seconds += 50.0
    watch.failed("cut")
    assert latency.learned.missed == known.missed + 1


def test_calls_that_never_end_are_forgotten(clock: FakeTime) -> None:
    watch, latency = CallWatch(clock, most=10, expires=60.0), CalibratedLatency()
    for number in range(50):
        watch.began(str(number), latency, 900)
    assert len(watch) == 10
    clock.seconds += 61.0
    watch.began("new", latency, 900)
    assert len(watch) == 1
    watch.ended("49", 10)
    assert latency.learned.observed == 0


def test_a_clock_that_goes_backwards_is_clamped(clock: FakeTime) -> None:
    watch, latency = CallWatch(clock), CalibratedLatency()
    with prompt_reader():
        watch.began("a", latency, 900)
    clock.seconds -= 5.0
    watch.brought("a")
    watch.ended("a", 40)
    assert latency.learned.observed == 1
    query = QueryClock(4.0, now=clock)
    clock.seconds -= 50.0
    assert (query.elapsed(), query.time_left()) == (0.0, 4.0)
    clock.seconds += 51.0
    assert query.elapsed() == 1.0
