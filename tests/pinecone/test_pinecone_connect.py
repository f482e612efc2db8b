"""Connecting: what an index is, who filled it, and in whose layout."""

from __future__ import annotations

import importlib.metadata
import json
import logging
from collections.abc import Iterator
from typing import Any

import pinecone
import pytest
from hashed_words import HashedWords
from pinecone_clients import MAJOR, client_of, create_index
from pinecone_limits import Kind
from pinecone_server import PineconeServer

from lara_plugins import (
    Bm25Encoder,
    EmbeddingMismatch,
    HybridIndexError,
    IndexUnsuitable,
    InvalidArgument,
    PackageConflict,
    Passage,
    Patience,
    PineconeIndex,
    retrieval_plan,
)
from lara_plugins.retrieval.pinecone import preflight

DENSE = HashedWords(8)
BM25 = Bm25Encoder(4)
RIVER = Passage("1", "river bank", source="a.md")
SOON = Patience(first_pause=0.001)


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Kind("cosine", 8, sparse=False), "has the metric cosine, and only dotproduct adds sparse values"),
        (Kind("dotproduct", 16, sparse=True), "has 16 dimensions and the encoder gives 8"),
        (Kind("dotproduct", None, sparse=True), "holds sparse vectors only: give it as sparse_name"),
    ],
)
def test_an_index_that_cannot_serve_is_refused(server: PineconeServer, kind: Kind, sentence: str) -> None:
    server.create("passages", kind)
    with pytest.raises(IndexUnsuitable, match=sentence):
        PineconeIndex(client_of(server), "passages", dense=DENSE, sparse=BM25)


@pytest.mark.skipif(MAJOR < 10, reason="before SDK 10 every dotproduct index takes sparse values")
def test_an_index_that_declares_no_sparse_vectors_is_refused(server: PineconeServer) -> None:
    client = client_of(server)
    create_index(client, "passages", dimension=8, metric="dotproduct")
    with pytest.raises(IndexUnsuitable, match="declares no sparse vectors"):
        PineconeIndex(client, "passages", dense=DENSE, sparse=BM25)


def test_an_index_that_is_not_ready_is_said(server: PineconeServer) -> None:
    server.create("passages", Kind("dotproduct", 8, sparse=True))
    server.ready = False
    with pytest.raises(IndexUnsuitable, match=r"passages is not ready \(Initializing\)"):
        PineconeIndex(client_of(server), "passages", dense=DENSE, sparse=BM25)


def test_a_dense_index_is_no_sparse_one(server: PineconeServer) -> None:
    server.create("passages", Kind("dotproduct", 8, sparse=True))
    server.create("words", Kind("dotproduct", 8, sparse=True))
    with pytest.raises(IndexUnsuitable, match="is no sparse index"):
        PineconeIndex(client_of(server), "passages", dense=DENSE, sparse=BM25, sparse_name="words")


def test_an_index_filled_by_another_model_is_refused(server: PineconeServer) -> None:
    client = client_of(server)
    index = PineconeIndex.create(client, "passages", dense=DENSE, sparse=BM25, patience=SOON)
    index.upsert([RIVER])
    index.wait_until_visible()
    for dense, sparse in ((HashedWords(8, "another"), BM25), (DENSE, Bm25Encoder(40)), (DENSE, None)):
        with pytest.raises(EmbeddingMismatch, match="passages was created for other encoders"):
            PineconeIndex(client, "passages", dense=dense, sparse=sparse)
    assert PineconeIndex(client, "passages", dense=DENSE, sparse=BM25).count() == 1


def test_records_of_another_model_are_refused_without_a_tag(server: PineconeServer) -> None:
    client = client_of(server)
    server.create("passages", Kind("dotproduct", 8, sparse=True))
    index = PineconeIndex(client, "passages", dense=DENSE, sparse=BM25, patience=SOON)
    late = PineconeIndex(client, "passages", dense=HashedWords(8, "another"), sparse=BM25)
    index.upsert([RIVER])
    index.wait_until_visible()
    with pytest.raises(EmbeddingMismatch, match="was filled by hashed-words/8"):
        PineconeIndex(client, "passages", dense=HashedWords(8, "another"), sparse=BM25)
    with pytest.raises(EmbeddingMismatch, match="not by another/8"):
        late.search("river", limit=1, alpha=0.5)


