"""The four drivers of an answering loop: sync and async, whole and streaming.

They are the only code that waits. A framework's adapter is a ``LanguageModel``: it renders an
ask and calls, and knows nothing of loops, deadlines or streams of answers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from lara_plugins.answering.contract import RawReply
from lara_plugins.answering.deadline import (
    DeadlinePassed,
    acall_within,
    call_all_within,
    call_within,
    iterate_within,
)
from lara_plugins.answering.loop import Answer, Ask, AskMany, Emit, Loop, Reply, Returned, Usage, Wanted
from lara_plugins.answering.streaming import AnswerFieldReader
from lara_plugins.query import QueryClock


@dataclass(frozen=True, slots=True)
class Said:
    """What a language model said: a whole reply, or in a stream the next piece of its text."""

    raw: RawReply
    usage: Usage | None = None


class LanguageModel(Protocol):
    """Renders an ask in a framework's way and calls its LLM; the LLM's errors propagate."""

    @property
    def callee(self) -> object:
        """What is called in the end: calls to it that are left running are counted together."""

    def ask(self, ask: Ask) -> Said:
        """The whole reply."""

    async def aask(self, ask: Ask) -> Said:
        """As ``ask``, without blocking the event loop."""

    def stream(self, ask: Ask) -> Iterator[Said]:
        """The reply's text piece by piece; pieces are strings."""

    def astream(self, ask: Ask) -> AsyncIterator[Said]:
        """As ``stream``, without blocking the event loop."""


def drive(loop: Loop, call: Callable[[Ask], Reply]) -> Answer:
    """Run a loop to its answer; an exception raised by ``call`` ends it.

    Args:
        loop: the loop, not yet started.
        call: answers an ask.
    """
    step = _advance(loop, None)
    while not isinstance(step, Answer):
        match step:
            case Ask():
                returned: Returned = call(step)
            case AskMany():
                returned = tuple(call(ask) for ask in step.asks)
            case Emit():
                returned = None
        step = _advance(loop, returned)
    return step


def answer(loop: Loop, model: LanguageModel, clock: QueryClock) -> Answer:
    """Drive a loop with a model; a call that outlives the deadline is abandoned."""
    step = _advance(loop, None)
    while not isinstance(step, Answer):
        step = _advance(loop, None if isinstance(step, Emit) else _unseen(step, model, clock))
    return step


async def aanswer(loop: Loop, model: LanguageModel, clock: QueryClock) -> Answer:
    """As ``answer``; a call that outlives the deadline is cancelled."""
    step = _advance(loop, None)
    while not isinstance(step, Answer):
        step = _advance(loop, None if isinstance(step, Emit) else await _aunseen(step, model, clock))
    return step


def stream_answer(
    loop: Loop, model: LanguageModel, clock: QueryClock, finish: Callable[[Answer], None]
) -> Generator[str, None, None]:
    """Drive a loop and yield the answer's text as it becomes known.

    The ask marked last is streamed; an answer decided without it is yielded at the end.

    Args:
        loop: the loop, not yet started.
        model: the language model.
        clock: the query's clock.
        finish: is given the answer when the text has been yielded.
    """
    step = _advance(loop, None)
    while not isinstance(step, Answer):
        reply: Returned = None
        if isinstance(step, Emit):
            yield step.text
        elif isinstance(step, Ask) and step.last:
            reply = yield from _streamed(step, model, clock)
        else:
            reply = _unseen(step, model, clock)
        step = _advance(loop, reply)
    finish(step)


async def astream_answer(
    loop: Loop, model: LanguageModel, clock: QueryClock, finish: Callable[[Answer], None]
) -> AsyncGenerator[str, None]:
    """As ``stream_answer``, without blocking the event loop."""
    step = _advance(loop, None)
    while not isinstance(step, Answer):
        reply: Returned = None
        if isinstance(step, Emit):
            yield step.text
        elif isinstance(step, Ask) and step.last:
            streamed = _Streamed(step, clock)
            async with aclosing(_apieces(streamed, model)) as texts:
                async for text in texts:
                    yield text
            reply = streamed.reply()
        else:
            reply = await _aunseen(step, model, clock)
        step = _advance(loop, reply)
    finish(step)


