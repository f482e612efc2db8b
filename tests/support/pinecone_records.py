"""The records of one namespace of the Pinecone stand-in, of which writes are seen late."""

from __future__ import annotations

import math
import operator
from collections import Counter, deque
from collections.abc import Callable, Sequence

from pinecone_filters import passes
from pinecone_http import Json

Change = Callable[[dict[str, Json]], None]


class Namespace:
    """Records by id; a write is seen ``lag`` reads after it was made.

    Attributes:
        committed: the sequence number of the latest write.
        indexed: that of the latest write that reads see.
        writes: how often each id was written.
    """

    def __init__(self) -> None:
        self.visible: dict[str, Json] = {}
        self.committed = 0
        self.writes: Counter[str] = Counter()
        self._waiting: deque[tuple[int, Change]] = deque()

    @property
    def indexed(self) -> int:
        return self.committed - len(self._waiting)

    def upsert(self, records: Sequence[Json], lag: int) -> None:
        """Write records; one that has the id of an older one replaces it."""
        self.writes.update(record["id"] for record in records)
        self._commit(lambda held: held.update({record["id"]: record for record in records}), lag)

    def change(self, id_: str, change: Callable[[Json], Json], lag: int) -> None:
        """Replace one record, if it is there."""
        self._commit(lambda held: held.update({id_: change(held[id_])} if id_ in held else {}), lag)

    def delete(self, chosen: Callable[[Json], bool], lag: int) -> None:
        """Forget the records that are chosen."""

        def forget(held: dict[str, Json]) -> None:
            for id_ in [id_ for id_, record in held.items() if chosen(record)]:
                del held[id_]

        self._commit(forget, lag)

    def read(self) -> None:
        """Count a read, and let it see the writes that have waited long enough."""
        self._waiting = deque((left - 1, change) for left, change in self._waiting)
        self._settle()

    def _commit(self, change: Change, lag: int) -> None:
        self.committed += 1
        self._waiting.append((lag, change))
        self._settle()

    def _settle(self) -> None:
        while self._waiting and self._waiting[0][0] <= 0:
            self._waiting.popleft()[1](self.visible)

    def best(
        self, dense: Sequence[float], sparse: Json, conditions: Json, metric: str, limit: int
    ) -> list[tuple[float, Json]]:
        """The records with the highest score; of equal ones, whichever was written last."""
        query = dict(zip(sparse.get("indices", ()), sparse.get("values", ()), strict=True))
        scored = [
            (score, record)
            for record in reversed(self.visible.values())
            if passes(conditions, record.get("metadata") or {})
            and (score := _score(dense, query, record, metric)) is not None
        ]
        return sorted(scored, key=lambda pair: -pair[0])[:limit]


def _score(dense: Sequence[float], sparse: dict[int, float], record: Json, metric: str) -> float | None:
    """The similarity of a record; None for one that only sparse values could find and none do."""
    stored = record.get("sparseValues") or {"indices": (), "values": ()}
    shared = [
        sparse[index] * value
        for index, value in zip(stored["indices"], stored["values"], strict=True)
        if index in sparse
    ]
    if not dense:
        return math.fsum(shared) if shared else None
    values = record["values"]
    product = math.fsum(map(operator.mul, dense, values))
    if metric == "cosine":
        product /= math.hypot(*dense) * math.hypot(*values)
    return product + math.fsum(shared)