def test_without_a_sparse_encoder_the_plan_and_the_search_are_dense(server: PineconeServer) -> None:
    server.create("passages", Kind("cosine", 8, sparse=False))
    index = PineconeIndex(client_of(server), "passages", dense=DENSE, patience=SOON)
    index.upsert([RIVER, Passage("2", "moon orbit")])
    index.wait_until_visible()
    plan = retrieval_plan(20_000, alpha_ceiling=index.alpha_ceiling, alpha_floor=index.alpha_floor)
    (first, _) = index.search("moon orbit", limit=5, alpha=plan.alpha)
    assert first.passage.id == "2"
    assert first.score == pytest.approx(1.0)
    with pytest.raises(InvalidArgument, match="opened without sparse: give 1"):
        index.search("moon", limit=5, alpha=0.5)


def test_namespaces_are_apart(server: PineconeServer) -> None:
    index = PineconeIndex.create(client_of(server), "passages", dense=DENSE, sparse=BM25, patience=SOON)
    other = index.in_namespace("other")
    index.upsert([RIVER])
    other.upsert([Passage("1", "moon"), Passage("2", "star")])
    assert (index.count(), other.count()) == (1, 2)
    assert [match.passage.text for match in index.search("moon", limit=9, alpha=0.5)] == ["river bank"]
    other.delete_source("a.md")
    assert index.count() == 1


def test_the_client_stays_open(server: PineconeServer) -> None:
    client = client_of(server)
    del_me = PineconeIndex.create(client, "passages", dense=DENSE)
    del del_me
    assert client.describe_index("passages").name == "passages"


async def test_the_sdks_own_asynchronous_index_is_used(server: PineconeServer) -> None:
    index = PineconeIndex.create(
        client_of(server), "passages", dense=DENSE, sparse=BM25, sparse_name="words", patience=SOON
    )
    index.upsert([RIVER, Passage("2", "moon river")])
    urls = [server.indexes[name].url for name in ("passages", "words")]
    async with (
        pinecone.PineconeAsyncio(api_key="key", host=server.url) as client,
        client.IndexAsyncio(host=urls[0]) as dense,
        client.IndexAsyncio(host=urls[1]) as words,
    ):
        parallel = PineconeIndex(
            client_of(server),
            "passages",
            dense=DENSE,
            sparse=BM25,
            sparse_name="words",
            async_index=dense,
            async_sparse_index=words,
            patience=SOON,
        )
        assert await parallel.asearch("moon", limit=5, alpha=0.4) == index.search("moon", limit=5, alpha=0.4)
        await parallel.aupsert([Passage("3", "moon", source="m")])
        await parallel.await_until_visible()
        assert await parallel.acount() == 3
        await parallel.adelete_source("m")
        await parallel.await_until_visible()
        assert await parallel.acount() == 2


def test_the_deprecated_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pinecone": "10.2.0", "pinecone-client": "6.0.0"}
    monkeypatch.setattr(importlib.metadata, "version", lambda name: versions[name])
    preflight.check_sdk.cache_clear()
    with pytest.raises(PackageConflict, match=r"pinecone-client 6\.0\.0 is installed.*pip uninstall"):
        PineconeIndex(None, "passages", dense=DENSE)
    preflight.check_sdk.cache_clear()


@pytest.mark.parametrize(
    "arguments",
    [
        {"sparse_name": "words"},
        {"sparse": BM25, "sparse_name": "words", "layout": "langchain"},
        {"layout": "haystack"},
        {"sparse": BM25, "sparse_name": "words", "async_index": object()},
    ],
)
def test_arguments_that_do_not_go_together_are_named(
    server: PineconeServer, arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgument):
        PineconeIndex(client_of(server), "passages", dense=DENSE, **arguments)  # type: ignore[arg-type]


LLAMA_INDEX = {
    "_node_content": json.dumps(
        {"id_": "n1", "metadata": {"page": 3}, "text": "river bank", "class_name": "TextNode"}
    ),
    "_node_type": "TextNode",
    "document_id": "d",
    "doc_id": "d",
    "ref_doc_id": "d",
    "page": 3,
    "file_path": "a.md",
}


@pytest.mark.parametrize(
    ("layout", "text_key", "metadata", "expected"),
    [
        (
            "langchain",
            "text",
            {"text": "river bank", "source": "a.md", "page": 3},
            Passage("r1", "river bank", source="a.md", metadata={"source": "a.md", "page": 3}),
        ),
        ("langchain", "body", {"body": "river bank"}, Passage("r1", "river bank")),
        (
            "langchain",
            "text",
            {"text": "river bank", "heading": "Rivers"},
            Passage("r1", "river bank", heading="Rivers"),
        ),
        (
            "llama_index",
            "text",
            LLAMA_INDEX,
            Passage("n1", "river bank", source="a.md", metadata={"page": 3, "file_path": "a.md"}),
        ),
        (
            "llama_index",
            "text",
            {**LLAMA_INDEX, "heading": "Rivers"},
            Passage(
                "n1", "river bank", heading="Rivers", source="a.md", metadata={"page": 3, "file_path": "a.md"}
            ),
        ),
    ],
)
def test_indexes_that_the_frameworks_filled_are_read(
    server: PineconeServer,
    layout: str,
    text_key: str,
    metadata: dict[str, object],
    expected: Passage,
) -> None:
    client = client_of(server)
    stored = server.create("theirs", Kind("cosine", 8, sparse=False))
    vector = DENSE.encode_query("river bank")
    client.Index(host=stored.url).upsert(vectors=[{"id": "r1", "values": vector, "metadata": metadata}])
    index = PineconeIndex(client, "theirs", dense=DENSE, layout=layout, text_key=text_key)  # type: ignore[arg-type]
    (match,) = index.search("river", limit=3, alpha=1, filter={"nothing": {"$exists": False}})
    assert match.passage == expected
    with pytest.raises(InvalidArgument, match="only read here"):
        index.upsert([RIVER])


