"""Between LangChain's documents and LARA's passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import NAMESPACE_OID, uuid5

from langchain_core.documents import Document

from lara_plugins import Passage
from lara_plugins.retrieval import Match

SOURCE = "source"
HEADING = "heading"
SCORE = "relevance_score"


def shown_passage(document: Document) -> Passage:
    """The document as it is scored, shown and quoted: its text, under its metadata's ``heading``.

    A document without an id gets one that is the same for the same text and source, half a surrogate
    pair in it included.
    """
    metadata = document.metadata
    source = next((str(metadata[key]) for key in (SOURCE, "file_path", "url") if metadata.get(key)), "")
    text = document.page_content
    name = f"{source}\n{text}".encode("utf-8", "replace").decode()
    return Passage(
        document.id or str(uuid5(NAMESPACE_OID, name)),
        text,
        heading=str(metadata.get(HEADING) or ""),
        source=source,
    )


def document_from_match(match: Match) -> Document:
    """A match of a hybrid index as a document with the same id, text and metadata."""
    passage = match.passage
    metadata: dict[str, object] = dict(passage.metadata)
    if passage.source:
        metadata[SOURCE] = passage.source
    if passage.heading:
        metadata[HEADING] = passage.heading
    return Document(id=passage.id, page_content=passage.text, metadata=metadata)


def copied(document: Document, **metadata: object) -> Document:
    """The document once more, with some more metadata; the one that was given stays as it is."""
    return document.model_copy(update={"metadata": {**document.metadata, **metadata}})


def originals(passages: Sequence[Passage], known: Mapping[str, object]) -> list[Document]:
    """The documents behind some passages, as far as they are known."""
    documents = (known.get(passage.id) for passage in passages)
    return [document for document in documents if isinstance(document, Document)]
