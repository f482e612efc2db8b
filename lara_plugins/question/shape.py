"""What a question asks for, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AnswerShape: TypeAlias = Literal[
    "amount",
    "date",
    "duration",
    "boolean",
    "entity",
    "definition",
    "count",
    "procedure",
    "list",
    "comparison",
    "superlative",
    "aggregate",
    "summary",
    "unknown",
]

SINGLE_VALUES: frozenset[AnswerShape] = frozenset(
    {"amount", "date", "duration", "boolean", "entity", "definition", "count"}
)
"""Shapes whose answer is one value that one passage can hold."""

Decomposition: TypeAlias = Literal["single", "several_asks", "multi_hop"]

Regime: TypeAlias = Literal["sequential", "batch", "refine"]


@dataclass(frozen=True, slots=True)
class QuestionShape:
    """What kind of answer a question asks for.

    Args:
        answer_shape: the kind of answer.
        decomposition: whether it is one ask, several, or one that needs another's answer first.
        language: ISO 639-1 code, or "und" where the language is not supported.
        rule: the name of the rule that fired.
        span: start and end of the words in the question that fired it.
    """

    answer_shape: AnswerShape
    decomposition: Decomposition
    language: str
    rule: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Route:
    """How a question is to be answered, and why.

    Args:
        regime: passage by passage (sequential), in one call (batch) or in windows (refine).
        rule: the line of the routing table that decided.
        reason: one sentence with the numbers.
        max_calls: where sequential ends for want of calls, or None for nowhere.
        max_tokens: where sequential ends for want of tokens of passages, or None for nowhere.
    """

    regime: Regime
    rule: str
    reason: str
    max_calls: int | None = None
    max_tokens: int | None = None
