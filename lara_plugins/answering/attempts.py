"""All attempts at one call of an OpenAI client, within a deadline.

Left to itself, such a client tries again as often as it is told to, sleeps in between as long as a
Retry-After says, and waits for a reply as long as now and then a byte of it comes. In synchronous
code nobody can stop it. So a call that has a deadline is made by a copy of the client that tries
once and sends its requests through a transport of ours, which hands them to the HTTP client of the
original: its pool of connections, its proxies and its hooks stay in use. The transport tries again
as the original would, while the time lasts.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing
from typing import Any, Protocol, Self

import httpx

from lara_plugins.answering.deadline import DeadlinePassed

_logger = logging.getLogger(__name__)

GRACE = 0.1
"""Seconds after the deadline at which the client stops to wait, so that its own error never comes before."""

LONGEST_RETRY_AFTER = 120.0
"""Seconds; a server that wants to be left alone for longer is not asked again."""


class OpenAIClient(Protocol):
    """What is used of ``openai.OpenAI``, of ``openai.AsyncOpenAI`` and of those for Azure."""

    max_retries: int
    _client: object

    def with_options(self, *, max_retries: int, http_client: Any) -> Self:  # noqa: ANN401 - as OpenAI has it
        """A copy with other options."""


def until_deadline(client: OpenAIClient, seconds: float) -> OpenAIClient:
    """A copy of a client for one call, whose attempts and pauses all end with the deadline.

    It raises ``DeadlinePassed`` where the next attempt would begin after the deadline, and where a
    reply still comes then, byte by byte. A client that does not send with HTTPX is left as it is.

    Args:
        client: is asked ``client.max_retries`` times again, as it would do it by itself.
        seconds: until the deadline, from now.
    """
    until = time.monotonic() + seconds
    match client._client:
        case httpx.Client() as http:
            bounded: object = httpx.Client(
                transport=_Transport(http, client.max_retries, until), **_settings(http)
            )
        case httpx.AsyncClient() as ahttp:
            bounded = httpx.AsyncClient(
                transport=_AsyncTransport(ahttp, client.max_retries, until), **_settings(ahttp)
            )
        case _:
            return client
    return client.with_options(max_retries=0, http_client=bounded)


def _settings(http: httpx.Client | httpx.AsyncClient) -> dict[str, Any]:
    """What an HTTP client adds to the requests that it makes."""
    return {
        "base_url": http.base_url,
        "headers": http.headers,
        "params": http.params,
        "cookies": http.cookies,
    }


class Attempts:
    """The attempts at one request: what each may take, and whether there is another.

    Args:
        own: the request's own timeouts, by HTTPX's names, in seconds.
        retries: attempts after the first.
        until: the deadline, on the monotonic clock.
    """

    def __init__(self, own: Mapping[str, float | None], retries: int, until: float) -> None:
        self._own, self._retries, self._until = own, retries, until
        self._made = 0

    def begin(self) -> dict[str, float]:
        """The timeouts of the next attempt.

        Raises:
            DeadlinePassed: it would begin after the deadline.
        """
        left = self._until - time.monotonic()
        if left <= 0.0:
            raise DeadlinePassed
        self._made += 1
        longest = left + GRACE
        return {name: min(longest, longest if own is None else own) for name, own in self._own.items()}

    def pause(self, outcome: httpx.Response | httpx.TransportError) -> float | None:
        """Seconds until the next attempt; None where the outcome of this one stands.

        Which outcomes are tried again and when is the rule of OpenAI's client: a request that did not
        come through, 408, 409, 429 and 5xx, or what the server itself says; after ``Retry-After`` or
        else 0.5 s, doubled each time up to 8 s, less up to a quarter by chance.

        Raises:
            DeadlinePassed: the next attempt would begin after the deadline.
        """
        headers = outcome.headers if isinstance(outcome, httpx.Response) else httpx.Headers()
        asked = _retry_after(headers)
        if self._made > self._retries or not _is_passing(outcome) or asked > LONGEST_RETRY_AFTER:
            return None
        backoff = min(0.5 * 2.0 ** (self._made - 1), 8.0) * (1.0 - 0.25 * random.random())  # noqa: S311
        pause = asked if asked > 0.0 else backoff
        left = self._until - time.monotonic()
        if pause >= left:
            if left > 0.0:
                _logger.warning(
                    "%s: another attempt after %.1f s would be past the deadline", _name(outcome), pause
                )
            raise DeadlinePassed
        return pause


def _name(outcome: httpx.Response | httpx.TransportError) -> str:
    if isinstance(outcome, httpx.Response):
        return f"the LLM's server answered {outcome.status_code}"
    return f"the LLM's server was not reached ({type(outcome).__name__})"


def _is_passing(outcome: httpx.Response | httpx.TransportError) -> bool:
    """Whether another attempt may bring something else."""
    if not isinstance(outcome, httpx.Response):
        return True
    if outcome.is_success:
        return False
    said = outcome.headers.get("x-should-retry")
    return said == "true" or (
        said != "false" and (outcome.status_code in {408, 409, 429} or outcome.is_server_error)
    )


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds after which the server wants to be asked again; 0.0 where it does not say."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers.get(name, "")) * unit
        except ValueError:
            continue
    date = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return 0.0 if date is None else email.utils.mktime_tz(date) - time.time()


def _result(outcome: httpx.Response | httpx.TransportError) -> httpx.Response:
    if isinstance(outcome, httpx.TransportError):
        raise outcome
    return outcome


def _is_stream(response: httpx.Response) -> bool:
    return response.is_success and response.headers.get("content-type", "").startswith("text/event-stream")


def _passed_on(
    response: httpx.Response, body: httpx.SyncByteStream | httpx.AsyncByteStream
) -> httpx.Response:
    return httpx.Response(
        response.status_code, headers=response.headers, stream=body, extensions=response.extensions
    )


class _Transport(httpx.BaseTransport):
    def __init__(self, http: httpx.Client, retries: int, until: float) -> None:
        self._http, self._retries, self._until = http, retries, until

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        attempts = Attempts(request.extensions["timeout"], self._retries, self._until)
        while True:
            request.extensions["timeout"] = attempts.begin()
            outcome = self._attempt(request)
            pause = attempts.pause(outcome)
            if pause is None:
                return _result(outcome)
            time.sleep(pause)

    def _attempt(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        try:
            response = self._http.send(request, stream=True)
            body = _Body(response, self._until)
            if _is_stream(response):
                return _passed_on(response, body)
            with closing(response):
                return _passed_on(response, httpx.ByteStream(b"".join(body)))
        except httpx.TransportError as error:
            return error


class _AsyncTransport(httpx.AsyncBaseTransport):
    def __init__(self, http: httpx.AsyncClient, retries: int, until: float) -> None:
        self._http, self._retries, self._until = http, retries, until

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        attempts = Attempts(request.extensions["timeout"], self._retries, self._until)
        while True:
            request.extensions["timeout"] = attempts.begin()
            outcome = await self._attempt(request)
            pause = attempts.pause(outcome)
            if pause is None:
                return _result(outcome)
            await asyncio.sleep(pause)

    async def _attempt(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        try:
            response = await self._http.send(request, stream=True)
            body = _AsyncBody(response)
            if _is_stream(response):
                return _passed_on(response, body)
            async with aclosing(response):
                return _passed_on(response, httpx.ByteStream(b"".join([piece async for piece in body])))
        except httpx.TransportError as error:
            return error


class _Body(httpx.SyncByteStream):
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


class _AsyncBody(httpx.AsyncByteStream):
    """A reply as it comes; at the deadline its reader is cancelled."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_raw():
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()
