"""What an object has written to a namespace, until a search shows it or what took its place."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lara_plugins.retrieval.pinecone.calls import Plane


@dataclass(slots=True, eq=False)
class Write:
    """One record that a request wrote or took away.

    Attributes:
        plane: where.
        id: of the record.
        source: of its passage.
        stamp: when the request was sent.
        since: the stamp that the record must have at least to be the one to be seen.
        absent: whether it is as good that there is no record.
        over: whether it was seen, or this object has replaced or deleted it.
    """

    plane: Plane
    id: str
    source: str
    stamp: int
    since: int
    absent: bool
    over: bool = False


@dataclass(slots=True, eq=False)
class Deletion:
    """A source that was forgotten.

    Attributes:
        source: which.
        since: the stamp that those of its records must have at least that may still be seen.
        over: whether it was seen, or a later one has taken its place.
    """

    source: str
    since: int
    over: bool = False


class Unseen:
    """Keeps what was written and deleted and has not been seen; many threads may do so at once.

    A stamp is the time at which a request was sent, in microseconds since 1970; no two of one
    object are the same. So a record with a higher stamp than was written has replaced what was
    written, and one with a lower stamp is still to be replaced. Of requests that were under way at
    the same time it is not known which one Pinecone carried out last: the outcome of each is good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = 0
        self._under_way: list[list[Write]] = []
        self._written: dict[tuple[Plane, str], Write] = {}
        self._gone: dict[str, Deletion] = {}

    @contextmanager
    def writing(self, plane: Plane, sources: Mapping[str, str], *, away: bool = False) -> Iterator[int]:
        """Goes around a request that writes records; once it is through, they are awaited.

        Args:
            plane: where to.
            sources: of the records, by id.
            away: whether the request takes the records away.

        Yields:
            The stamp for the records to carry.
        """
        with self._lock:
            stamp = self._next_stamp()
            writes = [Write(plane, id_, source, stamp, stamp, away) for id_, source in sources.items()]
            self._allow_for_rivals(writes)
            self._under_way.append(writes)
        through = False
        try:
            yield stamp
            through = True
        finally:
            with self._lock:
                self._under_way = [others for others in self._under_way if others is not writes]
                if through:
                    self._await(writes)

    @contextmanager
    def deleting(self, source: str) -> Iterator[None]:
        """Goes around the requests that delete a source; once they are through, its end is awaited."""
        with self._lock:
            stamps = [write.stamp for writes in self._under_way for write in writes if write.source == source]
            deletion = Deletion(source, min([self._next_stamp(), *stamps]))
        through = False
        try:
            yield
            through = True
        finally:
            with self._lock:
                self._drop(source)
                earlier = self._gone.get(source)
                if through and (earlier is None or earlier.since < deletion.since):
                    if earlier is not None:
                        earlier.over = True
                    self._gone[source] = deletion

    def awaited(self) -> list[Write | Deletion]:
        """What a search is to show by now."""
        with self._lock:
            return [*self._gone.values(), *self._written.values()]

    def settle(self, seen: Iterable[Write | Deletion]) -> None:
        """Take away what was seen."""
        with self._lock:
            for each in seen:
                each.over = True
                self._forget(each)

    def give_up(self, unseen: Iterable[Write | Deletion]) -> None:
        """Take away what was not seen in time; who waits for it already goes on waiting."""
        with self._lock:
            for each in unseen:
                self._forget(each)

    def _next_stamp(self) -> int:
        self._latest = max(self._latest + 1, time.time_ns() // 1000)
        return self._latest

    def _allow_for_rivals(self, writes: list[Write]) -> None:
        """Take the outcome of requests that are under way for the same records to be as good."""
        begun = {(write.plane, write.id): write for write in writes}
        for rivals in self._under_way:
            for rival in rivals:
                write = begun.get((rival.plane, rival.id))
                if write is not None:
                    write.since = min(write.since, rival.stamp)
                    write.absent = rival.absent = write.absent or rival.absent

    def _await(self, writes: list[Write]) -> None:
        for write in writes:
            key = write.plane, write.id
            earlier = self._written.get(key)
            if earlier is not None and earlier.stamp > write.stamp:
                continue
            if earlier is not None:
                earlier.over = True
                del self._written[key]
            if not write.over:
                self._written[key] = write

    def _drop(self, source: str) -> None:
        """Await nothing of a source any more that was written before or during its deletion."""
        for writes in (list(self._written.values()), *self._under_way):
            for write in writes:
                if write.source == source:
                    write.over = True
                    self._forget(write)

    def _forget(self, each: Write | Deletion) -> None:
        if isinstance(each, Deletion):
            if self._gone.get(each.source) is each:
                del self._gone[each.source]
        elif self._written.get((each.plane, each.id)) is each:
            del self._written[each.plane, each.id]
