"""Four drivers, one loop: the same answer, the deadline kept, streams that are streams."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from lara_plugins import Answer, Ask, Passage, QueryClock, Usage
from lara_plugins.answering import (
    Said,
    aanswer,
    answer,
    answer_in_one_call,
    answer_sequentially,
    astream_answer,
    refine_in_threes,
    stream_answer,
)
from lara_plugins.answering.contract import StepReply
from lara_plugins.answering.loop import Loop

PASSAGES = [Passage(f"p{n}", f"Fact {n} is here.") for n in range(1, 8)]

LOOPS: dict[str, Callable[[], Loop]] = {
    "refine": lambda: refine_in_threes("q", PASSAGES),
    "sequential": lambda: answer_sequentially("q", PASSAGES),
    "batch": lambda: answer_in_one_call("q", PASSAGES),
}


class Model:
    """Answers each ask from its passages; hangs where it is told to."""

    def __init__(self, hang_on: Callable[[Ask], bool] = lambda ask: False) -> None:
        self.hang_on, self.asks, self.released = hang_on, list[Ask](), threading.Event()

    @property
    def callee(self) -> object:
        return self

    def reply(self, ask: Ask) -> str:
        number = ask.passages[0].number
        quotes = [{"passage": number, "quote": f"Fact {number}"}]
        if ask.reply is StepReply:
            return json.dumps({"changed": True, "answer": f"Up to {number} [{number}]", "evidence": quotes})
        found = number == 3 or ask.step == "batch"
        value = f"It is fact {number} [{number}]" if found else ""
        return json.dumps(
            {
                "answer_found": found,
                "complete_answer_found": found,
                "value": value,
                "evidence": quotes * found,
            }
        )

    def ask(self, ask: Ask) -> Said:
        self.asks.append(ask)
        if self.hang_on(ask):
            self.released.wait()
        return Said(self.reply(ask), Usage(10, 1))

    async def aask(self, ask: Ask) -> Said:
        self.asks.append(ask)
        if self.hang_on(ask):
            await asyncio.Event().wait()
        return Said(self.reply(ask), Usage(10, 1))

    def stream(self, ask: Ask) -> Iterator[Said]:
        said = self.ask(ask)
        for character in str(said.raw):
            yield Said(character)
        yield Said("", said.usage)

    async def astream(self, ask: Ask) -> AsyncIterator[Said]:
        said = await self.aask(ask)
        for character in str(said.raw):
            yield Said(character)
        yield Said("", said.usage)


def streamed(loop: Loop, model: Model, clock: QueryClock) -> tuple[list[str], Answer]:
    finished: list[Answer] = []
    texts = list(stream_answer(loop, model, clock, finished.append))
    return texts, finished[0]


async def astreamed(loop: Loop, model: Model, clock: QueryClock) -> tuple[list[str], Answer]:
    finished: list[Answer] = []
    texts = [text async for text in astream_answer(loop, model, clock, finished.append)]
    return texts, finished[0]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("afford", [None, 60.0])
async def test_four_drivers_give_one_answer(name: str, afford: float | None) -> None:
    make = LOOPS[name]
    whole = answer(make(), Model(), QueryClock(afford))
    asynchronous = await aanswer(make(), Model(), QueryClock(afford))
    texts, stream = streamed(make(), Model(), QueryClock(afford))
    atexts, astream = await astreamed(make(), Model(), QueryClock(afford))
    for other in (asynchronous, stream, astream):
        assert (other.evidence, other.calls, other.outcome, other.text, other.usage) == (
            whole.evidence,
            whole.calls,
            whole.outcome,
            whole.text,
            whole.usage,
        )
    assert "".join(texts) == "".join(atexts) == whole.text


@pytest.mark.parametrize("name", ["refine", "batch"])
async def test_the_last_ask_is_streamed_in_more_than_one_piece(name: str) -> None:
    for texts, answered in (
        streamed(LOOPS[name](), Model(), QueryClock()),
        await astreamed(LOOPS[name](), Model(), QueryClock()),
    ):
        assert len(texts) > 5
        assert not answered.replayed


async def test_a_sequential_answer_is_shown_once_it_is_accepted() -> None:
    texts, answered = streamed(LOOPS["sequential"](), Model(), QueryClock())
    assert "".join(texts) == answered.text
    assert answered.replayed


async def test_the_first_text_comes_before_the_reply_is_whole() -> None:
    class Withholding(Model):
        def stream(self, ask: Ask) -> Iterator[Said]:
            raw = self.reply(ask)
            middle = raw.index("It is") + 8
            yield Said(raw[:middle])
            assert first_text.is_set()
            yield Said(raw[middle:])

    first_text = threading.Event()
    for _ in stream_answer(LOOPS["batch"](), Withholding(), QueryClock(), lambda answered: None):
        first_text.set()


def hangs_at(number: int) -> Callable[[Ask], bool]:
    return lambda ask: ask.passages[0].number == number


def short(seconds: float = 0.15) -> QueryClock:
    return QueryClock(seconds)


async def test_a_call_that_outlives_the_deadline_is_given_up_by_every_driver() -> None:
    def make(clock: QueryClock) -> Loop:
        return refine_in_threes("q", PASSAGES, clock.time_left())

    models = [Model(hangs_at(7)) for _ in range(4)]
    clocks = [QueryClock(0.4) for _ in models]
    outcomes = [answer(make(clocks[0]), models[0], clocks[0])]
    clocks[1:] = [QueryClock(0.4) for _ in models[1:]]
    outcomes.append(await aanswer(make(clocks[1]), models[1], clocks[1]))
    clocks[2:] = [QueryClock(0.4) for _ in models[2:]]
    texts, answered = streamed(make(clocks[2]), models[2], clocks[2])
    assert "".join(texts) == answered.text
    outcomes.append(answered)
    clocks[3] = QueryClock(0.4)
    texts, answered = await astreamed(make(clocks[3]), models[3], clocks[3])
    assert "".join(texts) == answered.text
    outcomes.append(answered)
    for model in models:
        model.released.set()
    for answered in outcomes:
        assert (answered.outcome, answered.evidence.value) == ("stopped_early 2/3", "Up to 4 [4]")


async def test_a_deadline_amid_the_stream_truncates_it_and_shows_nothing_else() -> None:
    class Stalling(Model):
        def stream(self, ask: Ask) -> Iterator[Said]:
            yield Said('{"answer_found": true, "value": "It is fa')
            self.released.wait()

        async def astream(self, ask: Ask) -> AsyncIterator[Said]:
            yield Said('{"answer_found": true, "value": "It is fa')
            await asyncio.Event().wait()

    clock, model = short(), Stalling()
    texts, answered = streamed(answer_in_one_call("q", PASSAGES, clock.time_left()), model, clock)
    model.released.set()
    clock = short()
    atexts, aanswered = await astreamed(
        answer_in_one_call("q", PASSAGES, clock.time_left()), Stalling(), clock
    )
    for shown, result in ((texts, answered), (atexts, aanswered)):
        assert "".join(shown) == result.text == "It is fa"
        assert result.outcome == "truncated"
        assert not result.evidence.answer_found


async def test_the_clients_own_timeout_is_the_clients_error() -> None:
    class TimingOut(Model):
        def ask(self, ask: Ask) -> Said:
            raise TimeoutError("the client's own")

        async def aask(self, ask: Ask) -> Said:
            raise TimeoutError("the client's own")

    for clock in (QueryClock(), QueryClock(60)):
        with pytest.raises(TimeoutError, match="own"):
            answer(LOOPS["batch"](), TimingOut(), clock)
        with pytest.raises(TimeoutError, match="own"):
            await aanswer(answer_in_one_call("q", PASSAGES, clock.time_left()), TimingOut(), clock)
        with pytest.raises(TimeoutError, match="own"):
            streamed(answer_in_one_call("q", PASSAGES, clock.time_left()), TimingOut(), clock)
        with pytest.raises(TimeoutError, match="own"):
            await astreamed(answer_in_one_call("q", PASSAGES, clock.time_left()), TimingOut(), clock)


async def test_an_exempt_loop_is_not_cancelled() -> None:
    clock = QueryClock(1e-9)
    assert answer(answer_in_one_call("q", PASSAGES, math.inf), Model(), clock).outcome == "complete"
    assert (await aanswer(answer_in_one_call("q", PASSAGES, math.inf), Model(), clock)).outcome == "complete"


async def test_closing_an_async_stream_closes_the_models() -> None:
    closed = asyncio.Event()

    class Closing(Model):
        async def astream(self, ask: Ask) -> AsyncIterator[Said]:
            try:
                yield Said('{"answer_found": true, "value": "It is')
                yield Said(" never read")
            finally:
                closed.set()

    stream = astream_answer(LOOPS["batch"](), Closing(), QueryClock(), lambda answered: None)
    assert await anext(stream) == "It is"
    await stream.aclose()
    assert closed.is_set()
