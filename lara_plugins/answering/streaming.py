"""The answer text inside a typed reply, while the reply is still being written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic_core import from_json

from lara_plugins.answering.contract import ReplyType, StepReply
from lara_plugins.answering.fences import is_echo

PIECE = 24
"""Characters in a piece of a replayed text."""


class AnswerFieldReader:
    """Releases the answer's text from a growing JSON reply, once its verdict is known to be good.

    Args:
        reply_type: the type of reply that is being written.
    """

    def __init__(self, reply_type: ReplyType) -> None:
        self.raw = ""
        self.shown = ""
        self._verdict, self._text = (
            ("changed", "answer") if reply_type is StepReply else ("answer_found", "value")
        )

    def feed(self, delta: str) -> str:
        """Take the next piece of the reply and return the answer text that it releases."""
        self.raw += delta
        start = self.raw.find("{")
        if start < 0 or is_echo(self.raw):
            return ""
        try:
            reply = from_json(self.raw[start:], allow_partial="trailing-strings")
        except ValueError:
            return ""  # amid an escape sequence, or no JSON; the whole reply is judged by its parser
        if not isinstance(reply, Mapping) or reply.get(self._verdict) is not True:
            return ""
        text = reply.get(self._text)
        if not isinstance(text, str) or not text.startswith(self.shown):
            return ""
        # Trailing white space waits: the finished answer is shown without it.
        released = text.rstrip()[len(self.shown) :]
        self.shown += released
        return released


def pieces(text: str) -> Iterator[str]:
    """A text that is known already, in pieces of a few words, as a stream would bring it."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]
