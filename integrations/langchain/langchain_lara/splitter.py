"""AdaptiveChunker as a LangChain text splitter."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter

from langchain_lara.documents import HEADING, SOURCE
from lara_plugins import AdaptiveChunker, InvalidArgument, Passage
from lara_plugins.ingestion import situated_by, source_of, storable
from lara_plugins.ingestion.loaders import loaded, passages_of_loaded


class AdaptiveTextSplitter(TextSplitter):
    """Splits documents where their authors did: at headings, paragraphs, items, sentences, words.

    A document's pieces have the ids that `lara_plugins.ingest` gives to the same passages of the
    same source (``source``, ``file_path`` or ``url`` in the metadata, else the text itself), so
    that both can fill one index. Documents that say which part of their source they are (``page``,
    ``page_label``, ``row`` or ``seq_num``) are numbered by it, each on its own; others of one source
    must be split together. Their metadata has the path of headings as ``heading``, the span in the
    cleaned text as ``start`` and ``end``, and the ``content_hash`` of what was split of the source.

    Args:
        target: the most characters of a piece's span, 100 to 20,000.
        overlap: at most so many characters, from a sentence's beginning, are in two pieces.
        context: a language model as a function from a prompt to its reply
            (``lambda prompt: model.invoke(prompt).text``); it says where each piece stands in its
            document, which stands under the path in ``heading``. One call a piece.

    Raises:
        InvalidArgument: ``target`` or ``overlap`` is out of its range, or ``context`` no function.
    """

    def __init__(
        self, target: int = 1000, overlap: int = 300, context: Callable[[str], str] | None = None
    ) -> None:
        if context is not None and not callable(context):
            raise InvalidArgument(
                "context", context, "give a function, lambda prompt: model.invoke(prompt).text"
            )
        self._chunker = AdaptiveChunker(target, overlap)
        self._context = context
        super().__init__(chunk_size=target, chunk_overlap=min(overlap, target))

    def split_text(self, text: str) -> list[str]:
        """The texts of the pieces alone, without what stands in their metadata."""
        return [chunk.text for chunk in self._chunker.split(text)]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        given = metadatas or [{}] * len(texts)
        if len(given) != len(texts):
            raise InvalidArgument("metadatas", len(given), f"give one for each of the {len(texts)} texts")
        documents = [loaded(text, one, text) for text, one in zip(texts, given, strict=True)]
        chunks = [self._chunker.split(document.text) for document in documents]
        if self._context is not None:
            situate = situated_by(self._context)
            chunks = [list(situate(one.text, found)) for one, found in zip(documents, chunks, strict=True)]
        passages = passages_of_loaded(documents, given, chunks, self._chunker)
        return [
            _document(passage, one) for one, found in zip(given, passages, strict=True) for passage in found
        ]


def passages_of(documents: Iterable[Document]) -> list[Passage]:
    """Pieces as passages that a hybrid index takes: ``index.upsert(passages_of(pieces))``.

    The heading is embedded and read with the text; other metadata is kept where an index can
    store it: strings, numbers, true or false, and lists of strings.

    Raises:
        InvalidArgument: a document has no id.
    """
    return [
        Passage(
            id=_id(document),
            text=document.page_content,
            heading=str(document.metadata.get(HEADING) or ""),
            source=source_of(document.metadata),
            metadata=storable(document.metadata, without=(HEADING, SOURCE)),
        )
        for document in documents
    ]


def _id(document: Document) -> str:
    if not document.id:
        remedy = "give each document an id of its own, as AdaptiveTextSplitter does"
        raise InvalidArgument("document.id", document.id, remedy)
    return document.id


def _document(passage: Passage, given: Mapping[Any, Any]) -> Document:
    metadata = {**copy.deepcopy(dict(given)), **passage.metadata}
    if source_of(given):
        metadata[SOURCE] = passage.source
    if passage.heading:
        metadata[HEADING] = passage.heading
    return Document(id=passage.id, page_content=passage.text, metadata=metadata)
