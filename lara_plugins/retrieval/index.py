"""The contract of a hybrid index: dense and sparse search under one score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import Passage
from lara_plugins.retrieval.filters import Filter

CONTENT_HASH = "content_hash"
"""Metadata key under which a passage may carry the hash of its whole source, to tell a stale one."""


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that was found.

    ``score`` = alpha * ``dense`` + (1 - alpha) * ``sparse``; scores of searches with different
    alphas are not comparable. A half is None where a service tells only the sum.
    """

    passage: Passage
    score: float
    dense: float | None
    sparse: float | None


@runtime_checkable
class HybridIndex(Protocol):
    """Finds the passages nearest to a question by a weighted sum of two similarities.

    Attributes:
        fingerprint: identity of the encoders that fill and query it.
        alpha_ceiling: the highest weight of the dense half that a retrieval plan may choose
            for these encoders; 1.0 where there is none.
        alpha_floor: the lowest one; 0.0, or 1.0 where there is no sparse half.
    """

    @property
    def fingerprint(self) -> str: ...
    @property
    def alpha_ceiling(self) -> float: ...
    @property
    def alpha_floor(self) -> float: ...

    def load(self) -> None:
        """Load the encoders now rather than at the first search; safe to call again."""

    def count(self) -> int:
        """How many passages it holds."""

    def search(
        self,
        text: str,
        *,
        limit: int,
        alpha: float,
        dense_text: str | None = None,
        filter: Filter | None = None,
    ) -> list[Match]:
        """The ``limit`` best passages, best first.

        Args:
            text: the question; always what the sparse half sees.
            limit: at most so many matches, 1 or more.
            alpha: weight of the dense half, 0..1.
            dense_text: what is embedded densely instead of ``text`` (a hypothetical answer).
            filter: which passages are searched, by their metadata and ``source``; a dict of
                ``$eq $ne $gt $gte $lt $lte $in $nin $exists $and $or``, such as
                ``{"year": {"$gte": 2020}}``.
        """

    async def asearch(
        self,
        text: str,
        *,
        limit: int,
        alpha: float,
        dense_text: str | None = None,
        filter: Filter | None = None,
    ) -> list[Match]:
        """As ``search``, without blocking the event loop."""

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Write passages; one that has the id of an older one replaces it."""


def check_index(index: object) -> None:
    """Refuse what is no hybrid index, such as its folder's name.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(index, HybridIndex):
        remedy = 'give a hybrid index, such as EmbeddedIndex("./my-index") or PineconeIndex(...)'
        raise InvalidArgument("index", index, remedy)
