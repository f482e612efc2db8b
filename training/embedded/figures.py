"""The figures that the embedded scorer is chosen and reported by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from questions import Floats, Judged

TOP = 10
KEEP = 0.95
"""Share of the relevant passages that the operating point keeps."""


@dataclass(frozen=True)
class Figures:
    """How well scores rank and separate each question's candidates.

    Args:
        recall: share of the questions whose best candidate is relevant (R@1).
        reciprocal_rank: mean reciprocal rank of the first relevant candidate (MRR).
        auc: how often a relevant candidate scores above one that is not, over all questions.
        kept: share of the candidates without a label kept where 95 % of the relevant ones are.
    """

    recall: float
    reciprocal_rank: float
    auc: float
    kept: float

    def __str__(self) -> str:
        return f"{self.recall:.3f} | {self.reciprocal_rank:.3f} | {self.auc:.3f} | {self.kept:.1%}"


def first_stage(lexical: Floats, own: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
    """BM25's best candidates of each question; only among ``own`` where given."""
    found = []
    for row, scores in enumerate(lexical):
        allowed = np.arange(len(scores)) if own is None else np.array(own[row])
        found.append(allowed[np.argsort(-scores[allowed], kind="stable")[:TOP]].tolist())
    return found


def measure(
    questions: Sequence[Judged], candidates: Sequence[Sequence[int]], scores: Sequence[Floats]
) -> Figures:
    """The figures of one score for each candidate of each question; ties keep BM25's order."""
    first, reciprocal, relevant, others = [], [], [], []
    for question, found, values in zip(questions, candidates, scores, strict=True):
        hits = np.array([position in question.relevant for position in found])
        order = np.argsort(-np.asarray(values), kind="stable")
        ranked = hits[order]
        first.append(bool(ranked[0]))
        reciprocal.append(1 / (int(ranked.argmax()) + 1) if ranked.any() else 0.0)
        relevant += np.asarray(values)[hits].tolist()
        others += np.asarray(values)[~hits].tolist()
    point = np.quantile(relevant, 1 - KEEP)
    return Figures(
        float(np.mean(first)),
        float(np.mean(reciprocal)),
        auc(np.array(relevant), np.array(others)),
        float(np.mean(np.array(others) >= point)),
    )


def auc(relevant: Floats, others: Floats) -> float:
    """Area under the ROC curve: the chance that a relevant score beats another, ties half."""
    below = np.searchsorted(np.sort(others), relevant, side="left")
    not_above = np.searchsorted(np.sort(others), relevant, side="right")
    return float((below + not_above).mean() / (2 * len(others)))
