"""The real OpenAI client of each framework under a deadline: its attempts, and what is left of them.

The client has the retries that it has by default, where a test does not say.
"""

from __future__ import annotations

import email.utils
import threading
from typing import Any

import httpx
import openai
import pytest
from applications import WAYS, Application, Framework
from chat_server import Chat, ChatServer, Request
from open_connections import CountedClients
from openai_replies import ANSWER, SOON, answering, hanging, in_turn, typed, wanted
from towers import LOOKUP, PASSAGES

from lara_plugins import QueryClock
from lara_plugins.answering.deadline import MOST_ABANDONED

each_way = pytest.mark.parametrize("way", WAYS)
each_stream = pytest.mark.parametrize("way", ["stream", "astream"])

LATER = {"Retry-After": "30"}


def with_clients(framework: Framework, clients: CountedClients) -> dict[str, Any]:
    """Settings of a client: these HTTP clients, and the usual retries."""
    http, async_http = framework.http_clients
    return {http: clients.http, async_http: clients.async_http, "max_retries": 3}


async def outcome(application: Application, way: str, afford: float) -> str:
    with QueryClock(afford):
        await application.told(way, LOOKUP)
    return str(application.facts("answer")["outcome"])


@each_way
@pytest.mark.parametrize("fault", ["hangs", "trickles", "asks for patience", "fails"])
async def test_a_call_past_the_deadline_leaves_no_thread_and_no_connection(
    framework: Framework, way: str, fault: str
) -> None:
    """More calls than may be left running, while the server lets go of none."""

    def respond(request: Request) -> Chat:
        match fault:
            case "hangs":
                return Chat(withhold=event, silent=True)
            case "trickles":
                return typed(request, wanted(request), withhold=event, silent=True, trickles=True)
            case "asks for patience":
                return Chat(status=429, headers=LATER)
            case _:
                return Chat(status=500, headers={"retry-after-ms": "250"})

    before = set(threading.enumerate())
    async with CountedClients() as clients:
        with hanging() as event, ChatServer(in_turn(answering, respond)) as server:
            application = framework.refine(server, **with_clients(framework, clients))
            await application.told(way, LOOKUP)  # a client's first call takes a while
            for _ in range(MOST_ABANDONED + 2):
                assert await outcome(application, way, afford=0.15) == "out_of_time"
            for thread in set(threading.enumerate()) - before:
                if thread.name == "lara-call":
                    thread.join(30.0)
                    assert not thread.is_alive()
            assert clients.in_use() == 0


@each_stream
async def test_a_stream_that_trickles_is_truncated(framework: Framework, way: str) -> None:
    with (
        hanging() as event,
        ChatServer(lambda r: typed(r, wanted(r), withhold=event, pieces=70, trickles=True)) as server,
    ):
        assert await outcome(framework.refine(server), way, afford=1.2) == "truncated"


@each_way
async def test_a_retry_past_the_deadline_is_not_awaited(framework: Framework, way: str) -> None:
    """It would take this test a hundred seconds."""
    refused = Chat(status=429, headers={"Retry-After": "110"})
    with ChatServer(in_turn(answering, refused)) as server:
        application = framework.refine(server, passages=PASSAGES[:9], max_retries=3)
        assert await outcome(application, way, afford=100.0) == "stopped_early 1/3"
        assert len(server.requests) == 2


@each_way
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_what_may_pass_is_tried_again(framework: Framework, way: str, status: int) -> None:
    refused = Chat(status=status, headers=SOON)
    with ChatServer(in_turn(refused, refused, answering)) as server:
        application = framework.refine(server, max_retries=2)
        assert await outcome(application, way, afford=60.0) == "complete"
        assert len(server.requests) == 3


