"""What an open index holds, in memory: a row a passage, its sources, and the document frequencies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from lara_plugins.retrieval.bm25 import DocumentFrequencies
from lara_plugins.retrieval.filters import Condition
from lara_plugins.retrieval.records import Row


class Contents:
    """Counted from the stored records when an index is opened, and kept in step with each write.

    It is never saved, so it cannot disagree with what a killed process left behind.

    Attributes:
        rows: by record id.
        record_ids: by passage id.
        frequencies: in how many passages each term occurs.
        total_length: terms in all passages together.
    """

    def __init__(self) -> None:
        self.rows: dict[UUID, Row] = {}
        self.record_ids: dict[str, UUID] = {}
        self.frequencies = DocumentFrequencies()
        self.total_length = 0
        self._by_source: defaultdict[str, set[UUID]] = defaultdict(set)

    def add(self, id_: UUID, row: Row, terms: Iterable[int]) -> None:
        """Count a passage that was written."""
        self.rows[id_] = row
        self.record_ids[row.id] = id_
        self.frequencies.add(terms)
        self.total_length += row.length
        self._by_source[row.source].add(id_)

    def remove(self, id_: UUID, terms: Iterable[int]) -> None:
        """Take back a passage that was deleted or is about to be replaced."""
        row = self.rows.pop(id_)
        del self.record_ids[row.id]
        self.frequencies.remove(terms)
        self.total_length -= row.length
        holders = self._by_source[row.source]
        holders.discard(id_)
        if not holders:
            del self._by_source[row.source]

    def remove_all(self, terms: Mapping[UUID, Iterable[int]]) -> None:
        """Take back passages, each with its terms."""
        for id_, gone in terms.items():
            self.remove(id_, gone)

    def average_with(self, added: Sequence[int], replaced: Collection[UUID]) -> float:
        """Terms in an average passage as it will be after a write.

        Args:
            added: the terms in each passage that is written.
            replaced: those of the stored passages that go then.
        """
        kept = self.total_length - sum(self.rows[id_].length for id_ in replaced)
        return (kept + sum(added)) / (len(self.rows) - len(replaced) + len(added))

    def of_source(self, source: str) -> set[UUID]:
        """The record ids of a source's passages."""
        return set(self._by_source.get(source, ()))

    def passing(self, condition: Condition) -> set[UUID]:
        """The record ids of the passages that a filter passes."""
        return {id_ for id_, row in self.rows.items() if condition.passes(row.fields)}

    def sources(self) -> dict[str, str]:
        """The content hash of each source, "" where its passages do not agree on one."""
        return {source: self._content_hash(ids) for source, ids in self._by_source.items() if source}

    def _content_hash(self, ids: Collection[UUID]) -> str:
        hashes = {self.rows[id_].content_hash for id_ in ids}
        return hashes.pop() if len(hashes) == 1 else ""