def _advance(loop: Loop, reply: Returned) -> Wanted | Answer:
    """The loop's next step, or its answer."""
    try:
        return loop.send(reply)
    except StopIteration as finished:
        if not isinstance(finished.value, Answer):
            raise TypeError(f"the loop returned {type(finished.value).__name__}, not an Answer") from None
        return finished.value


def _unseen(step: Ask | AskMany, model: LanguageModel, clock: QueryClock) -> Returned:
    """The replies of asks of which nothing is shown."""
    return _whole(step, model, clock) if isinstance(step, Ask) else _whole_at_once(step.asks, model, clock)


async def _aunseen(step: Ask | AskMany, model: LanguageModel, clock: QueryClock) -> Returned:
    if isinstance(step, Ask):
        return await _awhole(step, model, clock)
    calls = [asyncio.create_task(_awhole(ask, model, clock)) for ask in step.asks]
    try:
        return tuple(await asyncio.gather(*calls))
    finally:
        # Where one failed, or we were cancelled, the others must not outlive it.
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


def _whole_at_once(asks: Sequence[Ask], model: LanguageModel, clock: QueryClock) -> tuple[Reply, ...]:
    started = clock.now()

    def made(ask: Ask) -> Callable[[], Reply]:
        def call() -> Reply:
            said = model.ask(ask)
            return Reply(said.raw, clock.time_left(), said.usage, seconds=clock.now() - started)

        return call

    limit = min(_limit(ask, clock) for ask in asks)
    replies = call_all_within(limit, [made(ask) for ask in asks], model.callee)
    return tuple(_expired(clock, started) if reply is None else reply[0] for reply in replies)


def _whole(ask: Ask, model: LanguageModel, clock: QueryClock) -> Reply:
    started = clock.now()
    try:
        said = call_within(_limit(ask, clock), lambda: model.ask(ask), model.callee)
    except DeadlinePassed:
        return _expired(clock, started)
    return Reply(said.raw, clock.time_left(), said.usage, seconds=clock.now() - started)


async def _awhole(ask: Ask, model: LanguageModel, clock: QueryClock) -> Reply:
    started = clock.now()
    try:
        said = await acall_within(_limit(ask, clock), model.aask(ask))
    except DeadlinePassed:
        return _expired(clock, started)
    return Reply(said.raw, clock.time_left(), said.usage, seconds=clock.now() - started)


def _streamed(ask: Ask, model: LanguageModel, clock: QueryClock) -> Generator[str, None, Reply]:
    streamed = _Streamed(ask, clock)
    try:
        for said in iterate_within(streamed.limit, lambda: model.stream(ask), model.callee):
            yield from streamed.take(said)
    except DeadlinePassed:
        streamed.expired = True
    return streamed.reply()


async def _apieces(streamed: _Streamed, model: LanguageModel) -> AsyncGenerator[str, None]:
    pieces = model.astream(streamed.ask)
    try:
        while True:
            try:
                said = await acall_within(streamed.limit(), anext(pieces))
            except StopAsyncIteration:
                return
            except DeadlinePassed:
                streamed.expired = True
                return
            for text in streamed.take(said):
                yield text
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


class _Streamed:
    """A reply that is being streamed: what has come, and what of it has been shown."""

    def __init__(self, ask: Ask, clock: QueryClock) -> None:
        self.ask = ask
        self.expired = False
        self._clock = clock
        self._started = clock.now()
        self._reader = AnswerFieldReader(ask.reply)
        self._usage: Usage | None = None

    def limit(self) -> float:
        return _limit(self.ask, self._clock)

    def take(self, said: Said) -> Iterator[str]:
        self._usage = said.usage or self._usage
        if isinstance(said.raw, str) and (text := self._reader.feed(said.raw)):
            yield text

    def reply(self) -> Reply:
        raw = None if self.expired else self._reader.raw
        seconds = self._clock.now() - self._started
        return Reply(raw, self._clock.time_left(), self._usage, self._reader.shown, seconds)


def _limit(ask: Ask, clock: QueryClock) -> float:
    """Seconds that a call may take now; an ask without a timeout is exempt from the deadline."""
    return math.inf if ask.timeout == math.inf else clock.time_left()


def _expired(clock: QueryClock, started: float) -> Reply:
    return Reply(None, clock.time_left(), seconds=clock.now() - started)