@pytest.mark.parametrize("flat", [False, True])
def test_the_nodes_that_llama_index_writes_are_read(server: PineconeServer, flat: bool) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
    from llama_index.core.vector_stores.utils import node_to_metadata_dict

    node = TextNode(id_="n1", text="river bank", metadata={"page": 3, "file_path": "a.md"})
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="d")
    client = client_of(server)
    stored = server.create("theirs", Kind("cosine", 8, sparse=False))
    metadata = node_to_metadata_dict(node, remove_text=False, flat_metadata=flat)
    record = {"id": "d#n1", "values": DENSE.encode_query("river bank"), "metadata": metadata}
    client.Index(host=stored.url).upsert(vectors=[record])
    index = PineconeIndex(client, "theirs", dense=DENSE, layout="llama_index")
    (match,) = index.search("river", limit=3, alpha=1, filter={"page": {"$lte": 3}})
    assert match.passage == Passage("n1", "river bank", source="a.md", metadata=node.metadata)


def test_an_index_that_does_not_tell_its_encoders_is_warned_of_once(
    server: PineconeServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(server)
    stored = server.create("theirs", Kind("cosine", 8, sparse=False))
    records = [{"id": str(n), "values": [1.0] * 8, "metadata": {"text": f"river {n}"}} for n in range(3)]
    client.Index(host=stored.url).upsert(vectors=records)
    with caplog.at_level(logging.WARNING):
        index = PineconeIndex(client, "theirs", dense=DENSE, layout="langchain")
        assert len(index.search("river", limit=3, alpha=1)) == 3
    (warning,) = [r.getMessage() for r in caplog.records if r.name.startswith("lara_plugins")]
    assert "theirs do not say which encoders filled it" in warning


def test_another_layout_than_was_written_is_said(server: PineconeServer) -> None:
    client = client_of(server)
    stored = server.create("theirs", Kind("cosine", 8, sparse=False))
    client.Index(host=stored.url).upsert(
        vectors=[{"id": "r1", "values": [1.0] * 8, "metadata": {"body": "x"}}]
    )
    for layout in ("lara", "llama_index", "langchain"):
        index = PineconeIndex(client, "theirs", dense=DENSE, layout=layout)
        with pytest.raises(HybridIndexError, match=f"holds no text where layout='{layout}' says"):
            index.search("river", limit=1, alpha=1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"sparse_name": "words"}, "sparse=None"),
        ({"sparse": BM25, "sparse_name": "passages"}, "sparse_name='passages'"),
        ({"namespace": None}, "namespace=None"),
    ],
)
def test_nothing_is_created_where_the_arguments_do_not_go_together(
    server: PineconeServer, arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidArgument, match=named):
        PineconeIndex.create(client_of(server), "passages", dense=DENSE, **arguments)
    assert not server.indexes


@pytest.mark.parametrize(
    "encoders", [{"dense": None}, {"dense": "model"}, {"dense": DENSE, "sparse": "bm25"}]
)
def test_what_is_no_encoder_is_refused(server: PineconeServer, encoders: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"^(dense|sparse)=.*: give a (dense|sparse) encoder"):
        PineconeIndex.create(client_of(server), "passages", **encoders)
    assert not server.indexes


@pytest.mark.parametrize("namespace", [None, 5, b"docs", "\ud800"])
def test_what_is_no_namespace_is_refused(server: PineconeServer, namespace: str) -> None:
    client = client_of(server)
    index = PineconeIndex.create(client, "passages", dense=DENSE, sparse=BM25)
    with pytest.raises(InvalidArgument, match="namespace"):
        index.in_namespace(namespace)
    with pytest.raises(InvalidArgument, match="namespace"):
        PineconeIndex(client, "passages", dense=DENSE, sparse=BM25, namespace=namespace)
