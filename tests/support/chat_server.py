"""A chat-completions server on loopback, for the real OpenAI clients to talk to.

It speaks the protocol as far as the clients use it: whole replies and server-sent events, text
and tool calls, usage, errors with their headers, malformed bodies, and replies that hang or trickle. What
it answers is a function of the request. Nothing in it sleeps: whatever waits, waits for an event, and
what trickles meanwhile does so until the event, too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import Loopback

Request = dict[str, Any]

CHUNK = "chat.completion.chunk"

TRICKLE = 0.05
"""Seconds between two bytes of a reply that trickles."""


@dataclass(frozen=True)
class Chat:
    """One reply of the server.

    Args:
        text: the message's content, where no tool is called.
        arguments: the arguments of the one tool call, as the raw JSON text; the tool is the
            request's first.
        pieces: characters in one delta of a stream.
        withhold: a stream waits for it before its last delta of text or arguments, a whole reply
            and a silent stream before anything.
        silent: a stream sends nothing at all while it is withheld.
        trickles: while it is withheld, bytes without meaning come now and then, after the headers: white
            space before a whole reply, comments in a stream.
        status: HTTP status; anything but 200 is an error reply.
        headers: further headers.
        body: sent in place of everything else, as it is.
        usage: prompt and completion tokens, or None where they are not reported; a stream
            reports them where the request asks for it (``stream_options``).
    """

    text: str | None = None
    arguments: str | None = None
    pieces: int = 7
    withhold: threading.Event | None = None
    silent: bool = False
    trickles: bool = False
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    usage: tuple[int, int] | None = (120, 15)


class ChatServer(Loopback):
    """Serves ``/v1/chat/completions`` while its context is entered.

    Args:
        respond: from a request's JSON to the reply.

    Attributes:
        requests: the JSON of every request, in order of arrival.
    """

    def __init__(self, respond: Callable[[Request], Chat]) -> None:
        self.respond = respond
        self.requests: list[Request] = []
        super().__init__()

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"{super().url}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(request)
                chat = server.respond(request)
                try:
                    if request.get("stream") and chat.status == 200 and chat.body is None:
                        self._stream(request, chat)
                    else:
                        self._whole(request, chat)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # the client has given up, as some tests want

            def _whole(self, request: Request, chat: Chat) -> None:
                if not chat.trickles:
                    self._withhold(chat, b"")
                body = chat.body
                if body is None and chat.status != 200:
                    body = json.dumps(
                        {"error": {"message": "refused by the test", "type": "test", "code": None}}
                    )
                if body is None:
                    body = json.dumps(_completion(request, chat))
                self.send_response(chat.status)
                self.send_header("Content-Type", "application/json")
                if chat.trickles:
                    self.send_header("Connection", "close")  # the body ends where the connection does
                else:
                    self.send_header("Content-Length", str(len(body.encode())))
                for name, value in chat.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if chat.trickles:
                    self._withhold(chat, b" ")
                    self.close_connection = True
                self.wfile.write(body.encode())

            def _stream(self, request: Request, chat: Chat) -> None:
                if chat.silent and not chat.trickles:
                    self._withhold(chat, b"")
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                if chat.silent and chat.trickles:
                    self._withhold(chat, b":\n")
                *deltas, last = _deltas(request, chat)
                for delta in deltas:
                    self._send(_chunk(request, delta))
                if not chat.silent:
                    self._withhold(chat, b":\n")
                self._send(_chunk(request, last))
                self._send(_chunk(request, {}, "stop" if chat.arguments is None else "tool_calls"))
                if (request.get("stream_options") or {}).get("include_usage"):
                    self._send({**_envelope(request, CHUNK), "choices": [], "usage": _usage(chat)})
                self.wfile.write(b"data: [DONE]\n\n")
                self.close_connection = True

            def _withhold(self, chat: Chat, trickle: bytes) -> None:
                """Wait as the reply says."""
                if chat.withhold is None:
                    return
                while not chat.withhold.wait(TRICKLE if chat.trickles else None):
                    self.wfile.write(trickle)

            def _send(self, chunk: dict[str, Any]) -> None:
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Quiet."""

        return Handler


def _completion(request: Request, chat: Chat) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": chat.text}
    if chat.arguments is not None:
        function = {"name": _tool_name(request), "arguments": chat.arguments}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    finish = "tool_calls" if chat.arguments is not None else "stop"
    return {
        **_envelope(request, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": _usage(chat),
    }


def _deltas(request: Request, chat: Chat) -> Iterator[dict[str, Any]]:
    """What a stream says, piece by piece."""
    whole = (chat.text if chat.arguments is None else chat.arguments) or ""
    pieces = [whole[start : start + chat.pieces] for start in range(0, len(whole), chat.pieces)]
    if chat.arguments is None:
        yield {"role": "assistant", "content": ""}
        yield from ({"content": piece} for piece in pieces)
        return
    call = {"index": 0, "id": "call_1", "type": "function"}
    function = {"name": _tool_name(request), "arguments": ""}
    yield {"role": "assistant", "content": chat.text, "tool_calls": [{**call, "function": function}]}
    yield from ({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces)


def _chunk(request: Request, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {**_envelope(request, CHUNK), "choices": [choice]}


def _envelope(request: Request, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": request.get("model", "test")}


def _tool_name(request: Request) -> str:
    return str(request["tools"][0]["function"]["name"])


def _usage(chat: Chat) -> dict[str, int] | None:
    if chat.usage is None:
        return None
    read, written = chat.usage
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
