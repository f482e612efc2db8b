"""Thresholds with a finite-sample guarantee, from scores alone; nothing is assumed of their scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def recall_threshold(relevant: Sequence[Sequence[float]], recall: float) -> float | None:
    """The highest threshold that keeps a share ``recall`` of a new question's evidence, in expectation.

    With one relevant passage a question it is split conformal's: the k-th smallest score, k =
    floor(alpha (n + 1)), alpha = 1 - recall. In general it is conformal risk control (Angelopoulos
    et al., ICLR 2024): the highest t with sum_i miss_i(t) + 1 <= alpha (n + 1), miss_i(t) being the
    share of question i's passages that score below t. It holds on average over draws of the
    questions and of the new one, if they are exchangeable; computed exactly.

    Args:
        relevant: for each question the scores of its relevant passages, at least one.
        recall: the share to keep, within 0..1, both excluded.

    Returns:
        One of the scores, or None where no threshold of that many questions can promise it.
    """
    allowed = _exact(1 - _exact(recall)) * (len(relevant) + 1) - 1
    if allowed < 0 or not relevant:
        return None
    weighed = sorted((score, Fraction(1, len(scores))) for scores in relevant for score in scores)
    threshold, missed = weighed[0][0], Fraction(0)
    for score, weight in weighed:
        if score > threshold and missed > allowed:
            break
        threshold = score
        missed += weight
    return threshold


def exceedance_threshold(unrelated: Sequence[float], share: float) -> float | None:
    """The lowest threshold that at most a share of new unrelated scores reaches, in expectation.

    It lies just above the k-th smallest score, k = ceil((1 - share) (m + 1)).

    Args:
        unrelated: m scores of passages that have nothing to do with their question.
        share: the share that may pass, within 0..1, both excluded.

    Returns:
        The threshold, or None where m scores cannot promise it or no number up to 1 is above.
    """
    place = math.ceil((1 - _exact(share)) * (len(unrelated) + 1))
    if place > len(unrelated):
        return None
    score = sorted(unrelated)[place - 1]
    return math.nextafter(score, math.inf) if score < 1 else None


def least_sample(share: float) -> int:
    """The fewest scores from which a share can be promised: 19 for 0.05."""
    return math.ceil(1 / _exact(share)) - 1


def complement(share: float) -> float:
    """1 - share without the error of binary fractions: 0.05 for 0.95."""
    return float(1 - _exact(share))


def share_reaching(scores: Sequence[float], threshold: float) -> float:
    """The share of some scores that reach a threshold."""
    return sum(score >= threshold for score in scores) / len(scores)


def _exact(number: float | Fraction) -> Fraction:
    """The number as it is written, so that 0.05 is a twentieth."""
    return number if isinstance(number, Fraction) else Fraction(str(number))
