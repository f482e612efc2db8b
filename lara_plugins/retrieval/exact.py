"""The exact order of alpha * dense + (1 - alpha) * sparse out of two ranked lists.

The threshold algorithm of Fagin, Lotem and Naor, "Optimal aggregation algorithms for
middleware" (2003), with the lists read in growing prefixes instead of one entry at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Ranking(Protocol):
    """One of the two lists: every passage under one similarity."""

    def top(self, depth: int) -> Sequence[tuple[str, float]]:
        """The best ``depth`` passages (id, score), best first; fewer where no others score above 0.

        A dense ranking holds every passage, so there it is fewer only where there are no others.
        """

    def scores(self, ids: Collection[str]) -> Mapping[str, float]:
        """The scores of given passages; one that is left out scores 0."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage's id, its score, and the two similarities that it is made of."""

    id: str
    score: float
    dense: float
    sparse: float


def exact_order(dense: Ranking, sparse: Ranking, *, alpha: float, limit: int) -> list[Hit]:
    """The ``limit`` passages with the highest sum, best first, ties by id.

    Both lists are deepened until no passage that is in neither can reach the last one kept:
    it scores at most alpha * (last dense) + (1 - alpha) * (last sparse).

    Args:
        dense: every passage, by dense similarity.
        sparse: the passages with a sparse similarity above 0; the others have 0.
        alpha: weight of the dense similarity, 0..1.
        limit: at most so many, 1 or more.
    """
    depth = 2 * limit
    while True:
        best_dense, best_sparse = dense.top(depth), sparse.top(depth)
        hits = _rescored(dict(best_dense), dict(best_sparse), dense, sparse, alpha)[:limit]
        if len(best_dense) < depth:  # that was every passage
            return hits
        last_sparse = best_sparse[-1][1] if len(best_sparse) == depth else 0.0
        unseen = alpha * best_dense[-1][1] + (1 - alpha) * last_sparse
        # Strictly: an unseen passage with the same score could have the smaller id.
        if unseen < hits[-1].score:
            return hits
        depth *= 2


def _rescored(
    dense_scores: Mapping[str, float],
    sparse_scores: Mapping[str, float],
    dense: Ranking,
    sparse: Ranking,
    alpha: float,
) -> list[Hit]:
    """Every passage of either list with its exact sum, in order."""
    dense_known = {**dense_scores, **dense.scores(sparse_scores.keys() - dense_scores.keys())}
    sparse_known = {**sparse_scores, **sparse.scores(dense_scores.keys() - sparse_scores.keys())}
    hits = []
    for id_, d in dense_known.items():
        s = sparse_known.get(id_, 0.0)
        hits.append(Hit(id_, alpha * d + (1 - alpha) * s, d, s))
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))
