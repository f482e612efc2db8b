"""How passages stand in the metadata of Pinecone's records: in our own layout, and in the frameworks'."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from lara_plugins.errors import HybridIndexError, InvalidArgument
from lara_plugins.passages import MetadataValue, Passage
from lara_plugins.retrieval.filters import MOST_WHOLE, RESERVED, SOURCE, plain
from lara_plugins.retrieval.index import CONTENT_HASH
from lara_plugins.retrieval.pinecone.preflight import TAG

Layout = Literal["lara", "llama_index", "langchain"]
"""Who filled an index."""

TEXT = "lara_text"
HEADING = "lara_heading"
OWN_SOURCE = "lara_source"
ID = "lara_id"
WRITTEN = "lara_written"
"""When a record was sent to Pinecone, in microseconds since 1970: which of two is the later one."""

FRAMEWORK_HEADING = "heading"

_LLAMA_INDEX_KEYS = ("_node_content", "_node_type", "document_id", "doc_id", "ref_doc_id")

Stored = dict[str, Any]
"""The metadata of a record."""


def stored(passage: Passage, fingerprint: str) -> Stored:
    """The metadata of a passage's record.

    The passage's own metadata stands there as it is, so that filters find it, and its source as
    ``source`` unless the metadata has a key of that name.

    Raises:
        InvalidArgument: the metadata has what Pinecone does not take.
    """
    kept: Stored = {}
    for key, value in passage.metadata.items():
        where = f"metadata[{key!r}] of passage {passage.id!r}"
        if key.startswith((RESERVED, "$")):
            raise InvalidArgument(where, value, f"rename the key: {RESERVED} and $ are taken")
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MOST_WHOLE:
            raise InvalidArgument(where, value, "Pinecone keeps numbers as 64-bit floats: give it as a str")
        kept[key] = plain(value)
    if SOURCE in kept:
        kept[OWN_SOURCE] = passage.source
    elif passage.source:
        kept[SOURCE] = passage.source
    kept |= {TEXT: passage.text, TAG: fingerprint, ID: passage.id}
    if passage.heading:
        kept[HEADING] = passage.heading
    return kept


def without_text(metadata: Stored) -> Stored:
    """What a record of the sparse index of two carries: all but the text, which the dense one has."""
    return {key: value for key, value in metadata.items() if key not in (TEXT, HEADING)}


def of_source(source: str) -> dict[str, object]:
    """The filter for the records of a source."""
    plain = {"$and": [{SOURCE: {"$eq": source}}, {OWN_SOURCE: {"$exists": False}}]}
    return {"$or": [plain, {OWN_SOURCE: {"$eq": source}}]}


def record_source(metadata: Mapping[str, Any]) -> str:
    """The source of a record in our own layout."""
    return str(metadata.get(OWN_SOURCE, metadata.get(SOURCE, "")))


def content_hashes(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The content hash of each source in our own layout, "" where its records do not agree on one."""
    found: dict[str, str] = {}
    for metadata in records:
        source = record_source(metadata)
        hashed = str(metadata.get(CONTENT_HASH, ""))
        if source:
            found[source] = hashed if found.get(source, hashed) == hashed else ""
    return found


def passage_of(id_: str, metadata: Mapping[str, Any], layout: Layout, text_key: str, index: str) -> Passage:
    """The passage of a record.

    Numbers come back from Pinecone as floats; whole ones that a float holds as they are become int.

    Args:
        id_: the record's id.
        metadata: its metadata.
        layout: who filled the index.
        text_key: the key under which LangChain, or an older LlamaIndex, keeps the text.
        index: the index's name, for the error's sentence.

    Raises:
        HybridIndexError: the record has no text where the layout says.
    """
    fields = {key: _whole(value) for key, value in metadata.items()}
    if layout == "lara":
        found = _of_lara(id_, fields)
    elif layout == "llama_index":
        found = _of_llama_index(id_, fields, text_key)
    else:
        found = _of_langchain(id_, fields, text_key)
    if found is None:
        raise HybridIndexError(
            f"record {id_} of the Pinecone index {index} holds no text where layout={layout!r} says: name "
            "the layout that filled it (lara, llama_index, langchain) and, for langchain, its text_key"
        )
    return found


def _of_lara(id_: str, fields: Stored) -> Passage | None:
    if TEXT not in fields:
        return None
    own = {key: value for key, value in fields.items() if not key.startswith(RESERVED)}
    source = fields[OWN_SOURCE] if OWN_SOURCE in fields else own.pop(SOURCE, "")
    return Passage(id_, fields[TEXT], heading=fields.get(HEADING, ""), source=source, metadata=own)


def _of_llama_index(id_: str, fields: Stored, text_key: str) -> Passage | None:
    """The node that LlamaIndex's vector stores keep as JSON beside its flat metadata."""
    try:
        node = json.loads(fields["_node_content"])
        resource = node.get("text_resource") or {}
        text = node.get("text") or resource.get("text") or fields.get(text_key)
    except (KeyError, ValueError, AttributeError):
        return None
    if not text:
        return None
    own = {key: value for key, value in fields.items() if key not in (*_LLAMA_INDEX_KEYS, text_key)}
    return _of_framework(str(node.get("id_") or id_), text, own)


def _of_langchain(id_: str, fields: Stored, text_key: str) -> Passage | None:
    text = fields.pop(text_key, None)
    if not isinstance(text, str):
        return None
    return _of_framework(id_, text, fields)


def _of_framework(id_: str, text: str, metadata: Stored) -> Passage:
    """A heading stands in the metadata where our parser and our splitter put it."""
    heading = metadata.pop(FRAMEWORK_HEADING) if isinstance(metadata.get(FRAMEWORK_HEADING), str) else ""
    return Passage(id_, text, heading=heading, source=_source(metadata), metadata=metadata)


def _source(metadata: Mapping[str, MetadataValue]) -> str:
    return next((str(metadata[key]) for key in (SOURCE, "file_path", "url") if metadata.get(key)), "")


def _whole(value: object) -> object:
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= MOST_WHOLE
    return int(value) if whole else value  # type: ignore[call-overload]  # a float, as was asked
