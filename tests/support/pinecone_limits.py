"""What the Pinecone stand-in refuses: the documented limits of records and of queries."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from pinecone_http import Json, Refused

MOST_RECORDS = 1000
MOST_METADATA_BYTES = 40 * 1024
MOST_ID_CHARACTERS = 512
MOST_NON_ZEROS = 1000
MOST_RESULTS = 10_000
MOST_ANSWER_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Kind:
    """What vectors an index takes.

    Attributes:
        metric: ``dotproduct`` or ``cosine``.
        dimension: of its dense vectors, None where it holds sparse ones alone.
        sparse: whether its records may have sparse values.
    """

    metric: str
    dimension: int | None
    sparse: bool


def check_record(record: Json, kind: Kind) -> None:
    """Refuse a record that the index cannot hold."""
    id_ = record.get("id")
    if not isinstance(id_, str) or not 0 < len(id_) <= MOST_ID_CHARACTERS or not id_.isascii():
        raise bad(f"an id has 1 to {MOST_ID_CHARACTERS} ASCII characters")
    check_dense(record.get("values"), kind)
    check_sparse(record.get("sparseValues"), kind)
    if kind.dimension is None and "sparseValues" not in record:
        raise bad(f"record {id_} has no sparse values, and this is a sparse index")
    metadata = record.get("metadata") or {}
    for key, value in metadata.items():
        if not _storable(value):
            raise bad(
                f"metadata value must be a string, number, boolean or list of strings, got {value!r} "
                f"for field {key!r}"
            )
    size = len(json.dumps(metadata, ensure_ascii=False).encode())
    if size > MOST_METADATA_BYTES:
        raise bad(f"metadata size is {size} bytes, which exceeds the limit of {MOST_METADATA_BYTES} bytes")


def check_dense(values: object, kind: Kind) -> None:
    """Refuse a dense vector that the index cannot hold or compare with."""
    if not isinstance(values, list) or not values:
        if kind.dimension is not None:
            raise bad("dense values are required")
        return
    if kind.dimension is None:
        raise bad("this is a sparse index: it takes no dense values")
    if len(values) != kind.dimension:
        raise bad(
            f"vector dimension {len(values)} does not match the dimension of the index {kind.dimension}"
        )
    if not all(isinstance(value, float | int) and math.isfinite(value) for value in values):
        raise bad("dense values must be finite numbers")
    if not any(values):
        raise bad("dense vectors must contain at least one non-zero value")


def check_sparse(sparse: Json | None, kind: Kind) -> None:
    """Refuse a sparse vector that the index cannot hold or compare with."""
    if sparse is None:
        return
    if not kind.sparse:
        raise bad("the index does not support sparse values")
    indices, values = sparse.get("indices"), sparse.get("values")
    if not indices or not values or len(indices) != len(values):
        raise bad("sparse values need as many indices as values, one or more")
    if len(indices) > MOST_NON_ZEROS:
        raise bad(f"{len(indices)} sparse values exceed the limit of {MOST_NON_ZEROS}")
    if len(set(indices)) != len(indices) or not all(0 <= index < 2**32 for index in indices):
        raise bad("sparse indices must be distinct and within 0..2**32 - 1")
    if not all(math.isfinite(value) and value for value in values):
        raise bad("sparse values must be finite and not zero")


def check_answer(matches: list[Json]) -> None:
    """Refuse to answer a query with more than one message holds."""
    size = sum(len(json.dumps(match, ensure_ascii=False).encode()) for match in matches)
    if size > MOST_ANSWER_BYTES:
        message = (
            f"Error, message length too large: found {size} bytes, the limit is: {MOST_ANSWER_BYTES} bytes"
        )
        raise Refused(400, "OUT_OF_RANGE", message)


def bad(message: str) -> Refused:
    """A refusal for what the request holds."""
    return Refused(400, "INVALID_ARGUMENT", message)


def _storable(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
