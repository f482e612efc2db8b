"""The engine's shard: points with one dense vector, one sparse vector and a payload, on disk.

All that knows qdrant-edge stands here; it is imported where an index is opened. Nothing is
indexed: every search scans, so every search is exact; 6,000 points take under a millisecond.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, cast
from uuid import UUID

from lara_plugins.errors import IndexInUse, IndexUnreadable, MissingExtra
from lara_plugins.retrieval.encoders import SparseVector
from lara_plugins.retrieval.locking import FolderLock
from lara_plugins.retrieval.records import Payload, Point, Record

try:
    import qdrant_edge as edge
except ModuleNotFoundError as missing:
    raise MissingExtra("qdrant-edge-py", "lara-plugins[embedded]") from missing

QueryVector: TypeAlias = list[float] | SparseVector

PAGE = 2000
"""Points read at once when all are read."""

SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
"""How the engine's sentences name an error of the operating system."""

NO_DAMAGE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EMFILE}
"""The errors of the operating system that say nothing about the files themselves."""

FLUSH_EVERY = 1000
"""Points written before the write-ahead log is folded into the files; a flush costs up to 40 ms."""


class Shard:
    """An open shard, in a folder whose lock it holds until it is closed."""

    def __init__(self, folder: Path, lock: FolderLock, engine: edge.EdgeShard) -> None:
        self._folder = folder
        self._engine = engine
        self._lock = lock
        self._unflushed = 0

    @classmethod
    def create(cls, folder: Path, lock: FolderLock, dimension: int) -> Shard:
        """A new, empty shard.

        Raises:
            IndexUnreadable: the folder holds one already.
            OSError: it cannot be written.
        """
        config = edge.EdgeConfig(
            # Dot, not cosine: a vector that is all zero must stay zero.
            vectors={"dense": edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Dot)},
            sparse_vectors={"sparse": edge.EdgeSparseVectorParams()},
        )
        with _engine_errors(folder):
            return cls(folder, lock, edge.EdgeShard.create(str(folder), config))

    @classmethod
    def load(cls, folder: Path, lock: FolderLock) -> Shard:
        """An existing shard.

        Raises:
            IndexInUse: a process that knows no lock of ours has it open.
            IndexUnreadable: it is damaged.
            OSError: it cannot be read or written.
        """
        with _engine_errors(folder):
            return cls(folder, lock, edge.EdgeShard.load(str(folder)))

    def close(self) -> None:
        """Write everything to disk and let others open it."""
        try:
            with _engine_errors(self._folder):
                self._engine.close()
        finally:
            self._lock.release()

    def flush(self) -> None:
        """Fold the write-ahead log into the files: what was written survives a power cut, too."""
        with _engine_errors(self._folder):
            self._engine.flush()
        self._unflushed = 0

    def write(self, points: Sequence[Point]) -> None:
        """Write points, all or none; one that has the id of an older one replaces it."""
        operation = edge.UpdateOperation.upsert_points(
            [edge.Point(point.id, _vectors(point), point.payload) for point in points]
        )
        self._update(operation, len(points))

    def write_sparse(self, vectors: Mapping[UUID, SparseVector]) -> None:
        """Replace the sparse vectors of existing points; none may be empty."""
        operation = edge.UpdateOperation.update_vectors(
            [edge.PointVectors(id_, {"sparse": _sparse(vector)}) for id_, vector in vectors.items()]
        )
        self._update(operation, len(vectors))

    def delete(self, ids: Collection[UUID]) -> None:
        """Forget points."""
        self._update(edge.UpdateOperation.delete_points(list(ids)), len(ids))

    def top(
        self, query: QueryVector, depth: int, among: Collection[UUID] | None = None
    ) -> list[tuple[UUID, float]]:
        """The ``depth`` points with the highest dot product, best first.

        A sparse query finds only points that share an index with it.

        Args:
            query: a dense or a sparse vector.
            depth: at most so many.
            among: the points to look at, where not all of them.
        """
        if among is None:
            return self._search(query, depth, None)
        return self._search(query, depth, edge.Filter(must=[edge.HasIdCondition(set(among))]))

    def scores(self, query: QueryVector, ids: Collection[UUID]) -> list[tuple[UUID, float]]:
        """The dot products of given points; for a sparse query, of those that share an index."""
        if not ids:
            return []
        only = edge.Filter(must=[edge.HasIdCondition(set(ids))])
        return self._search(query, len(ids), only)

    def read(self, ids: Sequence[UUID]) -> list[Record]:
        """Whole payloads and terms of the points that exist, in any order."""
        with _engine_errors(self._folder):
            return [
                _record(raw)
                for raw in self._engine.retrieve(list(ids), with_payload=True, with_vector=["sparse"])
            ]

    def scan(self, keys: Sequence[str]) -> Iterator[list[Record]]:
        """All points, page by page, with these payload keys and their terms."""
        offset = None
        while True:
            request = edge.ScrollRequest(
                offset=offset, limit=PAGE, with_payload=list(keys), with_vector=["sparse"]
            )
            with _engine_errors(self._folder):
                page, offset = self._engine.scroll(request)
            yield [_record(raw) for raw in page]
            if offset is None:
                return

    def _search(self, query: QueryVector, limit: int, only: edge.Filter | None) -> list[tuple[UUID, float]]:
        if isinstance(query, SparseVector):
            nearest = edge.Query.Nearest(_sparse(query), using="sparse")
        else:
            nearest = edge.Query.Nearest(query, using="dense")
        request = edge.QueryRequest(limit=limit, query=nearest, filter=only)
        with _engine_errors(self._folder):
            return [(cast(UUID, point.id), point.score) for point in self._engine.query(request)]

    def _update(self, operation: edge.UpdateOperation, points: int) -> None:
        with _engine_errors(self._folder):
            self._engine.update(operation)
        self._unflushed += points
        if self._unflushed >= FLUSH_EVERY:
            self.flush()


def _vectors(point: Point) -> dict[str, edge.NamedVector]:
    if not point.sparse.indices:
        return {"dense": point.dense}
    return {"dense": point.dense, "sparse": _sparse(point.sparse)}


def _sparse(vector: SparseVector) -> edge.SparseVector:
    return edge.SparseVector(list(vector.indices), list(vector.values))


def _record(raw: edge.Record) -> Record:
    vectors = cast(dict[str, edge.SparseVector], raw.vector or {})
    terms = tuple(vectors["sparse"].indices) if "sparse" in vectors else ()
    return Record(cast(UUID, raw.id), cast(Payload, raw.payload or {}), terms)


@contextmanager
def _engine_errors(folder: Path) -> Iterator[None]:
    """Give the engine's errors their meaning; it raises bare ``Exception`` and, on damage, panics."""
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        if "WouldBlock" in str(error):
            raise IndexInUse(
                f"the index at {folder.parent} is open in another process or by another EmbeddedIndex: "
                "close that one first"
            ) from error
        system = SYSTEM_ERROR.search(str(error))
        if system and (number := int(system[1])) in NO_DAMAGE:
            raise OSError(number, os.strerror(number), str(folder.parent)) from error
        raise IndexUnreadable(
            f"the index at {folder.parent} cannot be used, its files are damaged or another version's "
            f"({error}): delete the folder and ingest again"
        ) from error
