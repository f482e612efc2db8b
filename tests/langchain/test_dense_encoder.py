"""An application's embedding model as the dense half of a hybrid index."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from embeddings_server import EmbeddingsServer
from langchain_lara import HybridRetriever, dense_encoder
from langchain_openai import OpenAIEmbeddings
from langchain_parts import WordEmbeddings

from lara_plugins import DenseEncoder, EmbeddedIndex, InvalidArgument, Passage
from lara_plugins.retrieval import WordLlamaEncoder


def test_openais_vectors_at_1536_dimensions_come_normalised(tmp_path: Path) -> None:
    with EmbeddingsServer() as server:
        model = OpenAIEmbeddings(
            model="text-embedding-3-large",
            dimensions=1536,
            api_key="key",  # type: ignore[arg-type]
            base_url=server.url,
            check_embedding_ctx_length=False,  # else it loads a tokenizer from the network
        )
        encoder = dense_encoder(model, dimension=1536)
        assert isinstance(encoder, DenseEncoder)
        assert encoder.fingerprint == "text-embedding-3-large/1536"
        documents, query = (
            encoder.encode_documents(["river bank", "moon"]),
            encoder.encode_query("river bank"),
        )
        with EmbeddedIndex(tmp_path / "index", dense=encoder) as index:
            index.upsert([Passage("1", "the river bank"), Passage("2", "the moon")])
            found = HybridRetriever(index, limit=1).invoke("the moon")
    assert [document.id for document in found] == ["2"]
    assert [len(vector) for vector in [*documents, query]] == [1536] * 3
    assert [math.hypot(*vector) for vector in [*documents, query]] == pytest.approx([1.0] * 3)
    assert query == pytest.approx(documents[0])
    assert {request["dimensions"] for request in server.requests} == {1536}
    assert {request["model"] for request in server.requests} == {"text-embedding-3-large"}


def test_a_model_that_tells_no_name_is_given_one() -> None:
    with pytest.raises(InvalidArgument, match=r"^name=None: WordEmbeddings tells none: name its model"):
        dense_encoder(WordEmbeddings())
    encoder = dense_encoder(WordEmbeddings(), name="words")
    assert (encoder.dimension, encoder.fingerprint) == (256, "words/256")
    assert encoder.encode_query("river") == pytest.approx(WordLlamaEncoder().encode_query("river"))
    assert encoder.encode_documents([]) == []
