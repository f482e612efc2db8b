"""Scoring in blocks, so that it stops in time, and the one way from raw numbers to scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from lara_plugins.arguments import check_choice
from lara_plugins.errors import InvalidArgument, ScoreError
from lara_plugins.gate.scorer import ScoreKind, Scorer
from lara_plugins.passages import Score

GATE_SHARE = 0.4
"""Share of the latency budget that scoring may spend."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What scoring came to.

    Args:
        scores: one a text, in order; None where scoring stopped before it.
        truncated: positions of texts that were scored on as much as fits the model's window.
    """

    scores: tuple[Score | None, ...]
    truncated: tuple[int, ...]


def score_in_time(
    scorer: Scorer, question: str, texts: Sequence[str], seconds_left: Callable[[], float]
) -> Scored:
    """Score texts in order until they end or the time does.

    The clock is read between blocks, so the time is overrun by one block at most; where a scorer
    serves one thread at a time, its wait for the blocks of others belongs to that block. The
    first block is scored even when no time is left: without it nothing could be answered at all.

    Args:
        scorer: the cross-encoder.
        question: what the texts are scored against.
        texts: in retrieval order, so that the most promising are scored first.
        seconds_left: how many seconds scoring may still take.

    Raises:
        InvalidArgument: the question is empty.
        ScoreError: the scorer returned something that is not a score.
    """
    checked_question(question)
    scores: list[Score | None] = []
    truncated: list[int] = []
    for block in scorer.blocks(question, texts) if texts else ():
        start = len(scores)
        scores.extend(to_scores(block.scores, scorer.score_kind))
        truncated.extend(start + position for position in block.truncated)
        if len(scores) > len(texts):
            break
        if seconds_left() <= 0:
            break
    else:
        if len(scores) != len(texts):
            raise ScoreError(f"the scorer returned {len(scores)} scores for {len(texts)} passages")
    if len(scores) > len(texts):
        raise ScoreError(f"the scorer returned {len(scores)} or more scores for {len(texts)} passages")
    scores.extend([None] * (len(texts) - len(scores)))
    return Scored(tuple(scores), tuple(truncated))


def to_scores(raw: Sequence[float], kind: ScoreKind) -> list[Score]:
    """Raw numbers as scores: logits through one float64 sigmoid, probabilities as they are.

    Raises:
        ScoreError: NaN, infinity, a probability outside 0..1, what is no number.
        InvalidArgument: the kind is unknown.
    """
    check_choice("score_kind", kind, get_args(ScoreKind))
    return list(map(Score.from_logit if kind == "logit" else Score.from_probability, raw))


def checked_question(question: str) -> str:
    """The question, or InvalidArgument where there is none."""
    if not isinstance(question, str):
        raise InvalidArgument("question", question, "ask something, as a text")
    if not question.strip():
        raise InvalidArgument("question", question, "ask something; an empty question has no answer")
    return question
