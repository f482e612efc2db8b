"""A passage as a stored record and back: its identity, its payload, and what may not go in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, cast
from uuid import UUID, uuid5

from lara_plugins.arguments import check_count, check_share, is_utf8
from lara_plugins.errors import InvalidArgument, UnstorablePassages
from lara_plugins.passages import MetadataValue, Passage
from lara_plugins.retrieval.encoders import SparseVector
from lara_plugins.retrieval.filters import filterable
from lara_plugins.retrieval.index import CONTENT_HASH

Made = TypeVar("Made")

Payload: TypeAlias = dict[str, MetadataValue | dict[str, MetadataValue]]

LEDGER_KEYS = ("id", "source", "content_hash", "length", "metadata")
"""The payload keys that an index keeps in memory."""

PASSAGE_KEYS = ("id", "text", "heading", "source", "metadata")
"""The payload keys that make a passage."""

_NAMESPACE = UUID("6c617261-706c-5567-b073-726574726965")
_MAX_INTEGER = 2**63 - 1
_NO_PASSAGE = "give Passage objects; passages_of of the framework's package makes them of its own"
_SURROGATE = "it holds half a surrogate pair: decode it from its right encoding"


@dataclass(frozen=True, slots=True)
class Point:
    """What is stored of one passage."""

    id: UUID
    dense: list[float]
    sparse: SparseVector
    payload: Payload


@dataclass(frozen=True, slots=True)
class Record:
    """What is read back of one passage: the payload keys that were asked for, and its terms."""

    id: UUID
    payload: Payload
    terms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What an index remembers of each passage while it is open; ``fields`` is what filters see."""

    id: str
    source: str
    content_hash: str
    length: int
    fields: Mapping[str, MetadataValue]


def record_id(passage_id: str) -> UUID:
    """The engine takes only UUIDs: the one that follows from a passage's id."""
    return uuid5(_NAMESPACE, passage_id)


def payload_of(passage: Passage, length: int) -> Payload:
    """All that is known of a passage, and how many terms it has."""
    content_hash = passage.metadata.get(CONTENT_HASH, "")
    return {
        "id": passage.id,
        "text": passage.text,
        "heading": passage.heading,
        "source": passage.source,
        "metadata": dict(passage.metadata),
        "content_hash": content_hash,
        "length": length,
    }


def row_of(payload: Payload) -> Row:
    """The remembered part of a payload.

    Raises:
        KeyError: the payload was not written by ``payload_of``.
    """
    length = payload["length"]
    if not isinstance(length, int):
        raise KeyError("length")
    return Row(
        str(payload["id"]),
        str(payload["source"]),
        str(payload["content_hash"]),
        length,
        filterable(_described(payload)),
    )


def passage_of(payload: Payload) -> Passage:
    """The passage of a whole payload."""
    return replace(_described(payload), text=str(payload["text"]), heading=str(payload["heading"]))


def _described(payload: Payload) -> Passage:
    """The passage without its text and heading."""
    return Passage(
        id=str(payload["id"]),
        text="",
        source=str(payload["source"]),
        metadata=cast(dict[str, MetadataValue], payload["metadata"]),
    )


def passage_content(payload: Payload) -> str:
    """What was encoded of a passage; needs its text and heading alone."""
    return Passage(id="", text=str(payload["text"]), heading=str(payload["heading"])).content


def check_text(argument: str, text: str) -> None:
    """Refuse what cannot be searched for or stored.

    Raises:
        InvalidArgument: ``text`` is no string, blank, or cannot be written as UTF-8.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgument(argument, text, "give a text that is not blank")
    if not is_utf8(text):
        raise InvalidArgument(argument, text, _SURROGATE)


def checked_passage(passage: Passage) -> Passage:
    """The passage itself; one that cannot be stored and found again is refused.

    Raises:
        InvalidArgument: the id or the text is blank, a text cannot be written as UTF-8, or a value of
            the metadata is of no type that metadata may have.
    """
    check_text("passage.id", passage.id)
    check_text(f"text of passage {passage.id!r}", passage.text)
    for name in ("heading", "source"):
        value = getattr(passage, name)
        if value != "":
            check_text(f"{name} of passage {passage.id!r}", value)
    for key, value in passage.metadata.items():
        if not isinstance(key, str) or not _storable(value):
            remedy = "give a str, bool, list of str, or a finite number (an int of 64 bits)"
            raise InvalidArgument(f"metadata[{key!r}] of passage {passage.id!r}", value, remedy)
        texts = [key, *value] if isinstance(value, list) else [key, value]
        if not all(is_utf8(text) for text in texts if isinstance(text, str)):
            raise InvalidArgument(f"metadata[{key!r}] of passage {passage.id!r}", value, _SURROGATE)
    return passage


def each_storable(passages: Iterable[Passage], make: Callable[[Passage], Made]) -> list[Made]:
    """What ``make`` makes of each passage, where all can be stored.

    Args:
        passages: the passages, a list or a generator of them.
        make: raises InvalidArgument for a passage that cannot be stored.

    Raises:
        InvalidArgument: they are no passages, or one has no id.
        UnstorablePassages: some cannot; it names all of them.
    """
    if isinstance(passages, Passage | str) or not isinstance(passages, Iterable):
        raise InvalidArgument("passages", passages, "give a list of passages")
    made: list[Made] = []
    reasons: dict[str, InvalidArgument] = {}
    for passage in passages:
        if not isinstance(passage, Passage):
            raise InvalidArgument("passages", passage, _NO_PASSAGE)
        check_text("passage.id", passage.id)  # what names a passage must be sound first
        try:
            made.append(make(passage))
        except InvalidArgument as error:
            reasons[passage.id] = error
    if reasons:
        raise UnstorablePassages(reasons)
    return made


def check_search(text: str, *, limit: int, alpha: float, dense_text: str | None) -> None:
    """Refuse what no index can search for.

    Raises:
        InvalidArgument: a text is blank, ``limit`` is below 1 or ``alpha`` outside 0..1.
    """
    check_text("text", text)
    if dense_text is not None:
        check_text("dense_text", dense_text)
    check_count("limit", limit, "give a whole number, 1 or more")
    check_share("alpha", alpha, "give the dense half's weight, from 0 to 1")


def check_vectors(vectors: Sequence[Sequence[float]], texts: Sequence[str], dimension: int) -> None:
    """Refuse what a dense encoder may not return: the engine would store it in silence.

    Raises:
        InvalidArgument: a wrong count or dimension, NaN, infinity, or a vector that is neither of
            length 1 nor all zero.
    """
    if len(vectors) != len(texts):
        raise InvalidArgument("dense", len(vectors), f"the encoder must return {len(texts)} vectors")
    for vector in vectors:
        if len(vector) != dimension:
            raise InvalidArgument("dense", len(vector), f"the encoder must return {dimension} dimensions")
        length = math.hypot(*vector)
        if not (length == 0 or abs(length - 1) < 1e-3):  # also refuses NaN
            raise InvalidArgument("dense", length, "the encoder must return vectors of length 1, or all zero")


def _storable(value: object) -> bool:
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return -_MAX_INTEGER <= value <= _MAX_INTEGER
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
