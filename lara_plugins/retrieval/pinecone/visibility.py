"""Looking for what was written to Pinecone, which a search does not show at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lara_plugins.errors import NotYetVisible
from lara_plugins.retrieval.pinecone.calls import Call, Patience, Pause, Plane, Steps, ask
from lara_plugins.retrieval.pinecone.layouts import ID, WRITTEN, of_source
from lara_plugins.retrieval.pinecone.records import parts
from lara_plugins.retrieval.pinecone.unseen import Deletion, Unseen, Write

MOST_ASKED: dict[Plane, int] = {"dense": 1000, "sparse": 100}
"""Records that one request looks for: by query, and by id, which all stand in the URL."""

LONGEST_PAUSE = 5.0
"""Seconds between two looks for what was written."""


def await_visible(
    unseen: Unseen, anywhere: Mapping[str, object], patience: Patience, index: str
) -> Steps[None]:
    """Look until every write so far is found, or a later one in its place, and nothing that was deleted.

    Of a sparse index only what was written is looked for: there is no query that finds all its
    records, and one that lingers there is never shown, since its text stands in the dense index.

    Args:
        unseen: what to look for; told what is found, and what is not in time.
        anywhere: the vector and the namespace of a query that finds every record.
        patience: how long.
        index: the index's name, for the error's sentence.

    Raises:
        NotYetVisible: not all of it was found in time.
    """
    waited, pause = 0.0, min(0.1, patience.first_pause)
    left = unseen.awaited()
    while True:
        yield from _look(left, unseen, anywhere)
        left = [each for each in left if not each.over]
        if not left:
            return
        if waited >= patience.visible_within:
            unseen.give_up(left)
            raise NotYetVisible(
                f"after {waited:g} s, {len(left)} writes to the Pinecone index {index} are not visible yet, "
                "and they are not waited for again: give Pinecone longer (Patience.visible_within), or go "
                "on where another writer may have deleted them since"
            )
        yield Pause(pause)
        waited += pause
        pause = min(2 * pause, LONGEST_PAUSE)


def _look(left: Sequence[Write | Deletion], unseen: Unseen, anywhere: Mapping[str, object]) -> Steps[None]:
    """Settle what is visible of what is left."""
    for each in left:
        if isinstance(each, Deletion) and (yield from _is_gone(each, anywhere)):
            unseen.settle([each])
    writes = [each for each in left if isinstance(each, Write)]
    for part in parts([write for write in writes if write.plane == "dense"], MOST_ASKED["dense"]):
        unseen.settle((yield from _seen_dense(part, anywhere)))
    for part in parts([write for write in writes if write.plane == "sparse"], MOST_ASKED["sparse"]):
        unseen.settle((yield from _seen_sparse(part, anywhere["namespace"])))


def _is_gone(deletion: Deletion, anywhere: Mapping[str, object]) -> Steps[bool]:
    earlier = {"$or": [{WRITTEN: {"$lt": deletion.since}}, {WRITTEN: {"$exists": False}}]}
    arguments = {**anywhere, "top_k": 1, "filter": {"$and": [of_source(deletion.source), earlier]}}
    (reply,) = yield from ask(Call("dense", "query", arguments))
    return not reply.matches


def _seen_dense(writes: Sequence[Write], anywhere: Mapping[str, object]) -> Steps[list[Write]]:
    by_stamp: dict[int, list[str]] = {}
    for write in writes:
        by_stamp.setdefault(write.since, []).append(write.id)
    conditions = [
        {"$and": [{ID: {"$in": ids}}, {WRITTEN: {"$gte": since}}]} for since, ids in by_stamp.items()
    ]
    arguments = {**anywhere, "top_k": len(writes), "filter": {"$or": conditions}}
    (reply,) = yield from ask(Call("dense", "query", arguments))
    found = {match.id for match in reply.matches}
    return [write for write in writes if write.id in found]


def _seen_sparse(writes: Sequence[Write], namespace: object) -> Steps[list[Write]]:
    arguments = {"ids": [write.id for write in writes], "namespace": namespace}
    (reply,) = yield from ask(Call("sparse", "fetch", arguments))
    stamps = {id_: (record.metadata or {}).get(WRITTEN, 0) for id_, record in reply.vectors.items()}
    return [
        write for write in writes if (stamps[write.id] >= write.since if write.id in stamps else write.absent)
    ]
