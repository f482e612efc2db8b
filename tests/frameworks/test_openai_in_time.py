"""The real OpenAI client of each framework: streams, and calls that outlive the deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import aclosing, closing

import pytest
from applications import WAYS, Application, Framework
from chat_server import Chat, ChatServer, Request
from openai_replies import (
    ANSWER,
    PROSE,
    STEP,
    UNCHANGED,
    answering,
    hanging,
    in_turn,
    typed,
    wanted,
)
from towers import LISTING, LOOKUP, PASSAGES

from lara_plugins import QueryClock

both = pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])
each_way = pytest.mark.parametrize("way", WAYS)
each_stream = pytest.mark.parametrize("way", ["stream", "astream"])

TOKYO = [{"passage": 1, "quote": "Tokyo Tower is 333 metres tall."}]


@both
@each_way
async def test_a_call_that_outlives_the_deadline(framework: Framework, tools: bool, way: str) -> None:
    with hanging() as event, ChatServer(lambda request: Chat(withhold=event, silent=True)) as server:
        application = framework.refine(server, tools)
        with QueryClock(afford=0.5):
            assert "the time ran out" in await application.told(way, LOOKUP)
    assert application.facts("answer")["outcome"] == "out_of_time"


@each_way
async def test_the_best_passages_are_the_sources_where_the_time_ran_out(
    framework: Framework, way: str
) -> None:
    with hanging() as event, ChatServer(lambda request: Chat(withhold=event, silent=True)) as server:
        application = framework.pipeline(server, afford=1.0)
        assert "the time ran out" in await application.told(way, LISTING)
    assert application.facts("answer")["outcome"] == "out_of_time"
    assert application.sources[0] == "p1"


@each_way
async def test_the_last_whole_answer_stands_at_the_deadline(framework: Framework, way: str) -> None:
    with hanging() as event, ChatServer(in_turn(answering, Chat(withhold=event))) as server:
        application = framework.refine(server, passages=PASSAGES[:9])
        with QueryClock(afford=2.0):  # ample for the first call on a busy machine
            assert await application.told(way, LOOKUP) == ANSWER
    assert application.facts("answer")["outcome"] == "stopped_early 1/3"


@both
@each_stream
async def test_a_deadline_amid_a_stream(framework: Framework, tools: bool, way: str) -> None:
    with hanging() as event, ChatServer(lambda r: typed(r, wanted(r), withhold=event, pieces=70)) as server:
        application = framework.refine(server, tools)
        with QueryClock(afford=1.2):
            shown = await application.told(way, LOOKUP)
    assert shown
    assert ANSWER.startswith(shown)
    assert application.facts("answer")["outcome"] == "truncated"


@both
@each_stream
async def test_usage_of_a_stream(framework: Framework, tools: bool, way: str) -> None:
    with ChatServer(answering) as server:
        for settings, reported in ((framework.reports_usage, (120, 15)), ({}, (None, None))):
            application = framework.refine(server, tools, PASSAGES[:3], **settings)
            await application.told(way, LOOKUP)
            answered = application.facts("answer")
            assert (answered["input_tokens"], answered["output_tokens"]) == reported


STREAMS: dict[str, tuple[str, Callable[[Framework, ChatServer, bool], Application]]] = {
    "refine in threes": (LOOKUP, lambda framework, server, tools: framework.refine(server, tools)),
    "routed to one call": (LISTING, lambda framework, server, tools: framework.route(server, tools)),
    "routed to windows": (LISTING, lambda framework, server, tools: framework.route(server, tools, PASSAGES)),
    "the whole pipeline": (LISTING, lambda framework, server, tools: framework.pipeline(server, tools)),
}


@both
@pytest.mark.parametrize("route", STREAMS)
async def test_streaming_is_real(framework: Framework, tools: bool, route: str) -> None:
    """The end of the reply is withheld until its beginning has been shown."""
    question, make = STREAMS[route]

    def respond(request: Request) -> Chat:
        reply = {**wanted(request), "evidence": TOKYO}
        return typed(request, reply, withhold=event if request.get("stream") else None, pieces=5)

    with hanging() as event, ChatServer(respond) as server:
        application = make(framework, server, tools)
        whole = application.whole(question)
        stream = application.stream(question)
        first = next(stream)
        assert first
        assert not event.is_set()
        event.set()
        rest = list(stream)
        assert len(rest) > 2
        assert first + "".join(rest) == whole == ANSWER
        assert application.facts("answer")["replayed"] is False

        event.clear()
        astream = application.astream(question)
        first = await anext(astream)
        assert first
        assert not event.is_set()
        event.set()
        assert first + "".join([piece async for piece in astream]) == whole
        assert application.facts("answer")["replayed"] is False


@both
@each_stream
async def test_an_answer_that_was_decided_before_is_replayed(
    framework: Framework, tools: bool, way: str
) -> None:
    with ChatServer(answering) as server:
        application = framework.pipeline(server, tools)
        assert await application.told(way, LOOKUP) == application.whole(LOOKUP) == ANSWER
        assert await application.told(way, LOOKUP) == ANSWER
    assert application.facts("route")["regime"] == "sequential"
    assert application.facts("answer")["replayed"] is True


@each_stream
async def test_an_unchanged_last_window_replays_the_answer(framework: Framework, way: str) -> None:
    with ChatServer(in_turn(answering, lambda request: typed(request, UNCHANGED))) as server:
        application = framework.refine(server, passages=PASSAGES[:6])
        assert await application.told(way, LOOKUP) == ANSWER
    assert application.facts("answer")["replayed"] is True


@both
@each_stream
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_fragments_of_any_size(framework: Framework, tools: bool, way: str, size: int) -> None:
    answer = 'The “tower” \\ is 330 metres\n tall: "✓" [1].'
    with ChatServer(lambda request: typed(request, {**STEP, "answer": answer}, pieces=size)) as server:
        assert await framework.refine(server, tools).told(way, LOOKUP) == answer


@each_stream
async def test_only_the_last_window_is_streamed(framework: Framework, way: str) -> None:
    with ChatServer(answering) as server:
        application = framework.refine(server, passages=PASSAGES[:9])
        assert await application.told(way, LOOKUP) == ANSWER
        assert [bool(request.get("stream")) for request in server.requests] == [False, False, True]


async def test_a_stream_may_be_left_unread(framework: Framework) -> None:
    with hanging() as event, ChatServer(lambda r: typed(r, wanted(r), withhold=event, pieces=70)) as server:
        for make in (framework.refine, framework.pipeline):
            application = make(server)
            with closing(application.stream(LISTING)) as stream:
                assert next(stream)
            async with aclosing(application.astream(LISTING)) as astream:
                assert await anext(astream)
    with ChatServer(answering) as server:
        assert framework.refine(server).whole(LOOKUP) == ANSWER


@pytest.mark.parametrize("way", ["awhole", "astream"])
async def test_a_cancelled_question_leaves_nothing_behind(framework: Framework, way: str) -> None:
    arrived = threading.Event()

    def respond(request: Request) -> Chat:
        arrived.set()
        return Chat(withhold=event, silent=True)

    with hanging() as event, ChatServer(respond) as server:
        for make in (framework.refine, framework.route, framework.pipeline):
            arrived.clear()
            task = asyncio.create_task(make(server).told(way, LISTING))
            await asyncio.to_thread(arrived.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


def test_a_repair_must_fit_the_time(framework: Framework) -> None:
    now = 100.0

    def slow(request: Request) -> Chat:
        nonlocal now
        now += 3.8
        return PROSE

    with ChatServer(slow) as server, QueryClock(afford=4.0, now=lambda: now):
        application = framework.refine(server, passages=PASSAGES[:6])
        application.whole(LOOKUP)
        assert len(server.requests) == 1
    assert application.facts("answer")["repairs"] == 0
    assert application.facts("answer")["outcome"] == "stopped_early 1/2"
    assert any("it was not repaired" in note for note in application.notes)
