"""Writing to Pinecone: in batches, with patience, and so that it is known what was not written."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lara_plugins.errors import NotYetVisible, PartialUpsert
from lara_plugins.retrieval.filters import MOST_VALUES
from lara_plugins.retrieval.pinecone.calls import (
    NOT_FOUND,
    Call,
    Patience,
    Pause,
    Plane,
    Steps,
    ask,
    failures,
    insist,
    status_of,
)
from lara_plugins.retrieval.pinecone.encoding import Encoded
from lara_plugins.retrieval.pinecone.layouts import VERSION, of_source
from lara_plugins.retrieval.pinecone.records import MOST_RECORDS, Draft, requests

MOST_ASKED: dict[Plane, int] = {"dense": 1000, "sparse": 100}
"""Records whose visibility one request asks for: by query, and by id, which all stand in the URL."""

ABSENT = ""
"""The version of a record that is not there."""

T = TypeVar("T")

LONGEST_PAUSE = 5.0
"""Seconds between two looks for what was written."""


class Unseen:
    """What was written and has not been found yet; many threads may note and strike off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: dict[Plane, dict[str, _Write]] = {"dense": {}, "sparse": {}}
        self._gone: dict[str, set[str]] = {}

    def note_written(self, plane: Plane, drafted: Sequence[Draft]) -> None:
        """Note records that were written."""
        with self._lock:
            for draft in drafted:
                source = draft.passage.source
                self._written[plane][draft.passage.id] = _Write(draft.version, source)
                if source in self._gone:
                    self._gone[source].add(draft.version)

    def note_wordless(self, ids: Sequence[str]) -> None:
        """Note records that were taken out of the sparse plane."""
        with self._lock:
            self._written["sparse"].update({id_: _Write(ABSENT, "") for id_ in ids})

    def note_deleted(self, source: str) -> None:
        """Note a source that was forgotten: of it, only what is written from now on may be found."""
        with self._lock:
            self._gone[source] = set()
            for writes in self._written.values():
                for id_ in [id_ for id_, write in writes.items() if write.source == source]:
                    del writes[id_]

    def versions(self, plane: Plane) -> dict[str, str]:
        """By id, the versions that are to be found; "" where there should be no record."""
        with self._lock:
            return {id_: write.version for id_, write in self._written[plane].items()}

    def gone(self) -> dict[str, list[str]]:
        """The sources that were forgotten, each with the versions that were written since."""
        with self._lock:
            return {source: sorted(since) for source, since in self._gone.items()}

    def strike_off(self, plane: Plane, found: Mapping[str, str]) -> None:
        """Take away writes that were found, by id and version; later ones of the same id stay."""
        with self._lock:
            for id_, version in found.items():
                write = self._written[plane].get(id_)
                if write is not None and write.version == version:
                    del self._written[plane][id_]

    def strike_off_gone(self, source: str) -> None:
        """Take away a source of which nothing old is found any more."""
        with self._lock:
            self._gone.pop(source, None)


@dataclass(frozen=True, slots=True)
class _Write:
    version: str
    source: str


def upsert(encoded: Encoded, namespace: str, patience: Patience, unseen: Unseen) -> Steps[None]:
    """Write records, request by request.

    Of two indexes the dense one is written last: what it holds is whole, wherever this ends.

    Args:
        encoded: the passages' records.
        namespace: where to.
        patience: with failures that may pass.
        unseen: told what was written.

    Raises:
        PartialUpsert: a request failed for good; tells the ids of the passages that are not written whole.
    """
    drafted, records, wordless = encoded.drafted, encoded.records, encoded.wordless
    by_id = {draft.passage.id: draft for draft in drafted}
    missing = {plane: {str(record["id"]) for record in of_plane} for plane, of_plane in records.items()}
    try:
        if wordless:
            for ids in _parts(wordless, MOST_RECORDS):
                arguments = {"ids": list(ids), "namespace": namespace}
                yield from forget(Call("sparse", "delete", arguments), patience)
            unseen.note_wordless(wordless)
        for plane, of_plane in sorted(records.items(), reverse=True):
            for request in requests(of_plane):
                call = Call(plane, "upsert", {"vectors": request, "namespace": namespace})
                yield from insist(call, patience)
                ids = [str(record["id"]) for record in request]
                missing[plane].difference_update(ids)
                unseen.note_written(plane, [by_id[id_] for id_ in ids])
    except failures() as error:
        unwritten = set().union(*missing.values())
        raise partial(drafted, unwritten, error) from error


