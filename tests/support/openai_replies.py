"""Typed replies for the chat server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from chat_server import Chat, Request

QUOTE = "The Eiffel Tower is 330 metres tall."
ANSWER = "The Eiffel Tower is 330 metres tall, as was measured more than once [1]."
EVIDENCE = [{"passage": 1, "quote": QUOTE}]
STEP = {"changed": True, "answer": ANSWER, "complete": True, "evidence": EVIDENCE}
WHOLE = {
    "answer_found": True,
    "complete_answer_found": True,
    "value": ANSWER,
    "evidence": EVIDENCE,
    "confidence": 0.9,
}
UNCHANGED = {"changed": False}
PROSE = Chat(text="I would say that it is rather tall.")
SOON = {"retry-after-ms": "1", "Retry-After": "1"}
"""Headers with which a client tries again at once."""

Respond = Callable[[Request], Chat]


def prompt(request: Request) -> str:
    """What the request says, all messages together."""
    texts: list[str] = []
    for message in request["messages"]:
        content = message["content"]
        texts += [content] if isinstance(content, str) else [block["text"] for block in content]
    return "\n".join(texts)


def typed(request: Request, reply: Mapping[str, object], **more: object) -> Chat:
    """A typed reply by the way that the request asks for."""
    text = json.dumps(reply)
    chat = Chat(arguments=text) if "tools" in request else Chat(text=text)
    return Chat(**{**vars(chat), **more})


def wanted(request: Request) -> Mapping[str, object]:
    """The reply of the kind that the request wants."""
    step = "StepReply" in prompt(request) or "refine_answer" in json.dumps(request.get("tools", []))
    return STEP if step else WHOLE


def answering(request: Request) -> Chat:
    return typed(request, wanted(request))


def in_turn(*replies: Chat | Respond) -> Respond:
    """One reply after the other; the last one for ever."""
    remaining = list(replies)
    lock = threading.Lock()

    def respond(request: Request) -> Chat:
        with lock:
            reply = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return reply if isinstance(reply, Chat) else reply(request)

    return respond


@contextmanager
def hanging() -> Iterator[threading.Event]:
    """An event for which a server waits, and which is set in the end whatever happens."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()
