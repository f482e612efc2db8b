"""Applications that keep their framework's own Pinecone store: LARA on top of it, and beside it.

The stores accept old majors of the SDK only, so this is run with one of these (``make test-pinecone-7``).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pytest
from pinecone_clients import client_of, create_index
from pinecone_server import PineconeServer
from towers import LOOKUP, PASSAGES, UNANSWERABLE

from lara_plugins import PineconeIndex

llama_index_store = pytest.importorskip(
    "llama_index.vector_stores.pinecone", reason="needs llama-index-vector-stores-pinecone"
)
langchain_store = pytest.importorskip("langchain_pinecone", reason="needs langchain-pinecone")

import langchain_lara  # noqa: E402 - after what it needs is known to be here
import llama_index_lara  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.runnables import RunnablePassthrough  # noqa: E402
from langchain_parts import DOCUMENTS, WordEmbeddings  # noqa: E402
from llama_index.core import VectorStoreIndex  # noqa: E402
from llama_index.core.base.embeddings.base_sparse import BaseSparseEmbedding, SparseEmbedding  # noqa: E402
from llama_index.core.schema import TextNode  # noqa: E402
from llama_index_lara import ExtractiveLLM  # noqa: E402
from word_embedding import WordEmbedding  # noqa: E402

from lara_plugins import Bm25Encoder  # noqa: E402
from lara_plugins.retrieval import SparseVector  # noqa: E402

KINDS = ["sync", "async"]
BM25 = Bm25Encoder.fit(passage.content for passage in PASSAGES)


class Bm25Embedding(BaseSparseEmbedding):
    """BM25 as LlamaIndex's stores take it."""

    def _get_query_embedding(self, query: str) -> SparseEmbedding:
        return _as_dict(BM25.encode_query(query))

    async def _aget_query_embedding(self, query: str) -> SparseEmbedding:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> SparseEmbedding:
        return _as_dict(BM25.encode_documents([text])[0])

    async def _aget_text_embedding(self, text: str) -> SparseEmbedding:
        return self._get_text_embedding(text)


def _as_dict(vector: SparseVector) -> dict[int, float]:
    return dict(zip(vector.indices, vector.values, strict=True))


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as running:
        yield running


@pytest.fixture
def handle(server: PineconeServer) -> Any:  # noqa: ANN401 - the SDK's index of whichever major
    client = client_of(server)
    create_index(client, "application", dimension=256, metric="dotproduct")
    return client.Index(host=server.indexes["application"].url)


@pytest.fixture(params=["dense", "hybrid"])
def nodes(request: pytest.FixtureRequest, handle: Any) -> VectorStoreIndex:  # noqa: ANN401
    """A LlamaIndex application's index, filled through its own store."""
    hybrid = {"add_sparse_vector": True, "sparse_embedding_model": Bm25Embedding(model_name="bm25")}
    store = llama_index_store.PineconeVectorStore(
        pinecone_index=handle, **(hybrid if request.param == "hybrid" else {})
    )
    index = VectorStoreIndex.from_vector_store(store, embed_model=WordEmbedding())
    index.insert_nodes(
        [
            TextNode(id_=passage.id, text=passage.text, metadata={"title": passage.heading})
            for passage in PASSAGES
        ]
    )
    return index


@pytest.fixture
def store(handle: Any) -> Any:  # noqa: ANN401
    """A LangChain application's store, filled by itself."""
    filled = langchain_store.PineconeVectorStore(handle, WordEmbeddings())
    filled.add_documents([document.model_copy(deep=True) for document in DOCUMENTS])
    return filled


