"""Latencies learned from each framework's own telling, and what reaches its real OpenAI client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from applications import WAYS, Framework
from chat_server import Chat, ChatServer, Request
from openai_replies import answering, hanging
from towers import LISTING, LOOKUP, PASSAGES

from lara_plugins import CalibratedLatency, Call, LatencyModel, Observation, PerChunkLatency, QueryClock

each_way = pytest.mark.parametrize("way", WAYS)
whole_ways = pytest.mark.parametrize("way", ["whole", "awhole"])


def taught(seconds: float = 0.02) -> CalibratedLatency:
    model = CalibratedLatency(overhead=0)
    for call in range(60):
        model.observe(Observation(500 + 20 * call, seconds * (1 + call / 300), seconds / 2, 50))
    return model


def text(request: Request) -> Chat:
    return Chat(text="It is 330 metres tall.")


@whole_ways
async def test_a_whole_call_teaches(framework: Framework, way: str) -> None:
    with ChatServer(text) as server:
        latency = framework.observe(server)
        await framework.chat(server, way)
        await framework.chat(server, way)
        assert latency.learned.observed == 2 == len(server.requests)
        assert [residual.tokens for residual in latency.learned.residuals] == [15.0] * 2


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_a_stream_that_other_code_reads_teaches_nothing(framework: Framework, way: str) -> None:
    with ChatServer(text) as server:
        latency = framework.observe(server)
        await framework.chat(server, way)
        assert latency.learned.observed == 0


@pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])
@each_way
async def test_every_call_of_an_answer_teaches(framework: Framework, way: str, tools: bool) -> None:
    with ChatServer(answering) as server:
        latency = framework.observe(server)
        await framework.refine(server, tools, PASSAGES[:6]).told(way, LOOKUP)
        assert latency.learned.observed == 2 == len(server.requests)


async def test_several_llms_in_one_process(framework: Framework) -> None:
    with ChatServer(text) as one, ChatServer(text) as other:
        first, second = framework.observe(one), framework.observe(other)
        assert framework.observe(one) is first
        await framework.chat(one, "whole")
        await asyncio.gather(*(framework.chat(other, "awhole") for _ in range(3)))
        await framework.chat(one, "whole", model="another")
        assert (first.learned.observed, second.learned.observed) == (1, 3)


@whole_ways
async def test_a_call_that_failed_teaches_nothing(framework: Framework, way: str) -> None:
    with ChatServer(lambda request: Chat(status=400)) as server:
        latency = framework.observe(server, taught(5.0))
        known = latency.learned
        with pytest.raises(Exception, match="refused by the test"):
            await framework.chat(server, way)
        assert latency.learned == known


@pytest.mark.parametrize("way", ["awhole", "astream"])
async def test_an_answer_that_outlives_the_deadline_is_a_miss(framework: Framework, way: str) -> None:
    with hanging() as event, ChatServer(lambda request: Chat(withhold=event, silent=True)) as server:
        latency = framework.observe(server, taught())
        before = latency.learned
        application = framework.refine(server, latency=0.001)
        with QueryClock(afford=0.5):
            await application.told(way, LOOKUP)
        assert application.facts("answer")["outcome"] == "out_of_time"
        assert latency.learned.missed == before.missed + 1
        assert latency.learned.margin > before.margin


@each_way
async def test_caps_reach_the_client(framework: Framework, way: str) -> None:
    def caps() -> list[int | None]:
        return [
            request.get("max_completion_tokens", request.get("max_tokens")) for request in server.requests
        ]

    with ChatServer(answering) as server:
        application = framework.refine(server, passages=PASSAGES[:6], latency=taught())
        with QueryClock(afford=60.0):
            await application.told(way, LOOKUP)
        assert len(caps()) == 2
        assert all(cap is not None and cap > 50 for cap in caps())
        server.requests.clear()
        for own, expected in ((77, range(77, 78)), (1_500, range(78, 1_500))):
            server.requests.clear()
            with QueryClock(afford=60.0):
                await framework.refine(server, latency=taught(5.0), max_tokens=own).told(way, LOOKUP)
            assert caps()
            assert all(cap in expected for cap in caps())
        server.requests.clear()
        await framework.refine(server).told(way, LOOKUP)
        assert caps() == [None]


class SecondsInTurn(LatencyModel):
    """A second a call; those made at once take a second together."""

    def predict(self, calls: Sequence[Call]) -> float:
        return float(len(calls))


@each_way
async def test_windows_at_once_where_the_plan_says_so(framework: Framework, way: str) -> None:
    passages = PASSAGES[:12]
    with ChatServer(answering) as server, QueryClock(2.5, now=lambda: 100.0):
        for at_once, tools in ((1, ["refine_answer"] * 4), (4, ["give_answer"] * 4 + ["refine_answer"])):
            application = framework.refine(
                server, passages=passages, latency=SecondsInTurn(), at_once=at_once
            )
            server.requests.clear()
            await application.told(way, LOOKUP)
            assert [request["tools"][0]["function"]["name"] for request in server.requests] == tools
            assert application.facts("answer")["outcome"] == "complete"


async def test_the_router_reads_windows_at_once_too(framework: Framework) -> None:
    with ChatServer(answering) as server, QueryClock(2.5, now=lambda: 100.0):
        application = framework.route(server, passages=PASSAGES[:12], latency=SecondsInTurn(), at_once=4)
        await application.told("whole", LISTING)
        assert application.facts("route")["way"] == "at_once"
        assert application.facts("answer")["calls"] == 5


def test_the_gate_knows_what_answering_takes(framework: Framework) -> None:
    with ChatServer(answering) as server:
        allowed = []
        for latency in (PerChunkLatency(), taught()):
            application = framework.pipeline(server, afford=10.0, latency=latency)
            with QueryClock(10.0, now=lambda: 100.0):
                application.whole(LOOKUP)
            allowed.append(application.facts("gate")["allowed"])
        assert allowed[0] == 4.0
        assert 9.0 < allowed[1] < 10.0
