"""Windows read at once and merged: the loop from replies alone, and its four drivers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins import (
    Answer,
    Ask,
    AskMany,
    Emit,
    InvalidArgument,
    Passage,
    QueryClock,
    Reply,
    Said,
    read_at_once,
)
from lara_plugins.answering import Loop, aanswer, answer, astream_answer, stream_answer
from lara_plugins.answering.contract import StepReply


def passages(count: int) -> list[Passage]:
    return [Passage(f"p{n}", f"Fact {n} is written here.") for n in range(1, count + 1)]


def reply_to(ask: Ask) -> str:
    """Every window finds its first passage's fact; the merging call names all that it is shown."""
    numbers = [item.number for item in ask.passages]
    if ask.reply is StepReply:
        evidence = [{"passage": number, "quote": f"Fact {number} is"} for number in numbers]
        value = "All: " + " ".join(f"[{number}]" for number in numbers)
        return json.dumps({"changed": True, "answer": value, "complete": True, "evidence": evidence})
    evidence = [{"passage": numbers[0], "quote": f"Fact {numbers[0]} is"}]
    return json.dumps(
        {"answer_found": True, "value": f"Fact [{numbers[0]}]", "evidence": evidence, "confidence": 0.5}
    )


NOT_FOUND = json.dumps({"answer_found": False})

Respond = Callable[[Ask], str | None]


def run(
    loop: Loop, respond: Respond, time_left: float = 100.0, took: float = 1.0
) -> tuple[Answer, list[int]]:
    """The loop's answer and how many asks each of its steps made; None is a call that expired."""
    steps: list[int] = []
    returned: Reply | tuple[Reply, ...] | None = None
    try:
        while True:
            wanted = loop.send(returned)
            if isinstance(wanted, Emit):
                returned = None
                continue
            time_left -= took
            asks = wanted.asks if isinstance(wanted, AskMany) else (wanted,)
            steps.append(len(asks))
            replies = tuple(Reply(respond(ask), time_left, seconds=took) for ask in asks)
            returned = replies if isinstance(wanted, AskMany) else replies[0]
    except StopIteration as finished:
        answered: Answer = finished.value
        return answered, steps


