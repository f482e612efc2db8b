"""Searching the passages that a shard stores, in the exact hybrid order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from lara_plugins.retrieval.contents import Contents
from lara_plugins.retrieval.encoders import SparseVector
from lara_plugins.retrieval.exact import exact_order
from lara_plugins.retrieval.filters import Condition
from lara_plugins.retrieval.index import Match
from lara_plugins.retrieval.records import passage_of

if TYPE_CHECKING:
    from lara_plugins.retrieval.shard import QueryVector, Shard


def search_stored(
    shard: Shard,
    contents: Contents,
    dense_query: list[float],
    sparse_query: SparseVector,
    *,
    limit: int,
    alpha: float,
    condition: Condition | None,
) -> list[Match]:
    """The ``limit`` best of the stored passages that a filter passes, best first, ties by id.

    Args:
        shard: where they are stored.
        contents: what it is known to hold.
        dense_query: the question's dense vector.
        sparse_query: its sparse vector.
        limit: at most so many, 1 or more.
        alpha: weight of the dense half, 0..1.
        condition: the filter; None searches all.

    Raises:
        LookupError: fewer are found than are known to be there.
    """
    among = None if condition is None else contents.passing(condition)
    there = len(contents.rows) if among is None else len(among)
    if not there:
        return []
    dense = _StoredRanking(shard, contents, dense_query, among)
    sparse = _StoredRanking(shard, contents, sparse_query, among)
    hits = exact_order(dense, sparse, alpha=alpha, limit=limit)
    if len(hits) < min(limit, there):
        raise LookupError(f"has {there} passages and finds {len(hits)}")
    records = shard.read([contents.record_ids[hit.id] for hit in hits])
    passages = {passage.id: passage for passage in (passage_of(record.payload) for record in records)}
    return [Match(passages[hit.id], hit.score, hit.dense, hit.sparse) for hit in hits]


@dataclass(frozen=True, slots=True)
class _StoredRanking:
    """The stored passages by their dot product with one query vector."""

    shard: Shard
    contents: Contents
    query: QueryVector
    among: Collection[UUID] | None

    def top(self, depth: int) -> list[tuple[str, float]]:
        return self._named(self.shard.top(self.query, depth, self.among))

    def scores(self, ids: Collection[str]) -> dict[str, float]:
        return dict(
            self._named(self.shard.scores(self.query, [self.contents.record_ids[id_] for id_ in ids]))
        )

    def _named(self, found: Sequence[tuple[UUID, float]]) -> list[tuple[str, float]]:
        rows = self.contents.rows
        return [(rows[id_].id, score) for id_, score in found]
