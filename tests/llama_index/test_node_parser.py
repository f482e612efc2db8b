"""AdaptiveNodeParser in LlamaIndex's own readers, pipelines and stores."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.readers import SimpleDirectoryReader
from llama_index.core.schema import BaseNode, Document, MetadataMode, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_lara import AdaptiveNodeParser, passages_of

from lara_plugins import EmbeddedIndex, InvalidArgument, NotSerializable, ingest
from lara_plugins.ingestion import clean

TEXT = (
    "# Limits\n\n## Columns\n\n"
    + "A table has columns. " * 20
    + "\n\n## Rows\n\n| row | size |\n|---|---|\n"
    + "| 1 | 2 |\n" * 60
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "limits.md").write_text(TEXT)
    (made / "wal.md").write_text("# WAL\n\nReaders do not block writers.\n")
    return made


def test_readers_and_ingest_fill_one_index_with_the_same_ids(folder: Path, tmp_path: Path) -> None:
    with EmbeddedIndex(tmp_path / "by-lara") as expected, EmbeddedIndex(tmp_path / "by-llama") as index:
        ingest([folder], expected)
        nodes = AdaptiveNodeParser().get_nodes_from_documents(SimpleDirectoryReader(str(folder)).load_data())
        index.upsert(passages_of(nodes))
        found, ours = (each.search("rows", limit=99, alpha=0.5) for each in (index, expected))
    read = {match.passage.id: (match.passage.content, match.passage.source) for match in found}
    assert read == {match.passage.id: (match.passage.content, match.passage.source) for match in ours}
    assert [match.score for match in found] == pytest.approx([match.score for match in ours])


def test_nodes_know_their_span_their_document_and_their_neighbours() -> None:
    document = Document(text=TEXT, metadata={"topic": "limits"}, excluded_llm_metadata_keys=["topic"])
    nodes = AdaptiveNodeParser(target=300, overlap=100).get_nodes_from_documents([document])
    covered = 0
    for node in nodes:
        assert isinstance(node, TextNode)
        assert node.start_char_idx is not None
        assert node.end_char_idx is not None
        assert node.start_char_idx <= covered < node.end_char_idx
        assert node.text.splitlines()[-1] in TEXT[node.start_char_idx : node.end_char_idx]
        assert node.ref_doc_id == document.id_
        assert node.metadata["topic"] == "limits"
        covered = node.end_char_idx
    assert covered == len(clean(TEXT).text)
    for earlier, later in itertools.pairwise(nodes):
        assert earlier.relationships[NodeRelationship.NEXT].node_id == later.node_id  # type: ignore[union-attr]
        assert later.relationships[NodeRelationship.PREVIOUS].node_id == earlier.node_id  # type: ignore[union-attr]
    embedded = nodes[0].get_content(MetadataMode.EMBED)
    assert "Limits > Columns" in embedded
    assert "topic: limits" in embedded
    assert "content_hash" not in embedded
    assert "topic" not in nodes[0].get_content(MetadataMode.LLM)
    assert document.metadata == {"topic": "limits"}


def test_documents_of_one_source_are_numbered_through() -> None:
    parts = [Document(text=f"Part {n}.", metadata={"file_path": "s3://b/a.md"}) for n in (1, 2)]
    nodes = AdaptiveNodeParser().get_nodes_from_documents(parts)
    assert [node.node_id.partition("#")[2] for node in nodes] == ["0", "1"]
    assert len({node.metadata["content_hash"] for node in nodes}) == 1


def pages(count: int, **changed: str) -> list[Document]:
    """A file page by page, as LlamaIndex's reader of PDFs brings it."""
    return [
        Document(
            id_=f"report_{label}",
            text=f"# Page {label}\n\n{TEXT}{changed.get(label, '')}",
            metadata={"file_path": "s3://bucket/report.pdf", "page_label": label},
        )
        for label in map(str, range(1, count + 1))
    ]


def test_a_page_has_its_ids_whichever_worker_parses_it_and_whatever_pages_are_beside_it() -> None:
    parser = AdaptiveNodeParser(target=300)
    together = [node.node_id for node in parser(pages(4))]
    assert len(set(together)) == len(together) > 4
    shared = IngestionPipeline(transformations=[parser]).run(documents=pages(4), num_workers=2)
    assert [node.node_id for node in shared] == together
    assert [node.node_id for page in pages(4) for node in parser([page])] == together


