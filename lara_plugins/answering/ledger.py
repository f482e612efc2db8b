"""What one loop has asked so far: the asks, the repairs, the time, and how it ends."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TypeVar

from lara_plugins.answering.contract import AnswerReply, AnswerWithEvidence, Quote, StepReply
from lara_plugins.answering.loop import (
    Answer,
    Ask,
    AskMany,
    AskRecord,
    Emit,
    Fault,
    Reply,
    Returned,
    Usage,
    Wanted,
)
from lara_plugins.answering.quotes import Verified, citation_caveats, cited_numbers, verify_quotes
from lara_plugins.answering.reply import read_reply
from lara_plugins.answering.streaming import pieces
from lara_plugins.answering.wording import answer_text
from lara_plugins.errors import ReplyError
from lara_plugins.passages import Passage, Span

R = TypeVar("R", StepReply, AnswerReply)


class Expired(Exception):
    """An ask outlived the deadline."""


class Unreadable(Exception):
    """Neither the reply nor its repair could be read."""


class Ledger:
    """Keeps the books of one loop.

    Args:
        passages: what the answer may cite, best first.
        time_left: seconds until the deadline.
    """

    def __init__(self, passages: Sequence[Passage], time_left: float) -> None:
        self.sent = tuple(passages)
        self.time_left = time_left
        self.calls = 0
        self.shown = ""
        self._by_number = dict(enumerate(self.sent, start=1))
        self._repairs = 0
        self._usage: Usage | None = None
        self._records: list[AskRecord] = []
        self._notes: list[str] = []

    def ask(self, ask: Ask, reply_type: type[R], predicted: float) -> Generator[Wanted, Returned, R]:
        """Ask, and ask once more where the reply cannot be read.

        Raises:
            Expired: the call outlived the deadline.
            Unreadable: neither the reply nor its repair is the typed reply.
        """
        self.calls += 1
        ask = replace(ask, number=self.calls)
        reply = yield from self._exchange(replace(ask, timeout=self.time_left), predicted)
        try:
            return read_reply(reply.raw or "", reply_type)
        except ReplyError as fault:
            if reply.shown or predicted > self.time_left:
                # Shown text is not taken back, and a repair must fit the time like any ask.
                self._unreadable(reply, f"{fault}; it was not repaired")
                raise Unreadable from fault
            self.note(f"ask {self.calls}: {fault}; it was asked again")
            repair = replace(ask, timeout=self.time_left, fault=Fault(str(reply.raw), str(fault)))
        self._repairs += 1
        reply = yield from self._exchange(repair, predicted)
        try:
            return read_reply(reply.raw or "", reply_type)
        except ReplyError as fault:
            self._unreadable(reply, f"the repair failed too: {fault}")
            raise Unreadable from fault

    def _unreadable(self, reply: Reply, why: str) -> None:
        # What the model wrote is kept: somebody may still make sense of it.
        self.note(f"ask {self.calls}: {why}")
        self.note(f"the unread reply of ask {self.calls}: {reply.raw}")

    def ask_many(self, asks: Sequence[Ask]) -> Generator[Wanted, Returned, tuple[Reply, ...]]:
        """Ask several at once; each reply is then to be taken with ``take``."""
        replies = yield AskMany(
            tuple(
                replace(ask, timeout=self.time_left, number=number)
                for number, ask in enumerate(asks, start=self.calls + 1)
            )
        )
        if not isinstance(replies, tuple) or len(replies) != len(asks):
            raise TypeError(f"an AskMany of {len(asks)} asks was answered with {replies!r}: send its replies")
        self.time_left = min(reply.time_left for reply in replies)
        return replies

    def take(
        self, ask: Ask, reply: Reply, reply_type: type[R], predicted: float, *, beside: bool = False
    ) -> R:
        """Read one of the replies to asks that were made at once; they get no repair.

        Args:
            ask: the ask.
            reply: its reply.
            reply_type: what was asked for.
            predicted: the seconds that the ask was predicted to take.
            beside: False for the first of them.

        Raises:
            Expired: the call outlived the deadline.
            Unreadable: it is not the typed reply.
        """
        self.calls += 1
        self._enter(ask, reply, predicted, beside)
        try:
            return read_reply(reply.raw or "", reply_type)
        except ReplyError as fault:
            self._unreadable(reply, f"{fault}; it was not repaired")
            raise Unreadable from fault

    def _exchange(self, ask: Ask, predicted: float) -> Generator[Wanted, Returned, Reply]:
        reply = yield ask
        if not isinstance(reply, Reply):
            raise TypeError(f"an Ask was answered with {reply!r}: send a Reply")
        self.time_left = reply.time_left
        self._enter(ask, reply, predicted)
        return reply

    def _enter(self, ask: Ask, reply: Reply, predicted: float, beside: bool = False) -> None:
        self.shown += reply.shown
        if reply.usage is not None:
            self._usage = reply.usage if self._usage is None else self._usage + reply.usage
        numbers = tuple(item.number for item in ask.passages)
        brought = "expired" if reply.raw is None else "reply"
        self._records.append(AskRecord(numbers, brought, predicted, reply.seconds, reply.time_left, beside))
        if reply.raw is None:
            raise Expired

    def verify(self, value: str, quotes: Sequence[Quote], carried: Sequence[Span] = ()) -> Verified:
        """The spans that support an answer: of its quotes, and those carried over that it still cites."""
        verified = verify_quotes(quotes, self._by_number)
        cited = {self._by_number[n].id for n in cited_numbers(value) if n in self._by_number}
        kept = [span for span in carried if span.passage_id in cited and span not in verified.spans]
        spans = (*kept, *verified.spans)
        return Verified(spans, verified.caveats + citation_caveats(value, spans, self._by_number))

    def brought(self, what: str) -> None:
        """Say what the latest ask brought."""
        self._records[-1] = replace(self._records[-1], brought=what)

    def note(self, text: str) -> None:
        """Add what a reader must know."""
        self._notes.append(text)

    def finish(self, evidence: AnswerWithEvidence, outcome: str) -> Generator[Wanted, Returned, Answer]:
        """The loop's answer, after whatever of its text has not been shown."""
        answer = Answer(
            evidence=evidence,
            calls=self.calls,
            repairs=self._repairs,
            outcome=outcome,
            trace=tuple(self._records),
            notes=tuple(self._notes),
            sent=self.sent,
            usage=self._usage,
        )
        text = answer_text(answer)
        if self.shown and not text.startswith(self.shown):
            # What has been shown is the answer that the reader has; the verdict is in the notes.
            note = f"the text was shown before its verdict: {evidence.value or 'no supported answer'}"
            return replace(answer, text=self.shown, replayed=False, notes=(*answer.notes, note))
        for piece in pieces(text[len(self.shown) :]):
            yield Emit(piece)
        return replace(answer, text=text, replayed=not self.shown)