@each_way
@pytest.mark.parametrize(
    "soon",
    [
        {"Retry-After": "0.001"},
        {"Retry-After": email.utils.formatdate(0.0)},
        {"Retry-After": "soon"},
        {"x-should-retry": "true"},
    ],
)
async def test_a_server_says_when(framework: Framework, way: str, soon: dict[str, str]) -> None:
    status = 418 if "x-should-retry" in soon else 429
    with ChatServer(in_turn(Chat(status=status, headers=soon), answering)) as server:
        application = framework.refine(server, max_retries=1)
        assert await outcome(application, way, afford=60.0) == "complete"


@each_way
@pytest.mark.parametrize(
    ("retries", "status", "headers", "requests"),
    [(2, 500, SOON, 3), (0, 429, SOON, 1), (2, 401, SOON, 1), (2, 500, {"x-should-retry": "false"}, 1)],
)
async def test_the_last_error_is_the_clients(
    framework: Framework, way: str, retries: int, status: int, headers: dict[str, str], requests: int
) -> None:
    with ChatServer(in_turn(Chat(status=status, headers=headers))) as server:
        application = framework.refine(server, max_retries=retries)
        with pytest.raises(openai.APIStatusError) as raised:
            await outcome(application, way, afford=60.0)
        assert raised.value.status_code == status
        assert "refused by the test" in str(raised.value)
        assert len(server.requests) == requests


@each_way
async def test_a_server_that_is_gone_is_tried_again(framework: Framework, way: str) -> None:
    tried: list[httpx.Request] = []

    async def atried(request: httpx.Request) -> None:
        tried.append(request)

    with ChatServer(answering) as server:
        pass
    async with CountedClients() as clients:
        clients.http.event_hooks = {"request": [tried.append]}
        clients.async_http.event_hooks = {"request": [atried]}
        application = framework.refine(server, **{**with_clients(framework, clients), "max_retries": 1})
        with pytest.raises(openai.APIConnectionError):
            await outcome(application, way, afford=60.0)
    assert len(tried) == 2


@each_way
async def test_the_clients_own_timeout_stays_its_error(framework: Framework, way: str) -> None:
    with hanging() as event, ChatServer(lambda request: Chat(withhold=event, silent=True)) as server:
        application = framework.refine(server, timeout=0.2)
        with pytest.raises(openai.APITimeoutError):
            await outcome(application, way, afford=60.0)


@each_way
async def test_the_http_client_stays_in_use_with_all_it_adds(framework: Framework, way: str) -> None:
    seen: list[httpx.Request] = []

    async def asee(request: httpx.Request) -> None:
        seen.append(request)

    async with CountedClients() as clients:
        for http in (clients.http, clients.async_http):
            http.headers["X-Tenant"] = "towers"
            http.cookies.set("session", "1")
        clients.http.event_hooks = {"request": [seen.append]}
        clients.async_http.event_hooks = {"request": [asee]}
        with ChatServer(answering) as server:
            application = framework.refine(server, **with_clients(framework, clients))
            with QueryClock(60.0):
                assert await application.told(way, LOOKUP) == ANSWER
            assert await application.told(way, LOOKUP) == ANSWER, "and without a deadline"
    bounded, unbounded = seen
    assert bounded.url == unbounded.url
    different = {"x-stainless-read-timeout", "x-stainless-async", "content-length"}
    for name, value in unbounded.headers.items():
        assert name in different or bounded.headers[name] == value
    assert bounded.headers["X-Tenant"] == "towers"


@each_way
async def test_both_generations_of_httpx_are_bounded(framework: Framework, way: str) -> None:
    httpx2 = pytest.importorskip("httpx2")
    replies = in_turn(
        Chat(status=503, headers=SOON),
        answering,
        lambda request: typed(request, wanted(request), withhold=event, silent=True, trickles=True),
    )
    sync, asynchronous = framework.http_clients
    async with httpx2.AsyncClient() as async_http:
        with httpx2.Client() as http, hanging() as event, ChatServer(replies) as server:
            application = framework.refine(server, max_retries=1, **{sync: http, asynchronous: async_http})
            assert await outcome(application, way, afford=60.0) == "complete"
            assert await outcome(application, way, afford=0.3) == "out_of_time"