@pytest.mark.parametrize("strategy", [DocstoreStrategy.UPSERTS, DocstoreStrategy.UPSERTS_AND_DELETE])
def test_a_page_that_changes_leaves_the_others_in_the_store(strategy: DocstoreStrategy) -> None:
    store = SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[AdaptiveNodeParser(target=300), MockEmbedding(embed_dim=2)],
        docstore=SimpleDocumentStore(),
        docstore_strategy=strategy,
        vector_store=store,
    )
    pipeline.run(documents=pages(3))
    before = dict(store.data.text_id_to_ref_doc_id)
    changed = pipeline.run(documents=pages(3, **{"2": " And more."}))
    assert {node.ref_doc_id for node in changed} == {"report_2"}
    assert store.data.text_id_to_ref_doc_id == before


def test_it_works_in_a_pipeline_with_a_cache_and_a_docstore() -> None:
    documents = [Document(id_="one", text=TEXT), Document(id_="two", text="Short.")]
    pipeline = IngestionPipeline(
        transformations=[AdaptiveNodeParser(target=300)],
        cache=IngestionCache(),
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
    )
    first = pipeline.run(documents=documents)
    assert pipeline.run(documents=documents) == []
    changed = pipeline.run(documents=[documents[0], Document(id_="two", text="Changed.")])
    assert [node.get_content() for node in changed] == ["Changed."]
    assert {node.node_id for node in changed} < {node.node_id for node in first}
    cached = IngestionPipeline(transformations=[AdaptiveNodeParser(target=300)], cache=pipeline.cache)
    assert cached.run(documents=documents) == first
    assert len(pipeline.cache.cache.get_all(pipeline.cache.collection)) == 3


async def test_async_and_sync_give_the_same_nodes() -> None:
    parser = AdaptiveNodeParser(target=300)
    document = Document(id_="one", text=TEXT)
    assert await parser.acall([document]) == parser([document])


@pytest.mark.parametrize(
    "again",
    [
        lambda parser: AdaptiveNodeParser.from_dict(parser.to_dict()),
        lambda parser: AdaptiveNodeParser.from_json(parser.to_json()),
        lambda parser: pickle.loads(pickle.dumps(parser)),  # noqa: S301 - our own bytes
    ],
)
def test_it_is_saved(again: Callable[[AdaptiveNodeParser], AdaptiveNodeParser]) -> None:
    parser = AdaptiveNodeParser(target=300, overlap=50, include_prev_next_rel=False)
    restored = again(parser)
    assert (restored.target, restored.overlap, restored.include_prev_next_rel) == (300, 50, False)


class Situating(CustomLLM):
    """Says which word the part begins with."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponse:
        return CompletionResponse(text=f"Of limits.\n{prompt.partition('<part-')[2].split()[1]}")

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: object
    ) -> CompletionResponseGen:
        yield self.complete(prompt)


async def test_an_llm_places_each_node_in_its_document() -> None:
    parser = AdaptiveNodeParser(target=300, context_llm=Situating())
    document = Document(id_="one", text=TEXT)
    nodes: Sequence[BaseNode] = parser([document])
    assert nodes == await parser.acall([document])
    assert nodes[0].metadata["heading"] == "Limits > Columns\nOf limits. A"
    assert nodes[0].metadata["context"] == "Of limits. A"
    assert "Of limits. |" in nodes[-1].get_content(MetadataMode.EMBED)
    with pytest.raises(NotSerializable, match="context_llm"):
        AdaptiveNodeParser.from_dict(parser.to_dict())
    assert AdaptiveNodeParser.from_dict(parser.to_dict(), context_llm=Situating())([document]) == nodes
    assert IngestionPipeline(transformations=[parser]).run(documents=[document]) == nodes


def test_its_own_ids_and_bad_arguments() -> None:
    parser = AdaptiveNodeParser(id_func=lambda number, document: f"{document.node_id}/{number}")
    assert parser([Document(id_="one", text="Short.")])[0].node_id == "one/0"
    with pytest.raises(NotSerializable, match="id_func"):
        AdaptiveNodeParser.from_dict(parser.to_dict())
    with pytest.raises(NotSerializable, match="define it in a module"):
        pickle.dumps(parser)
    with pytest.raises(InvalidArgument, match="target"):
        AdaptiveNodeParser(target=10)
    with pytest.raises(InvalidArgument, match=r"^chunk_size=512: .* its size is target"):
        AdaptiveNodeParser(chunk_size=512)
    assert AdaptiveNodeParser()([Document(text=" ")]) == []
