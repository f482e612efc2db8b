"""The one parser of an LLM's reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeVar

from pydantic import ValidationError

from lara_plugins.answering.contract import AnswerReply, RawReply, StepReply
from lara_plugins.answering.fences import is_echo
from lara_plugins.errors import ReplyError

R = TypeVar("R", StepReply, AnswerReply)

MOST_OBJECTS = 16
"""JSON objects that are looked at in one reply before it counts as prose."""


def read_reply(raw: RawReply, reply_type: type[R]) -> R:
    """Read the typed reply out of what an LLM sent back.

    The JSON object may stand alone, in a code fence, or amid prose.

    Args:
        raw: the LLM's text, or the arguments of its tool call.
        reply_type: what was asked for.

    Raises:
        ReplyError: there is no such reply, or several that differ; one sentence that can be sent
            back to the LLM.
    """
    if isinstance(raw, str) and is_echo(raw):
        raise ReplyError(f"the reply is not a {reply_type.__name__}: it repeats the prompt")
    fault = "it holds no JSON object"
    replies: list[R] = []
    for candidate in [raw] if isinstance(raw, Mapping) else _objects(raw):
        try:
            reply = reply_type.model_validate(candidate)
        except ValidationError as error:
            fault = _sentence(error)
        else:
            replies += [] if reply in replies else [reply]
    if len(replies) > 1:
        # One of them may be the text of a passage.
        fault = f"it holds {len(replies)} different ones; give one"
    if len(replies) != 1:
        raise ReplyError(f"the reply is not a {reply_type.__name__}: {fault}")
    return replies[0]


def _objects(text: str) -> Iterator[Mapping[str, object]]:
    """The JSON objects in a text, outermost first, in order."""
    decoder = json.JSONDecoder()
    position = text.find("{")
    for _ in range(MOST_OBJECTS):
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):  # no JSON, or a number of thousands of digits
            end = position + 1
        else:
            yield value
        position = text.find("{", end)


def _sentence(error: ValidationError) -> str:
    """What is wrong, by field, without the values: they may be a user's text."""
    faults = (
        f"{'.'.join(str(part) for part in fault['loc']) or 'reply'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False, include_context=False)
    )
    return "; ".join(faults)
