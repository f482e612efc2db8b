"""How a retriever searches, whatever the framework."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from lara_plugins.arguments import check_count
from lara_plugins.errors import InvalidArgument
from lara_plugins.retrieval.filters import Filter, parse_filter
from lara_plugins.retrieval.index import HybridIndex
from lara_plugins.retrieval.plan import PoolRule, retrieval_plan

MOST_NAMESPACES = 1000
"""Namespaces of an index whose handles are kept."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What is fixed about the searches of a retriever.

    Args:
        limit: so many candidates in place of the plan's pool.
        alpha: weight of the dense half, 0..1, in place of the plan's.
        pool: the plan's rule for the number of candidates: ``fixed``, ``proportional``, ``oversample``.
        top_k: what the last two rules count from, in place of the plan's.
        filter: which passages are searched; see `HybridIndex.search`.
        namespace: where in the index, for one that has namespaces; None for where it stands.

    Raises:
        InvalidArgument: an argument is out of its range.
    """

    limit: int | None = None
    alpha: float | None = None
    pool: PoolRule = "fixed"
    top_k: int | None = None
    filter: Filter | None = None
    namespace: str | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_count("limit", self.limit, "give the most candidates to find, 1 or more, or None")
        retrieval_plan(0, alpha=self.alpha, top_k=self.top_k, pool=self.pool)
        parse_filter(self.filter)
        if self.namespace is not None and not isinstance(self.namespace, str):
            raise InvalidArgument("namespace", self.namespace, "give the namespace's name, or None")

    def narrowed(
        self, filter: Filter | None = None, namespace: str | None = None, limit: int | None = None
    ) -> SearchSettings:
        """The settings of one call.

        Args:
            filter: further conditions; those that stand here hold, too, so that a call never
                finds what its retriever may not.
            namespace: in place of this one.
            limit: in place of this one.
        """
        parse_filter(filter)  # alone, so that its fault is told in the caller's words
        if not filter and namespace is None and limit is None:
            return self
        return replace(
            self,
            filter={"$and": [self.filter, filter]} if self.filter and filter else self.filter or filter,
            namespace=self.namespace if namespace is None else namespace,
            limit=self.limit if limit is None else limit,
        )


@runtime_checkable
class Namespaced(Protocol):
    """An index that is divided into namespaces, such as ``PineconeIndex``."""

    def in_namespace(self, namespace: str) -> HybridIndex:
        """The same index in another namespace."""


class Namespaces:
    """The namespaces that a retriever has opened: each handle knows how many passages it has."""

    def __init__(self) -> None:
        # The index stands in the value, too, so that no other can take its id.
        self._opened: dict[tuple[int, str], tuple[HybridIndex, HybridIndex]] = {}

    def open(self, index: HybridIndex, namespace: str | None) -> HybridIndex:
        """The index in a namespace; None for where it stands.

        Raises:
            InvalidArgument: it has no namespaces.
        """
        if namespace is None:
            return index
        if not isinstance(index, Namespaced):
            kind = type(index).__name__
            raise InvalidArgument("namespace", namespace, f"{kind} has none: leave it out, or use a filter")
        key = (id(index), namespace)
        opened = self._opened.get(key)
        if opened is None:
            if len(self._opened) >= MOST_NAMESPACES:
                self._opened = {}
            opened = self._opened.setdefault(key, (index, index.in_namespace(namespace)))
        return opened[1]