def partial(drafted: Sequence[Draft], unwritten: Collection[str], error: Exception) -> PartialUpsert:
    """The error that tells what of an upsert is missing."""
    left = [draft.passage.id for draft in drafted if draft.passage.id in unwritten]
    return PartialUpsert(len(drafted) - len(left), left, error)


def forget(call: Call, patience: Patience) -> Steps[None]:
    """Delete records; a namespace that does not exist holds none."""
    try:
        yield from insist(call, patience)
    except failures() as error:
        if status_of(error) != NOT_FOUND:
            raise


def delete_source(planes: Sequence[Plane], source: str, namespace: str, patience: Patience) -> Steps[None]:
    """Delete a source's records from each plane, the dense one last: it tells what is held."""
    for plane in sorted(planes, reverse=True):
        arguments = {"filter": of_source(source), "namespace": namespace}
        yield from forget(Call(plane, "delete", arguments), patience)


def await_visible(
    unseen: Unseen, planes: Sequence[Plane], anywhere: Mapping[str, object], patience: Patience, index: str
) -> Steps[None]:
    """Look until every write is found, and nothing that was deleted.

    Of a sparse index only what was written is looked for: there is no query that finds all its
    records, and one that lingers there is never shown, since its text stands in the dense index.

    Args:
        unseen: what to look for.
        planes: where.
        anywhere: the vector and the namespace of a query that finds every record.
        patience: how long.
        index: the index's name, for the error's sentence.

    Raises:
        NotYetVisible: not all of it was found in time.
    """
    waited, pause = 0.0, min(0.1, patience.first_pause)
    while True:
        left = yield from _unfound_sources(unseen, anywhere)
        for plane in planes:
            left += yield from _unfound(unseen, plane, anywhere)
        if not left:
            return
        if waited >= patience.visible_within:
            raise NotYetVisible(
                f"after {waited:g} s, {left} writes to the Pinecone index {index} are not visible yet: "
                "wait longer (Patience.visible_within), or search without them for now"
            )
        yield Pause(pause)
        waited += pause
        pause = min(2 * pause, LONGEST_PAUSE)


def _unfound_sources(unseen: Unseen, anywhere: Mapping[str, object]) -> Steps[int]:
    """How many sources are still found that were deleted; those that are not, are struck off."""
    left = 0
    for source, since in unseen.gone().items():
        conditions = [of_source(source), *({VERSION: {"$nin": part}} for part in _parts(since, MOST_VALUES))]
        arguments = {**anywhere, "top_k": 1, "filter": {"$and": conditions}}
        (reply,) = yield from ask(Call("dense", "query", arguments))
        if reply.matches:
            left += 1
        else:
            unseen.strike_off_gone(source)
    return left


def _unfound(unseen: Unseen, plane: Plane, anywhere: Mapping[str, object]) -> Steps[int]:
    """How many writes are not visible; those that are, are struck off."""
    written = unseen.versions(plane)
    left = 0
    for ids in _parts(list(written), MOST_ASKED[plane]):
        sought = {id_: written[id_] for id_ in ids}
        if plane == "dense":
            asked = {"top_k": len(ids), "filter": {VERSION: {"$in": list(sought.values())}}}
            (reply,) = yield from ask(Call(plane, "query", {**anywhere, **asked}))
            found = {match.id: sought[match.id] for match in reply.matches if match.id in sought}
        else:
            asked = {"ids": ids, "namespace": anywhere["namespace"]}
            (reply,) = yield from ask(Call(plane, "fetch", asked))
            there = {id_: (record.metadata or {}).get(VERSION) for id_, record in reply.vectors.items()}
            found = {id_: sought[id_] for id_ in ids if there.get(id_, ABSENT) == sought[id_]}
        unseen.strike_off(plane, found)
        left += len(sought) - len(found)
    return left


def _parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
