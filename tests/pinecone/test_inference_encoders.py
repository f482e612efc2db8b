"""The encoders that Pinecone hosts, and an index that they fill."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from pinecone_clients import client_of
from pinecone_server import PineconeServer

from lara_plugins import (
    DenseEncoder,
    HybridIndexError,
    Passage,
    Patience,
    PineconeDenseEncoder,
    PineconeIndex,
    PineconeSparseEncoder,
    SparseEncoder,
)


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


def test_dense_vectors_come_normalised_and_of_the_dimension_asked_for(server: PineconeServer) -> None:
    encoder = PineconeDenseEncoder(client_of(server), dimension=384)
    vectors = [*encoder.encode_documents(["river bank", "moon"]), encoder.encode_query("river")]
    assert isinstance(encoder, DenseEncoder)
    assert [len(vector) for vector in vectors] == [384] * 3
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * 3)
    assert [body["parameters"]["input_type"] for body in server.bodies("/embed")] == ["passage", "query"]


def test_sparse_questions_sum_to_1_and_documents_stay(server: PineconeServer) -> None:
    encoder = PineconeSparseEncoder(client_of(server))
    (document,) = encoder.encode_documents(["river river bank"])
    query = encoder.encode_query("river bank")
    assert isinstance(encoder, SparseEncoder)
    assert set(query.indices) == set(document.indices)
    assert math.fsum(query.values) == pytest.approx(1.0)
    assert sorted(document.values) == pytest.approx([1.0, 1.2])
    assert encoder.encode_documents([]) == []


def test_many_texts_go_in_requests_of_96(server: PineconeServer) -> None:
    encoder = PineconeSparseEncoder(client_of(server))
    assert len(encoder.encode_documents([f"word{n}" for n in range(200)])) == 200
    assert [len(body["inputs"]) for body in server.bodies("/embed")] == [96, 96, 8]


def test_another_models_embeddings_are_refused() -> None:
    with PineconeServer(lambda reply: reply | {"model": "other"}) as server:
        encoder = PineconeSparseEncoder(client_of(server))
        with pytest.raises(HybridIndexError, match="1 embeddings of other for 1 texts"):
            encoder.encode_query("river")


@pytest.mark.parametrize("sparse_name", [None, "words"])
def test_an_index_is_filled_and_searched_by_them(server: PineconeServer, sparse_name: str | None) -> None:
    client = client_of(server)
    index = PineconeIndex.create(
        client,
        "passages",
        dense=PineconeDenseEncoder(client),
        sparse=PineconeSparseEncoder(client),
        sparse_name=sparse_name,
        patience=Patience(first_pause=0.001),
    )
    index.upsert([Passage("1", "river bank"), Passage("2", "moon orbit"), Passage("3", "bell tower")])
    index.wait_until_visible()
    for alpha in (0, 0.5, 1):
        assert index.search("moon", limit=1, alpha=alpha)[0].passage.id == "2"
