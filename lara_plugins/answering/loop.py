"""What passes between an answering loop and whoever drives it."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lara_plugins.answering.contract import NO_ANSWER, AnswerWithEvidence, RawReply, ReplyType
from lara_plugins.passages import Passage, Span

Step: TypeAlias = Literal["refine", "sequential", "batch"]


@dataclass(frozen=True, slots=True)
class Numbered:
    """A passage, or a piece of one, under the number by which the answer cites it."""

    number: int
    passage: Passage


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply could not be read, for the one repair ask that it gets."""

    reply: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A question for the LLM, not yet rendered.

    Args:
        step: which loop asks.
        question: the user's question.
        passages: what is shown.
        reply: the type of reply that is wanted.
        previous: the answer so far, where there is one.
        last: True where this ask's answer is the final one, so that it may be streamed.
        timeout: seconds after which the reply is of no use any more; may be infinite.
        fault: on a repair ask, what was wrong with the earlier reply.
        number: which ask of its loop it is, from 1; a repair bears the number of what it repairs.
        max_output_tokens: the cap on what is written, for an LLM that takes one; None for its own.
    """

    step: Step
    question: str
    passages: tuple[Numbered, ...]
    reply: ReplyType
    previous: AnswerWithEvidence = NO_ANSWER
    last: bool = False
    timeout: float = math.inf
    fault: Fault | None = None
    number: int = 0
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class AskMany:
    """Several asks to be made at once; answered by their replies, in the same order."""

    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider reports them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from an ask.

    Args:
        raw: the LLM's reply; None where the call outlived the deadline.
        time_left: seconds until the deadline, now; infinite without one.
        usage: tokens, where the provider reports them.
        shown: answer text that a streaming driver has shown already; it is never taken back.
        seconds: what the call took.
    """

    raw: RawReply | None
    time_left: float = math.inf
    usage: Usage | None = None
    shown: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Emit:
    """Answer text that was decided without being streamed, for a streaming driver to show."""

    text: str


@dataclass(frozen=True, slots=True)
class AskRecord:
    """What one ask brought, for the trace; ``beside`` where it was made at once with the one before."""

    numbers: tuple[int, ...]
    brought: str
    predicted: float
    seconds: float
    time_left: float
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a loop returns.

    Args:
        evidence: the typed answer.
        calls: asks that were made, repairs apart.
        repairs: repair asks that were made.
        outcome: how the loop ended: ``complete``, ``sufficient``, ``exhausted``, ``budget``,
            ``stopped_early i/m``, ``out_of_time``, ``truncated``, ``unparsable``, ``no_passages``.
        trace: one record an ask.
        notes: what else a reader must know.
        sent: the passages; ``[n]`` in the answer cites ``sent[n - 1]``.
        usage: tokens, summed; None where the provider reports none.
        text: the answer as a person reads it, which is what a stream shows.
        replayed: True where a streaming driver shows the text after it was decided.
        escalated: True where a sequential answer that was exhausted went once to one call.
    """

    evidence: AnswerWithEvidence
    calls: int
    repairs: int
    outcome: str
    trace: tuple[AskRecord, ...] = ()
    notes: tuple[str, ...] = ()
    sent: tuple[Passage, ...] = ()
    usage: Usage | None = None
    text: str = ""
    replayed: bool = True
    escalated: bool = False

    @property
    def citations(self) -> dict[int, tuple[Span, ...]]:
        """The verified spans by the number under which the answer cites their passage."""
        spans: dict[int, tuple[Span, ...]] = {}
        for number, passage in enumerate(self.sent, start=1):
            of_passage = tuple(span for span in self.evidence.evidence if span.passage_id == passage.id)
            if of_passage:
                spans[number] = of_passage
        return spans


Wanted: TypeAlias = Ask | AskMany | Emit
"""What a loop yields: what it wants asked or shown."""

Returned: TypeAlias = Reply | tuple[Reply, ...] | None
"""What a loop is sent: what came back (None after an Emit)."""

Loop: TypeAlias = Generator[Wanted, Returned, Answer]
"""Yields what it wants, is sent what came back, returns the answer."""

SecondsFor: TypeAlias = Callable[[Sequence[Passage]], float]
"""Predicts the seconds of one ask over some passages."""

Fits: TypeAlias = Callable[[Sequence[Passage]], bool]
"""Whether some passages fit one prompt."""


def no_time(passages: Sequence[Passage]) -> float:
    """The prediction where nobody predicts: an ask takes no time."""
    return 0.0


def always_fits(passages: Sequence[Passage]) -> bool:
    """The limit where there is none."""
    return True
