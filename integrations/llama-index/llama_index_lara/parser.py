"""AdaptiveChunker as a LlamaIndex node parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llama_index.core.bridge.pydantic import BaseModel, Field, SerializeAsAny
from llama_index.core.llms import LLM
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.interface import IdFuncCallable
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, Document, MetadataMode, NodeRelationship, TextNode
from llama_index.core.utils import get_tqdm_iterable

from lara_plugins import AdaptiveChunker, InvalidArgument, NotSerializable, Passage
from lara_plugins.ingestion import (
    END,
    START,
    Chunk,
    Loaded,
    asituated,
    situated_by,
)
from lara_plugins.ingestion.loaders import loaded, passages_of_loaded
from lara_plugins.retrieval import CONTENT_HASH
from llama_index_lara.nodes import HEADING, SOURCE
from llama_index_lara.saving import check_pickles


class AdaptiveNodeParser(NodeParser):
    """Splits documents where their authors did: at headings, paragraphs, items, sentences, words.

    A node has the id that `lara_plugins.ingest` gives to the same passage of the same source
    (``source``, ``file_path`` or ``url`` in the document's metadata, else the document's id), so
    that both can fill one index. Documents that say which part of their source they are
    (``page``, ``page_label``, ``row`` or ``seq_num``) are numbered by it, each on its own; others of
    one source must be parsed together. The path of headings is its metadata ``heading``, which is
    embedded and shown; its span in the cleaned text is ``start_char_idx`` to ``end_char_idx``.

    Args:
        target: the most characters of a node's span, 100 to 20,000.
        overlap: at most so many characters, from a sentence's beginning, are in two nodes.
        context_llm: says in a sentence or two where each node stands in its document, which is
            embedded and shown with its heading; one call a node.
        **parser: arguments of LlamaIndex's ``NodeParser``. An ``id_func`` gives other ids.

    Saved are numbers and the settings of the ``context_llm``; it, and an ``id_func``, is given again:
    ``AdaptiveNodeParser.from_dict(saved, context_llm=llm)``.

    Raises:
        InvalidArgument: ``target`` or ``overlap`` is out of its range, or there is no such argument.
    """

    target: int = Field(default=1000)
    overlap: int = Field(default=300)
    context_llm: SerializeAsAny[LLM] | None = Field(default=None)
    id_func: IdFuncCallable = Field(default=default_id_func, exclude=True)

    def __init__(
        self, target: int = 1000, overlap: int = 300, context_llm: LLM | None = None, **parser: object
    ) -> None:
        AdaptiveChunker(target, overlap)
        for name, given in parser.items():
            if name not in type(self).model_fields:
                raise InvalidArgument(
                    name, given, f"{type(self).__name__} takes none: its size is target and overlap"
                )
        for name, given in (("context_llm", context_llm), ("id_func", parser.get("id_func"))):
            if isinstance(given, dict | str):
                raise NotSerializable(f"{name} is not saved: give it again, from_dict(saved, {name}=...)")
        BaseModel.__init__(self, target=target, overlap=overlap, context_llm=context_llm, **parser)

    @classmethod
    def class_name(cls) -> str:
        return "AdaptiveNodeParser"

    def to_dict(self, **kwargs: object) -> dict[str, object]:
        """What it is saved as, and what a pipeline's cache knows it by."""
        saved = super().to_dict(**kwargs)
        if self.id_func is not default_id_func:
            saved["id_func"] = self.id_func.__qualname__
        return saved

    def __getstate__(self) -> dict[str, object]:
        check_pickles(self.id_func, "define it in a module, for processes that share the work")
        check_pickles(self.context_llm, "parse in one process")
        return super().__getstate__()

    @property
    def _chunker(self) -> AdaptiveChunker:
        return AdaptiveChunker(self.target, self.overlap)

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: object
    ) -> list[BaseNode]:
        documents, chunks = self._split(nodes, show_progress)
        if self.context_llm is not None:
            situate = situated_by(self._complete)
            chunks = [list(situate(one.text, found)) for one, found in zip(documents, chunks, strict=True)]
        return self._built(nodes, documents, chunks)

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: object
    ) -> list[BaseNode]:
        documents, chunks = self._split(nodes, show_progress)
        if self.context_llm is not None:
            chunks = [
                await asituated(one.text, found, self._acomplete)
                for one, found in zip(documents, chunks, strict=True)
            ]
        return self._built(nodes, documents, chunks)

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        """The framework looks for each text in its document; the spans are known better here."""
        processed = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        for node in processed:
            if isinstance(node, TextNode):
                node.start_char_idx, node.end_char_idx = node.metadata[START], node.metadata[END]
        return processed

    def _split(
        self, nodes: Sequence[BaseNode], show_progress: bool
    ) -> tuple[list[Loaded], list[list[Chunk]]]:
        documents = [
            loaded(node.get_content(MetadataMode.NONE), node.metadata, node.node_id) for node in nodes
        ]
        shown = get_tqdm_iterable(documents, show_progress, "Parsing nodes")
        return documents, [self._chunker.split(one.text) for one in shown]

    def _built(
        self, nodes: Sequence[BaseNode], documents: Sequence[Loaded], chunks: Sequence[Sequence[Chunk]]
    ) -> list[BaseNode]:
        found = passages_of_loaded(documents, [node.metadata for node in nodes], chunks, self._chunker)
        return [
            built for node, passages in zip(nodes, found, strict=True) for built in self._of(node, passages)
        ]

    def _of(self, parent: BaseNode, passages: Sequence[Passage]) -> Iterator[TextNode]:
        """The nodes of one document; the framework adds its metadata and the other relationships."""
        relationships = {NodeRelationship.SOURCE: parent.as_related_node_info()}
        told = {
            "metadata_template": parent.metadata_template,
            "metadata_separator": parent.metadata_separator,
        }
        if isinstance(parent, TextNode | Document):
            told["text_template"] = parent.text_template
        for number, passage in enumerate(passages):
            metadata: dict[str, object] = {**passage.metadata, SOURCE: passage.source}
            if passage.heading:
                metadata[HEADING] = passage.heading
            placed = [SOURCE, CONTENT_HASH, START, END]
            named = self.id_func is default_id_func
            yield TextNode(
                id_=passage.id if named else self.id_func(number, parent),
                text=passage.text,
                metadata=metadata,
                excluded_embed_metadata_keys=[*parent.excluded_embed_metadata_keys, *placed],
                excluded_llm_metadata_keys=[*parent.excluded_llm_metadata_keys, *placed],
                relationships=relationships,
                **told,
            )

    def _complete(self, prompt: str) -> str:
        assert self.context_llm is not None  # noqa: S101 - asked only where there is one
        return self.context_llm.complete(prompt).text

    async def _acomplete(self, prompt: str) -> str:
        assert self.context_llm is not None  # noqa: S101
        return (await self.context_llm.acomplete(prompt)).text
