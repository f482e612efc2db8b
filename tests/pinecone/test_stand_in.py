"""The stand-in answers as Pinecone's published specification says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from pinecone.exceptions import PineconeException
from pinecone_clients import DataPlane, client_of, create_index
from pinecone_data import IndexServer
from pinecone_http import Fault
from pinecone_limits import Kind
from pinecone_server import PineconeServer

ONE = {"id": "1", "values": [1.0, 0.0, 0.0], "metadata": {"page": 3.0, "tags": ["a", "b"]}}


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


@pytest.fixture
def stored(server: PineconeServer) -> IndexServer:
    return server.create("hybrid", Kind("dotproduct", 3, sparse=True))


@pytest.fixture
def index(server: PineconeServer, stored: IndexServer) -> DataPlane:
    return client_of(server).Index(host=stored.url)


def test_its_traffic_with_the_sdk_is_what_the_specification_allows(server: PineconeServer) -> None:
    pytest.importorskip("jsonschema", reason="needs jsonschema and pyyaml")
    pytest.importorskip("yaml", reason="needs jsonschema and pyyaml")
    from pinecone_specification import FOLDER, violations

    if not FOLDER.exists():
        pytest.skip(f"needs Pinecone's published specification in {FOLDER} (or LARA_PINECONE_API)")
    client = client_of(server)
    create_index(client, "made", dimension=3, metric="cosine")
    made = server.indexes["made"]
    client.list_indexes()
    client.describe_index("made")
    hybrid = server.create("hybrid", Kind("dotproduct", 3, sparse=True))
    sparse = server.create("sparse", Kind("dotproduct", None, sparse=True))
    for name in server.indexes:
        client.describe_index(name)
    use_everything(client.Index(host=hybrid.url))
    words = client.Index(host=sparse.url)
    entries = {"indices": [3, 5], "values": [0.5, 1.0]}
    words.upsert(vectors=[{"id": "1", "sparse_values": entries}], namespace="n")
    words.query(sparse_vector=entries, top_k=2, namespace="n")
    words.describe_index_stats()
    for model in ("llama-text-embed-v2", "pinecone-sparse-english-v0"):
        client.inference.embed(model=model, inputs=["a b"], parameters={"input_type": "query"})
    client.inference.rerank(model="bge-reranker-v2-m3", query="a", documents=["a", "b"])
    with contextlib.suppress(PineconeException):
        client.describe_index("nowhere")
    client.delete_index("made")
    broken = [
        line
        for host, service in ((server, ""), (made, "db_data"), (hybrid, "db_data"), (sparse, "db_data"))
        for request in host.requests
        for line in violations(request, service or service_of(request.path))
    ]
    assert broken == []


def service_of(path: str) -> str:
    return "inference" if path in ("/embed", "/rerank") else "db_control"


def use_everything(index: DataPlane) -> None:
    entries = {"indices": [3, 5], "values": [0.5, 1.0]}
    index.upsert(vectors=[ONE, {**ONE, "id": "2", "sparse_values": entries}], namespace="n")
    dense = [0.5, 0.5, 0.0]
    index.query(vector=dense, sparse_vector=entries, top_k=2, namespace="n", include_metadata=True)
    index.query(vector=dense, top_k=2, filter={"page": {"$gt": 1}}, include_values=True, namespace="n")
    index.fetch(ids=["1", "2"], namespace="n")
    list(index.list(prefix="1", namespace="n"))
    index.update(id="1", set_metadata={"page": 4.0}, namespace="n")
    index.describe_index_stats()
    index.delete(ids=["1"], namespace="n")
    index.delete(filter={"page": {"$gte": 3}}, namespace="n")
    index.delete(delete_all=True, namespace="n")
    refusals: list[Callable[[], object]] = [
        lambda: index.upsert(vectors=[{"id": "1", "values": [1.0]}], namespace="n"),
        lambda: index.delete(ids=["1"], namespace="nowhere"),
        lambda: index.query(vector=[0.0, 0.0, 0.0], top_k=1, namespace="n"),
    ]
    for refused in refusals:
        with contextlib.suppress(PineconeException):
            refused()


def test_a_score_is_the_sum_of_both_dot_products(index: DataPlane) -> None:
    index.upsert(vectors=[{**ONE, "sparse_values": {"indices": [7, 9], "values": [2.0, 4.0]}}])
    found = index.query(vector=[0.5, 1.0, 1.0], sparse_vector={"indices": [9], "values": [0.25]}, top_k=1)
    assert found.matches[0].score == pytest.approx(0.5 + 1.0)


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (lambda index: index.upsert(vectors=[{**ONE, "values": [1.0]}]), "dimension"),
        (lambda index: index.upsert(vectors=[{**ONE, "values": [0.0, 0.0, 0.0]}]), "non-zero"),
        (lambda index: index.upsert(vectors=[{**ONE, "id": "é"}]), "ASCII"),
        (lambda index: index.upsert(vectors=[ONE, ONE]), "twice"),
        (lambda index: index.upsert(vectors=[{**ONE, "metadata": {"a": "x" * 41_000}}]), "metadata size"),
        (lambda index: index.upsert(vectors=[ONE | {"id": str(n)} for n in range(1001)]), "1001 records"),
        (
            lambda index: index.upsert(
                vectors=[ONE | {"id": str(n), "metadata": {"a": "x" * 30_000}} for n in range(100)]
            ),
            "exceeds the limit of 2000000",
        ),
        (lambda index: index.query(vector=[1.0, 0.0, 0.0], top_k=1, filter={"a": {"$regex": "x"}}), "regex"),
        (lambda index: index.delete(ids=["1"], namespace="nowhere"), "Namespace not found"),
    ],
)
def test_what_breaks_a_limit_is_refused(
    index: DataPlane, refused: Callable[[DataPlane], object], sentence: str
) -> None:
    index.upsert(vectors=[{**ONE, "id": "there"}])
    with pytest.raises(PineconeException, match=sentence):
        refused(index)


def test_a_cosine_index_takes_no_sparse_values(server: PineconeServer) -> None:
    stored = server.create("cosine", Kind("cosine", 3, sparse=False))
    with pytest.raises(PineconeException, match="does not support sparse values"):
        client_of(server).Index(host=stored.url).upsert(
            vectors=[{**ONE, "sparse_values": {"indices": [1], "values": [1.0]}}]
        )


def test_a_write_is_seen_after_so_many_reads(index: DataPlane, stored: IndexServer) -> None:
    stored.lag = 2
    index.upsert(vectors=[ONE])
    assert not index.fetch(ids=["1"]).vectors
    assert index.fetch(ids=["1"]).vectors["1"].id == "1"


def test_numbers_come_back_as_the_service_keeps_them(index: DataPlane) -> None:
    index.upsert(vectors=[{**ONE, "metadata": {"page": 3, "draft": True}}])
    metadata = index.fetch(ids=["1"]).vectors["1"].metadata
    assert (type(metadata["page"]), metadata["draft"]) == (float, True)


def test_a_fault_befalls_as_many_requests_as_it_says(index: DataPlane, stored: IndexServer) -> None:
    stored.faults.append(Fault("/query", times=1, skip=1, status=429))
    dense = [1.0, 0.0, 0.0]
    index.query(vector=dense, top_k=1)
    with contextlib.suppress(PineconeException):  # newer majors try again by themselves
        index.query(vector=dense, top_k=1)
    index.query(vector=dense, top_k=1)
    assert [request.answered for request in stored.requests if request.answered != 200] == [429]
