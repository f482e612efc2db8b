"""An application's embedding model as the dense half of a hybrid index."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from embeddings_server import EmbeddingsServer
from llama_index_lara import dense_encoder
from word_embedding import WordEmbedding

from lara_plugins import DenseEncoder, EmbeddedIndex, Passage
from lara_plugins.retrieval import WordLlamaEncoder


def test_openais_vectors_at_1536_dimensions_come_normalised() -> None:
    openai = pytest.importorskip(
        "llama_index.embeddings.openai", reason="needs llama-index-embeddings-openai"
    )
    with EmbeddingsServer() as server:
        model = openai.OpenAIEmbedding(
            model="text-embedding-3-large", dimensions=1536, api_key="key", api_base=server.url
        )
        encoder = dense_encoder(model, dimension=1536)
        documents = encoder.encode_documents(["river bank", "moon"])
        query = encoder.encode_query("river bank")
    assert isinstance(encoder, DenseEncoder)
    assert encoder.fingerprint == "text-embedding-3-large/1536"
    assert [len(vector) for vector in [*documents, query]] == [1536] * 3
    assert [math.hypot(*vector) for vector in [*documents, query]] == pytest.approx([1.0] * 3)
    assert query == pytest.approx(documents[0])
    assert {request["dimensions"] for request in server.requests} == {1536}
    assert {request["model"] for request in server.requests} == {"text-embedding-3-large"}


def test_an_index_on_an_applications_embedding_model(tmp_path: Path) -> None:
    encoder = dense_encoder(WordEmbedding(model_name="words"))
    assert (encoder.dimension, encoder.fingerprint) == (256, "words/256")
    assert encoder.encode_query("river") == pytest.approx(WordLlamaEncoder().encode_query("river"))
    assert encoder.encode_documents([]) == []
    with EmbeddedIndex(tmp_path / "index", dense=encoder) as index:
        index.upsert([Passage("1", "the river bank"), Passage("2", "the moon")])
        assert index.search("a rocket to the moon", limit=1, alpha=1)[0].passage.id == "2"