def test_a_query_engine_of_llamaindex(nodes: VectorStoreIndex) -> None:
    llm = ExtractiveLLM()
    mode = "hybrid" if nodes.vector_store.add_sparse_vector else "default"  # type: ignore[attr-defined]
    engine = nodes.as_query_engine(
        llm=llm,
        similarity_top_k=50,
        vector_store_query_mode=mode,
        alpha=0.5,
        node_postprocessors=[
            llama_index_lara.ThresholdGate(scorer="embedded"),
            llama_index_lara.LatencyBudget(afford=60.0),
        ],
        response_synthesizer=llama_index_lara.RefineInThrees(llm),
    )
    response = engine.query(LOOKUP)
    assert "330 metres" in str(response)
    assert response.source_nodes[0].node_id == "p0"
    assert response.metadata is not None
    gate = next(each for each in response.metadata["lara"]["phases"] if each["phase"] == "gate")
    assert gate["candidates"] == len(PASSAGES)
    assert gate["kept"] < 5
    assert "none of 12 scored passages reaches theta" in str(engine.query(UNANSWERABLE))


@pytest.mark.parametrize("kind", KINDS)
async def test_all_phases_over_a_store_of_llamaindex(nodes: VectorStoreIndex, kind: str) -> None:
    engine = llama_index_lara.lara_query_engine(
        nodes.as_retriever(similarity_top_k=50), ExtractiveLLM(), 60.0, "embedded"
    )
    response = engine.query(LOOKUP) if kind == "sync" else await engine.aquery(LOOKUP)
    assert "330 metres" in str(response)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_chain_of_langchain(store: Any, kind: str) -> None:  # noqa: ANN401
    chain = (
        RunnablePassthrough.assign(context=itemgetter("input") | store.as_retriever(search_kwargs={"k": 50}))
        .assign(context=langchain_lara.ThresholdGate(scorer="embedded"))
        .assign(context=langchain_lara.LatencyBudget(afford=60.0))
        .assign(answer=langchain_lara.RefineInThrees(langchain_lara.ExtractiveChatModel()))
    )
    answered = await call(chain, kind, {"input": LOOKUP})
    assert "330 metres" in answered["answer"]
    assert answered["context"][0].id == "p0"
    assert len(answered["context"]) < 5
    none = await call(chain, kind, {"input": UNANSWERABLE})
    assert none["context"] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_all_phases_over_a_store_of_langchain(store: Any, kind: str) -> None:  # noqa: ANN401
    retriever = store.as_retriever(search_kwargs={"k": 50})
    chain = langchain_lara.lara_chain(retriever, langchain_lara.ExtractiveChatModel(), 60.0, "embedded")
    answered = await call(chain, kind, {"input": LOOKUP})
    assert "330 metres" in answered["answer"]


async def call(chain: Any, kind: str, given: dict[str, object]) -> Any:  # noqa: ANN401
    return chain.invoke(given) if kind == "sync" else await chain.ainvoke(given)


def test_hybrid_retrieval_reads_what_llamaindex_has_written(
    server: PineconeServer, nodes: VectorStoreIndex
) -> None:
    hybrid = nodes.vector_store.add_sparse_vector  # type: ignore[attr-defined]
    index = PineconeIndex(
        client_of(server),
        "application",
        dense=llama_index_lara.dense_encoder(WordEmbedding(model_name="words")),
        sparse=BM25 if hybrid else None,
        layout="llama_index",
    )
    found = llama_index_lara.HybridRetriever(index, filter={"title": {"$ne": "Baking"}}).retrieve(LOOKUP)
    assert found[0].node_id == "p0"
    assert found[0].text == PASSAGES[0].text
    assert len(found) == len(PASSAGES) - 1


def test_hybrid_retrieval_reads_what_langchain_has_written(server: PineconeServer, store: Any) -> None:  # noqa: ANN401
    dense = langchain_lara.dense_encoder(store.embeddings, name="words")
    index = PineconeIndex(client_of(server), "application", dense=dense, layout="langchain")
    found = langchain_lara.HybridRetriever(index, limit=3).invoke(LOOKUP)
    assert found[0] == Document(id="p0", page_content=PASSAGES[0].text, metadata=DOCUMENTS[0].metadata)
