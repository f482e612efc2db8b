"""A call of an OpenAI client that ends with a deadline.

Left to itself, such a client tries again as often as it is told to, sleeps in between as long as a
Retry-After says, and waits for a reply as long as now and then a byte of it comes. In synchronous
code nobody can stop it. So a call that has a deadline is made by a copy of the client that tries
once and sends its requests through a transport of ours, which hands them to the HTTP client of the
original: its pool of connections, its proxies and its hooks stay in use. The transport tries again
as the original would, while the time lasts.

What is left: where a reply hangs after it has begun, or its headers trickle, the thread of a
synchronous call waits as long for the next byte as was left when the attempt began.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, Self

from lara_plugins.answering.attempts import Attempts, Came
from lara_plugins.answering.deadline import DeadlinePassed

if TYPE_CHECKING:  # HTTPX2, which later clients send with, mirrors it
    import httpx


class OpenAIClient(Protocol):
    """What is used of ``openai.OpenAI``, of ``openai.AsyncOpenAI`` and of those for Azure."""

    max_retries: int
    _client: Any

    def with_options(self, *, max_retries: int, http_client: Any) -> Self:  # noqa: ANN401 - as OpenAI has it
        """A copy with other options."""


def until_deadline(client: OpenAIClient, seconds: float) -> OpenAIClient:
    """A copy of a client for one call, whose attempts and pauses all end with the deadline.

    Its errors are caused by ``DeadlinePassed`` where the next attempt would begin after the deadline,
    and where a reply still comes then, byte by byte. A client that sends neither with HTTPX nor with
    HTTPX2 is left as it is.

    Args:
        client: is asked ``client.max_retries`` times again, as it would do it by itself.
        seconds: until the deadline, from now.
    """
    http, until = client._client, time.monotonic() + seconds
    library = _library(http)
    if library is None:
        return client
    made: Any
    transport: _Transport | _AsyncTransport
    if isinstance(http, library.AsyncClient):
        made, transport = library.AsyncClient, _AsyncTransport(library, http, client.max_retries, until)
    else:
        made, transport = library.Client, _Transport(library, http, client.max_retries, until)
    # What an HTTP client adds to the requests that it makes, it adds before the transport.
    bounded = made(
        transport=transport,
        base_url=http.base_url,
        headers=http.headers,
        params=http.params,
        cookies=http.cookies,
    )
    return client.with_options(max_retries=0, http_client=bounded)


def _library(http: object) -> ModuleType | None:
    """The generation of HTTPX that a client is of."""
    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return next((one for one in loaded if one and isinstance(http, one.Client | one.AsyncClient)), None)


def _came(outcome: httpx.Response | httpx.TransportError) -> Came:
    if isinstance(outcome, Exception):
        return Came(type(outcome).__name__)
    return Came(f"answered {outcome.status_code}", outcome.status_code, outcome.headers)


def _result(outcome: httpx.Response | httpx.TransportError) -> httpx.Response:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _is_stream(response: httpx.Response) -> bool:
    return response.is_success and response.headers.get("content-type", "").startswith("text/event-stream")


class _Sender:
    """Sends requests by an HTTP client, of which it closes nothing."""

    def __init__(self, library: ModuleType, http: Any, retries: int, until: float) -> None:  # noqa: ANN401
        self._library, self._http, self._retries, self._until = library, http, retries, until

    def _attempts(self, request: httpx.Request) -> Attempts:
        return Attempts(request.extensions["timeout"], self._retries, self._until)

    def _passed_on(self, response: httpx.Response, body: object) -> httpx.Response:
        """A reply with its body as it came, still encoded."""
        passed_on: httpx.Response = self._library.Response(
            response.status_code, headers=response.headers, stream=body, extensions=response.extensions
        )
        return passed_on


class _Transport(_Sender):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        attempts = self._attempts(request)
        while True:
            request.extensions["timeout"] = attempts.begin()
            outcome = self._attempt(request)
            pause = attempts.pause(_came(outcome))
            if pause is None:
                return _result(outcome)
            time.sleep(pause)

    def _attempt(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        try:
            response = self._http.send(request, stream=True)
            body = _of(self._library.SyncByteStream, _Body)(response, self._until)
            if _is_stream(response):
                return self._passed_on(response, body)
            with closing(response):
                return self._passed_on(response, self._library.ByteStream(b"".join(body)))
        except self._library.TransportError as error:
            failed: httpx.TransportError = error
            return failed

    def close(self) -> None:
        """The HTTP client is not ours."""


class _AsyncTransport(_Sender):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        attempts = self._attempts(request)
        while True:
            request.extensions["timeout"] = attempts.begin()
            outcome = await self._attempt(request)
            pause = attempts.pause(_came(outcome))
            if pause is None:
                return _result(outcome)
            await asyncio.sleep(pause)

    async def _attempt(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        try:
            response = await self._http.send(request, stream=True)
            body = _of(self._library.AsyncByteStream, _AsyncBody)(response)
            if _is_stream(response):
                return self._passed_on(response, body)
            async with aclosing(response):
                whole = b"".join([piece async for piece in body])
                return self._passed_on(response, self._library.ByteStream(whole))
        except self._library.TransportError as error:
            failed: httpx.TransportError = error
            return failed

    async def aclose(self) -> None:
        """The HTTP client is not ours."""


class _Body:
    """A reply as it comes, until the deadline."""

    def __init__(self, response: httpx.Response, until: float) -> None:
        self._response, self._until = response, until

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._response.iter_raw():
            if time.monotonic() > self._until:
                raise DeadlinePassed
            yield piece

    def close(self) -> None:
        self._response.close()


class _AsyncBody:
    """A reply as it comes; at the deadline its reader is cancelled."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_raw():
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@cache
def _of(base: type, body: type) -> Any:  # noqa: ANN401 - a type that is made here
    """A body of the type that the library wants to see."""
    return type(body.__name__, (body, base), {})
