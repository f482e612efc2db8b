"""What the loaders of LlamaIndex and LangChain bring, as passages.

A loader may bring a file as many documents: its pages, rows or records. Frameworks hand those out
to several workers, and bring a page that has changed without the others. So a document that tells
its place in the file is numbered by that place, and needs none of the others for its ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lara_plugins.ingestion.chunking import AdaptiveChunker, Chunk
from lara_plugins.ingestion.passages import Loaded, passage_id, passages_of_chunks, source_of
from lara_plugins.passages import Passage

PLACES = ("page", "page_label", "row", "seq_num")
"""Where loaders say which page, row or record of its file a document is."""


def loaded(text: str, metadata: Mapping[str, object], otherwise: str) -> Loaded:
    """A loader's document; halves of surrogate pairs, which PDFs bring along, become "?".

    Args:
        text: its text.
        metadata: its metadata.
        otherwise: its source where the metadata tells none.
    """
    return Loaded(_whole(text), _whole(source_of(metadata) or otherwise))


def passages_of_loaded(
    documents: Sequence[Loaded],
    metadata: Sequence[Mapping[str, object]],
    chunks: Sequence[Sequence[Chunk]],
    chunker: AdaptiveChunker,
) -> list[list[Passage]]:
    """The passages of loaders' documents.

    Those of a document that tells no place have the ids that `ingest` gives to the same text, and
    those of a page, row or record the place's name and their number in it.

    Args:
        documents: the documents.
        metadata: of each, as its loader gave it.
        chunks: of each.
        chunker: what they were split by.
    """
    found = passages_of_chunks(documents, chunks, chunker)
    numbers: Counter[tuple[str, str]] = Counter()
    for passages, told in zip(found, metadata, strict=True):
        if place := _place(told):
            for at, passage in enumerate(passages):
                number = numbers[passage.source, place]
                numbers[passage.source, place] += 1
                passages[at] = replace(passage, id=passage_id(passage.source, f"{place}.{number}"))
    return found


def _place(metadata: Mapping[str, object]) -> str:
    """The document's place in its file, "" where it tells none."""
    return next((f"{key}-{metadata[key]}" for key in PLACES if metadata.get(key) not in (None, "")), "")


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
