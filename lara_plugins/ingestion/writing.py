"""Writing passages while others are being read: in batches, side by side, and never too many at once."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Protocol, runtime_checkable

from lara_plugins.errors import UnstorablePassages
from lara_plugins.passages import Passage
from lara_plugins.retrieval import CONTENT_HASH

BATCH = 256
"""Passages written at once."""

SIDE_BY_SIDE = 2
"""Batches on their way at once: while one is stored, another one is embedded."""


SETTLED_EVERY = 10_000
"""Passages after which an index whose writes are seen late is waited for: it remembers them until then."""


class SourceIndex(Protocol):
    """What ingestion needs of an index: which sources it holds, and to write and forget them.

    The first passage of a source whose writing takes several steps is written twice: at first
    with the content hash "", and after all others with the real one. Until then the hashes of
    the source do not agree, so that a source whose writing was interrupted is read again.

    Attributes:
        atomic: whether `upsert` writes all of its passages or none, even where it is killed.
    """

    @property
    def atomic(self) -> bool: ...

    def sources(self) -> Mapping[str, str]:
        """The content hash of each source, "" where its passages do not agree on one."""

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Write passages; one that has the id of an older one replaces it. Called from several threads.

        Raises:
            UnstorablePassages: some can never be stored, and nothing has been written; their
                sources are left out.
        """

    def delete_source(self, source: str) -> None:
        """Forget all passages of a source; one that it does not hold is nothing to do."""


@runtime_checkable
class EventualIndex(Protocol):
    """An index whose writes are seen later, such as a server's."""

    def wait_until_visible(self) -> None:
        """Return when all that was written is found, or what took its place."""


class Writing:
    """Passages on their way into an index; a context, which waits for all of them.

    A source is written whole or not at all: where the index cannot store one of its passages, those
    that it holds are taken back. Any other error of the index is raised by the next method that is
    called, or at the context's end; batches that were on their way then may have been written.

    Attributes:
        refused: the sources that the index cannot store, each with the reason.
    """

    def __init__(self, index: SourceIndex) -> None:
        self.refused: dict[str, str] = {}
        self._index = index
        self._taken_back: set[str] = set()
        self._threads = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="lara-ingest")
        self._on_their_way: deque[Future[None]] = deque()
        self._waiting: list[Passage] = []  # those of whole sources
        self._firsts: list[Passage] = []  # those that are written once more
        self._unsettled = 0

    def source(self, passages: Iterable[Passage]) -> int:
        """Write all passages of one source; returns how many there are, unless it is refused meanwhile."""
        count = 0
        stream = iter(passages)
        batch = list(itertools.islice(stream, BATCH))
        first = batch[0] if batch else None
        following = list(itertools.islice(stream, BATCH))
        if first and (following or (len(batch) > 1 and not self._index.atomic)):
            self._firsts.append(first)
            batch[0] = replace(first, metadata={**first.metadata, CONTENT_HASH: ""})
        while batch and batch[0].source not in self.refused:
            self._add(batch)
            if following and not count:
                self._flush()  # the hash "" is there before the others are
            count += len(batch)
            batch, following = following, list(itertools.islice(stream, BATCH))
        if len(self._firsts) >= BATCH:
            self.finish()
        return count

    def finish(self) -> None:
        """Wait until all whole sources are written, and take back those that are refused."""
        self._flush()
        for start in range(0, len(self._firsts), BATCH):
            self._store(self._firsts[start : start + BATCH])
        self._firsts = []
        for source in self.refused.keys() - self._taken_back:
            self._index.delete_source(source)
            self._taken_back.add(source)

    def _flush(self) -> None:
        self._send(self._waiting)
        self._waiting = []
        self._wait(0)

    def _add(self, batch: list[Passage]) -> None:
        """Passages that belong together are sent together."""
        if len(self._waiting) + len(batch) > BATCH:
            self._send(self._waiting)
            self._waiting = []
        self._waiting += batch

    def _send(self, passages: list[Passage]) -> None:
        if passages:
            self._wait(SIDE_BY_SIDE - 1)
            self._on_their_way.append(self._threads.submit(self._store, passages))
            self._unsettled += len(passages)
        if self._unsettled >= SETTLED_EVERY and isinstance(self._index, EventualIndex):
            self._wait(0)
            self._index.wait_until_visible()
            self._unsettled = 0

    def _store(self, passages: Sequence[Passage]) -> None:
        """Write passages, but for those of sources that are refused."""
        passages = [passage for passage in passages if passage.source not in self.refused]
        if not passages:
            return
        try:
            self._index.upsert(passages)
        except UnstorablePassages as error:
            sources = {passage.id: passage.source for passage in passages}
            for id_, reason in error.reasons.items():
                self.refused.setdefault(sources[id_], str(reason))
            self._store(passages)

    def _wait(self, most: int) -> None:
        """Until at most so many batches are on their way: reading may not run ahead of writing."""
        while len(self._on_their_way) > most:
            self._on_their_way.popleft().result()

    def __enter__(self) -> Writing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.finish()
        finally:
            self._threads.shutdown(wait=True, cancel_futures=True)


def whole_passages(passages: Sequence[Passage]) -> list[Passage]:
    """Those that are not written a second time: what an index needs that cannot replace a passage."""
    return [passage for passage in passages if passage.metadata.get(CONTENT_HASH) != ""]
