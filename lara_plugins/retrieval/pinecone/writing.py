"""Writing to Pinecone: in batches, with patience, and so that it is known what was not written."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lara_plugins.errors import PartialUpsert
from lara_plugins.retrieval.pinecone.calls import (
    NOT_FOUND,
    Call,
    Patience,
    Plane,
    Steps,
    failures,
    insist,
    status_of,
)
from lara_plugins.retrieval.pinecone.encoding import Encoded
from lara_plugins.retrieval.pinecone.layouts import of_source
from lara_plugins.retrieval.pinecone.records import MOST_RECORDS, Draft, parts, requests, stamped
from lara_plugins.retrieval.pinecone.unseen import Unseen


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
    drafted, records = encoded.drafted, encoded.records
    sources = {draft.passage.id: draft.passage.source for draft in drafted}
    missing = {plane: {record["id"] for record in of_plane} for plane, of_plane in records.items()}
    try:
        for ids in parts(encoded.wordless, MOST_RECORDS):
            with unseen.writing("sparse", {id_: sources[id_] for id_ in ids}, away=True):
                call = Call("sparse", "delete", {"ids": list(ids), "namespace": namespace})
                yield from forget(call, patience)
        for plane, of_plane in sorted(records.items(), reverse=True):
            for request in requests(of_plane):
                ids = [record["id"] for record in request]
                with unseen.writing(plane, {id_: sources[id_] for id_ in ids}) as stamp:
                    vectors = stamped(request, stamp)
                    call = Call(plane, "upsert", {"vectors": vectors, "namespace": namespace})
                    yield from insist(call, patience)
                missing[plane].difference_update(ids)
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


def delete_source(
    planes: Sequence[Plane], source: str, namespace: str, patience: Patience, unseen: Unseen
) -> Steps[None]:
    """Delete a source's records from each plane, the dense one last: it tells what is held."""
    with unseen.deleting(source):
        for plane in sorted(planes, reverse=True):
            arguments = {"filter": of_source(source), "namespace": namespace}
            yield from forget(Call(plane, "delete", arguments), patience)