@given(st.integers(4, 40), st.integers(1, 8))
def test_windows_in_rounds_and_one_merge(count: int, at_once: int) -> None:
    answered, steps = run(read_at_once("q", passages(count), at_once=at_once), reply_to)
    windows = -(-count // 3)
    assert sum(steps) == windows + 1 == answered.calls
    assert max(steps) <= at_once
    assert answered.outcome == "complete"
    assert sorted(answered.citations) == list(range(1, count + 1, 3))


def test_the_merge_sees_the_cited_passages_and_the_windows_answers() -> None:
    asks: list[Ask] = []

    def respond(ask: Ask) -> str:
        asks.append(ask)
        return reply_to(ask)

    run(read_at_once("q", passages(9)), respond)
    *windows, merge = asks
    assert [[item.number for item in ask.passages] for ask in windows] == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [item.number for item in merge.passages] == [1, 4, 7]
    assert merge.previous.value == "Fact [1]\nFact [4]\nFact [7]"
    assert merge.last
    assert not any(ask.last for ask in windows)


def test_one_window_that_found_something_needs_no_merge() -> None:
    answered, steps = run(
        read_at_once("q", passages(9)),
        lambda ask: reply_to(ask) if ask.passages[0].number == 4 else NOT_FOUND,
    )
    assert steps == [3]
    assert (answered.outcome, sorted(answered.citations)) == ("complete", [4])


@pytest.mark.parametrize(
    ("respond", "time_left", "outcome", "found"),
    [
        (lambda ask: NOT_FOUND, 100.0, "complete", False),
        (lambda ask: "prose", 100.0, "unparsable", False),
        (lambda ask: None, 100.0, "out_of_time", False),
        (lambda ask: None if ask.reply is StepReply else reply_to(ask), 100.0, "stopped_early 3/3", True),
        (lambda ask: "prose" if ask.reply is StepReply else reply_to(ask), 100.0, "stopped_early 3/3", True),
        (reply_to, 2.0, "stopped_early 3/3", True),
        (reply_to, 0.5, "stopped_early 0/3", False),
        (
            lambda ask: None if ask.passages[0].number == 4 else reply_to(ask),
            100.0,
            "stopped_early 2/3",
            True,
        ),
    ],
    ids=[
        "nothing",
        "prose",
        "expired",
        "merge expired",
        "merge prose",
        "no time to merge",
        "no time",
        "one cut",
    ],
)
def test_how_it_ends(respond: Respond, time_left: float, outcome: str, found: bool) -> None:
    loop = read_at_once("q", passages(9), time_left, lambda shown: 1.5)
    answered, _ = run(loop, respond, time_left)
    assert (answered.outcome, answered.evidence.answer_found) == (outcome, found)


def test_few_passages_are_one_window() -> None:
    answered, steps = run(read_at_once("q", passages(3)), reply_to)
    assert (steps, answered.outcome) == ([1], "complete")
    with pytest.raises(InvalidArgument, match="at_once=0"):
        run(read_at_once("q", passages(9), at_once=0), reply_to)


class AtOnce:
    """Answers a window only when all windows of its round are being asked."""

    def __init__(self, parties: int, hang: bool = False, fail: bool = False) -> None:
        self.barrier, self.count, self.parties = threading.Barrier(parties), 0, parties
        self.all_here, self.hang, self.fail = asyncio.Event(), hang, fail
        self.released, self.cancelled = threading.Event(), 0

    @property
    def callee(self) -> object:
        return self

    def ask(self, ask: Ask) -> Said:
        if ask.reply is not StepReply:
            self.barrier.wait(20)
            if self.fail and ask.passages[0].number == 4:
                raise ConnectionError("refused by the test")
            if self.hang and ask.passages[0].number == 4:
                self.released.wait(20)
        return Said(reply_to(ask))

    async def aask(self, ask: Ask) -> Said:
        if ask.reply is not StepReply:
            self.count += 1
            if self.count == self.parties:
                self.all_here.set()
            await self.all_here.wait()
            if self.fail and ask.passages[0].number == 4:
                raise ConnectionError("refused by the test")
            if (self.hang and ask.passages[0].number == 4) or self.fail:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
                    raise
        return Said(reply_to(ask))

    def stream(self, ask: Ask) -> Iterator[Said]:
        yield self.ask(ask)

    async def astream(self, ask: Ask) -> AsyncIterator[Said]:
        yield await self.aask(ask)


async def test_every_driver_asks_at_once() -> None:
    def loop() -> Loop:
        return read_at_once("q", passages(9), 60.0)

    texts = [
        answer(loop(), AtOnce(3), QueryClock(60.0)).text,
        (await aanswer(loop(), AtOnce(3), QueryClock())).text,
    ]
    ended: list[Answer] = []
    texts.append("".join(stream_answer(loop(), AtOnce(3), QueryClock(), ended.append)))
    texts.append(
        "".join([text async for text in astream_answer(loop(), AtOnce(3), QueryClock(60.0), ended.append)])
    )
    assert texts == ["All: [1] [4] [7]"] * 4
    assert [one.replayed for one in ended] == [False, False]


async def test_a_window_that_outlives_the_deadline_is_given_up_alone() -> None:
    for asynchronous in (False, True):
        model = AtOnce(3, hang=True)
        loop = read_at_once("q", passages(9), 0.5)
        clock = QueryClock(0.5)
        answered = await aanswer(loop, model, clock) if asynchronous else answer(loop, model, clock)
        model.released.set()
        assert [record.brought for record in answered.trace][:3] == ["found", "expired", "found"]
        assert answered.outcome == "stopped_early 2/3"
        assert answered.evidence.answer_found


async def test_an_error_of_one_window_ends_the_loop_and_the_others() -> None:
    with pytest.raises(ConnectionError):
        answer(read_at_once("q", passages(9), 60.0), AtOnce(3, fail=True), QueryClock(60.0))
    model = AtOnce(3, fail=True)
    with pytest.raises(ConnectionError):
        await aanswer(read_at_once("q", passages(9), 60.0), model, QueryClock(60.0))
    assert model.cancelled == 2
