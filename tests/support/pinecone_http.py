"""What the parts of the Pinecone stand-in share: JSON over HTTP, versions, faults, error bodies."""

from __future__ import annotations

import json
import threading
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from loopback import Loopback

Json = dict[str, Any]

VERSIONS = ("2025-04", "2025-10", "2026-01.alpha", "2026-04", "2026-07")
"""The versions of the interface that the stand-in speaks."""

MOST_BYTES = 2_000_000
"""The largest body of a request."""


class Refused(Exception):
    """A request that is answered with an error.

    Args:
        status: of HTTP.
        code: Pinecone's name of the error.
        message: what the caller reads.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Request:
    """A request as it came, and how it was answered.

    Attributes:
        query: the values of each query parameter.
        answered: the status, or None where the connection was cut.
        answer: the body of the answer, None where it has none.
    """

    method: str
    path: str
    version: str
    query: dict[str, list[str]] = field(default_factory=dict)
    body: Json = field(default_factory=dict)
    answered: int | None = None
    answer: Json | None = None


@dataclass
class Fault:
    """What befalls requests for a path in place of their answer.

    Args:
        path: the path.
        times: how many requests it befalls.
        skip: requests that are answered before it begins.
        status: the error's status; None cuts the connection without an answer.
        done: whether the request takes effect all the same.
        retry_after: seconds for the ``Retry-After`` header.
    """

    path: str
    times: int = 1
    skip: int = 0
    status: int | None = 503
    done: bool = False
    retry_after: float | None = None


@dataclass
class Held:
    """Keeps one request for a path waiting, while others are answered, until it is released.

    Args:
        path: the path.
        done: whether it takes effect before it waits, and not after.

    Attributes:
        arrived: set when it waits.
        released: set by the test when it may go on.
    """

    path: str
    done: bool = False
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Let the test know, and wait for it."""
        self.arrived.set()
        if not self.released.wait(60):
            raise TimeoutError(f"a test has held {self.path} and not released it")


CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class PineconeHttp(Loopback):
    """Serves one host of Pinecone's while its context is entered.

    Attributes:
        requests: every request, in order of arrival.
        faults: what goes wrong, in this order of precedence; a test adds to it.
        held: what is kept waiting, each once; a test adds to it.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.held: list[Held] = []
        self._lock = threading.Lock()
        super().__init__()

    @abstractmethod
    def answer(self, request: Request) -> tuple[int, Json | None]:
        """Status and body of the answer.

        Raises:
            Refused: the answer is an error.
        """

    @abstractmethod
    def error(self, status: int, code: str, message: str) -> Json:
        """The body of an error."""

    def headers(self) -> dict[str, str]:
        """Further headers of an answer."""
        return {}

    def bodies(self, path: str) -> list[Json]:
        """What was sent to a path, in order of arrival."""
        return [request.body for request in self.requests if request.path == path]

    def serve(self, request: Request) -> tuple[int | None, Json | None, dict[str, str]]:
        """Status, body and headers for a request; no status where the connection is cut."""
        held = self._holding(request.path)
        if held is not None and not held.done:
            held.wait()
        served = self._served(request)
        if held is not None and held.done:
            held.wait()
        return served

    def _served(self, request: Request) -> tuple[int | None, Json | None, dict[str, str]]:
        with self._lock:
            fault = self._fault(request.path)
            headers: dict[str, str] = {}
            status: int | None
            body: Json | None
            try:
                status, body = self._answer(request, fault)
                headers = self.headers()
            except Refused as refused:
                status, body = refused.status, self.error(refused.status, refused.code, str(refused))
            if fault is not None and fault.retry_after is not None:
                headers = {**headers, "Retry-After": f"{fault.retry_after:g}"}
            self.requests.append(replace(request, answered=status, answer=body))
            return status, body, headers

    def _answer(self, request: Request, fault: Fault | None) -> tuple[int | None, Json | None]:
        if request.version not in VERSIONS:
            raise Refused(400, "INVALID_ARGUMENT", f"unknown API version {request.version!r}")
        if fault is None:
            return self.answer(request)
        if fault.done:
            self.answer(request)
        if fault.status is None:
            return None, None
        raise Refused(fault.status, CODES[fault.status], f"{fault.status} of this test")

    def _holding(self, path: str) -> Held | None:
        with self._lock:
            held = next((each for each in self.held if each.path == path), None)
            if held is not None:
                self.held.remove(held)
            return held

    def _fault(self, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.path == path and fault.times:
                if fault.skip:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                return fault
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: two would wait for each other

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                url = urlsplit(self.path)
                request = Request(
                    self.command,
                    unquote(url.path),
                    self.headers.get("X-Pinecone-Api-Version", ""),
                    parse_qs(url.query, keep_blank_values=True),
                    json.loads(raw) if raw and length <= MOST_BYTES else {},
                )
                status: int | None
                body: Json | None
                headers: dict[str, str] = {}
                if length > MOST_BYTES:
                    message = f"the request of {length} bytes exceeds the limit of {MOST_BYTES}"
                    status, body = 400, server.error(400, "INVALID_ARGUMENT", message)
                elif not self.headers.get("Api-Key"):
                    status, body = 401, server.error(401, "UNAUTHENTICATED", "no Api-Key")
                else:
                    status, body, headers = server.serve(request)
                if status is None:
                    self.close_connection = True
                    return
                content = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = _serve  # noqa: N815

            def log_message(self, *arguments: object) -> None:
                """Tests print nothing."""

        return Handler
