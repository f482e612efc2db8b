"""An ingestion that is killed at a write: python ingest_and_die.py INDEX FOLDER WRITE before|after."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence

from lara_plugins import EmbeddedIndex, Passage, ingest


class Dying:
    """An index whose process ends, as if pulled from the mains, at its n-th write."""

    def __init__(self, index: EmbeddedIndex, write: int, *, after: bool, atomic: bool) -> None:
        self.atomic = atomic
        self._index = index
        self._left = write
        self._after = after
        self._lock = threading.Lock()

    def sources(self) -> Mapping[str, str]:
        return self._index.sources()

    def delete_source(self, source: str) -> None:
        self._index.delete_source(source)
        self._count()

    def upsert(self, passages: Sequence[Passage]) -> None:
        # An index that is not atomic may have written a part when it ends.
        parts = [passages] if self.atomic else [passages[:1], passages[1:2], passages[2:]]
        for part in parts:
            with self._lock:
                if not self._after:
                    self._count()
                self._index.upsert(part)
                if self._after:
                    self._count()

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            os._exit(9)


if __name__ == "__main__":
    path, folder, write, when, kind = sys.argv[1:]
    with EmbeddedIndex(path) as opened:
        ingest([folder], Dying(opened, int(write), after=when == "after", atomic=kind == "atomic"))
