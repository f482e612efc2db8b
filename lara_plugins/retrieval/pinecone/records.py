"""Passages as records for Pinecone, in requests that keep to its limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NotRequired, TypedDict, TypeVar

from lara_plugins.errors import InvalidArgument, UnstorablePassages
from lara_plugins.passages import Passage
from lara_plugins.retrieval.encoders import SparseVector
from lara_plugins.retrieval.pinecone.layouts import WRITTEN, Stored, stored, without_text
from lara_plugins.retrieval.records import checked_passage, each_storable

MOST_RECORDS = 1000
"""Records in one request."""

MOST_BYTES = 2_000_000
"""Bytes of one request."""

ROOM = 1000
"""Bytes left for what surrounds the records, the namespace among it."""

MOST_METADATA_BYTES = 40 * 1024
MOST_ID_CHARACTERS = 512
MOST_NON_ZEROS = 1000

NEARLY_NOTHING = 1e-7
"""Pinecone refuses a dense vector that is all zero; one so short changes no score by more."""

STAMP_BYTES = len(f', "{WRITTEN}": {2**53}')
"""What a stamp adds to a record."""

T = TypeVar("T")


class Record(TypedDict):
    """A record as the SDK takes it."""

    id: str
    metadata: Stored
    values: NotRequired[list[float]]
    sparse_values: NotRequired[dict[str, object]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A passage that may be written, and the metadata of its record."""

    passage: Passage
    metadata: Stored


def drafts(passages: Sequence[Passage], fingerprint: str) -> list[Draft]:
    """The passages that are to be written, all checked; of those with one id, the last.

    Raises:
        InvalidArgument: a passage has no id.
        UnstorablePassages: passages cannot be stored in Pinecone.
    """
    drafted = each_storable(passages, partial(_drafted, fingerprint=fingerprint))
    return list({draft.passage.id: draft for draft in drafted}.values())


def dense_values(vector: Sequence[float]) -> list[float]:
    """A dense vector that Pinecone takes, of Python floats."""
    values = [float(value) for value in vector]
    return values if any(values) else [NEARLY_NOTHING, *values[1:]]


def sparse_values(vector: SparseVector, weight: float = 1.0) -> dict[str, object]:
    """A sparse vector as the SDK takes it."""
    return {"indices": list(vector.indices), "values": [weight * float(value) for value in vector.values]}


def hybrid_record(draft: Draft, dense: Sequence[float], sparse: SparseVector | None = None) -> Record:
    """A record of an index that holds dense vectors, with or without sparse ones."""
    record: Record = {"id": draft.passage.id, "values": dense_values(dense), "metadata": draft.metadata}
    if sparse is not None and sparse.indices:
        record["sparse_values"] = sparse_values(sparse)
    return record


def sparse_record(draft: Draft, sparse: SparseVector) -> Record:
    """A record of an index of sparse vectors alone."""
    return {
        "id": draft.passage.id,
        "sparse_values": sparse_values(sparse),
        "metadata": without_text(draft.metadata),
    }


def check_sparse_vectors(vectors: Sequence[SparseVector], drafted: Sequence[Draft]) -> None:
    """Refuse what a sparse encoder may not return.

    Raises:
        InvalidArgument: a wrong count.
        UnstorablePassages: vectors with too many entries.
    """
    if len(vectors) != len(drafted):
        raise InvalidArgument("sparse", len(vectors), f"the encoder must return {len(drafted)} vectors")
    reasons = {
        draft.passage.id: InvalidArgument(
            f"text of passage {draft.passage.id!r}",
            draft.passage.text,
            f"it has {len(vector.indices)} sparse entries and Pinecone takes {MOST_NON_ZEROS}: split it",
        )
        for vector, draft in zip(vectors, drafted, strict=True)
        if len(vector.indices) > MOST_NON_ZEROS
    }
    if reasons:
        raise UnstorablePassages(reasons)


def requests(records: Sequence[Record]) -> Iterator[list[Record]]:
    """The records in as few requests as their number and their bytes allow, in order."""
    request: list[Record] = []
    size = 0
    for record in records:
        bytes_ = len(json.dumps(record)) + STAMP_BYTES + 2
        if request and (len(request) == MOST_RECORDS or size + bytes_ > MOST_BYTES - ROOM):
            yield request
            request, size = [], 0
        request.append(record)
        size += bytes_
    if request:
        yield request


def stamped(records: Sequence[Record], stamp: int) -> list[Record]:
    """The records of a request with the time at which it is sent."""
    return [{**record, "metadata": {**record["metadata"], WRITTEN: stamp}} for record in records]


def parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """The items, at most so many together."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def _drafted(passage: Passage, fingerprint: str) -> Draft:
    checked_passage(passage)
    if not passage.id.isascii() or len(passage.id) > MOST_ID_CHARACTERS:
        raise InvalidArgument(
            "passage.id", passage.id, f"Pinecone takes ids of 1 to {MOST_ID_CHARACTERS} ASCII characters"
        )
    metadata = stored(passage, fingerprint)
    size = len(json.dumps(metadata, ensure_ascii=False).encode()) + STAMP_BYTES
    if size > MOST_METADATA_BYTES:
        raise InvalidArgument(
            f"passage {passage.id!r}",
            f"{size} bytes",
            f"text and metadata take at most {MOST_METADATA_BYTES} bytes in Pinecone: split the text or "
            "shorten the metadata",
        )
    return Draft(passage, metadata)
