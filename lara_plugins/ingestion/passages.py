"""From a document's text to its passages: the one way, whoever loaded it."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lara_plugins.ingestion.chunking import AdaptiveChunker, Chunk
from lara_plugins.ingestion.readers import Part
from lara_plugins.passages import MetadataValue, Passage
from lara_plugins.retrieval import CONTENT_HASH

START, END, CONTEXT = "start", "end", "context"
"""Metadata keys: a passage's span in its cleaned text, and what was said of its place there."""

LONGEST_KEY = 400
"""Characters of a record's own identity that stand in a passage's id; Pinecone's ids have 512 at most."""

SOURCE_KEYS = ("source", "file_path", "url")

Situate = Callable[[str, Sequence[Chunk]], Sequence[Chunk]]
"""Gives the chunks of a text their context."""


def passage_id(source: str, key: str) -> str:
    """The identity of a source's passage: 16 hexadecimal digits of the source's SHA-256, "#", key.

    Args:
        source: where the passage comes from; two sources never share an identity.
        key: what tells the passage from the others of its source: a record's own ``_id``, else
            its number. One that an index may not take in an id, since it is long or not of visible
            ASCII characters, is replaced by its SHA-256; the metadata keeps a record's ``_id``.
    """
    if not (key.isascii() and key.isprintable() and len(key) <= LONGEST_KEY):
        key = hashlib.sha256(key.encode()).hexdigest()
    return f"{hashlib.sha256(source.encode()).hexdigest()[:16]}#{key}"


def source_name(name: str) -> str:
    """A document's source as `ingest` would name it: an absolute path for a file of this machine."""
    return str(Path(name).resolve()) if os.path.exists(name) else name


def source_of(metadata: Mapping[str, object]) -> str:
    """Where a text comes from, as the loaders of LlamaIndex and LangChain say it; "" if they do not."""
    return next((str(metadata[key]) for key in SOURCE_KEYS if metadata.get(key)), "")


def content_hash(chunker: AdaptiveChunker, content: Iterable[bytes]) -> str:
    """The identity of a source's content as it was split: another chunker makes it another one."""
    digest = hashlib.sha256(chunker.fingerprint.encode() + b"\0")
    for block in content:
        digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A text that another library's loader read: a whole file or one of its pages.

    Args:
        text: the text.
        source: its path, URL or any other identity.
        metadata: what each of its passages carries beside its content hash and span.
    """

    text: str
    source: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


def passages_of_chunks(
    documents: Sequence[Loaded], chunks: Sequence[Sequence[Chunk]], chunker: AdaptiveChunker
) -> list[list[Passage]]:
    """The passages of texts that others loaded, with the ids that `ingest` gives to the same text.

    Texts of one source, such as its pages, are numbered through, so they must be given together.

    Args:
        documents: the texts.
        chunks: the chunks of each.
        chunker: what they were split by.
    """
    contents: defaultdict[str, list[bytes]] = defaultdict(list)
    for document in documents:
        contents[source_name(document.source)].append(document.text.encode())
    hashes = {source: content_hash(chunker, content) for source, content in contents.items()}
    numbers: Counter[str] = Counter()
    found = []
    for document, pieces in zip(documents, chunks, strict=True):
        source = source_name(document.source)
        part = Part(document.text, metadata=document.metadata)
        first = numbers[source]
        found.append(
            [
                _passage(part, chunk, source, hashes[source], str(number))
                for number, chunk in enumerate(pieces, start=first)
            ]
        )
        numbers[source] += len(pieces)
    return found


def passages(
    parts: Iterable[Part],
    source: str,
    hashed: str,
    chunker: AdaptiveChunker,
    situate: Situate | None = None,
) -> Iterator[Passage]:
    """The passages of one source; those without an id of their own are numbered through."""
    number = 0
    for part in parts:
        for chunk in _chunks(part, chunker, situate):
            yield _passage(part, chunk, source, hashed, part.id or str(number))
            number += 1


def _chunks(part: Part, chunker: AdaptiveChunker, situate: Situate | None) -> Sequence[Chunk]:
    if part.record:
        return [Chunk(part.text, "", 0, len(part.text))]
    chunks = chunker.split_rows(part.text, part.delimiter) if part.delimiter else chunker.split(part.text)
    return situate(part.text, chunks) if situate else chunks


def _passage(part: Part, chunk: Chunk, source: str, hashed: str, key: str) -> Passage:
    metadata = {**part.metadata, CONTENT_HASH: hashed, START: chunk.start, END: chunk.end}
    if chunk.context:
        metadata[CONTEXT] = chunk.context
    path = " > ".join(filter(None, (part.heading, chunk.heading)))
    return Passage(
        id=passage_id(source, key),
        text=chunk.text,
        heading="\n".join(filter(None, (path, chunk.context))),
        source=source,
        metadata=metadata,
    )
