"""Searches that find more than one of Pinecone's answers may hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hashed_words import HashedWords
from pinecone_clients import client_of
from pinecone_http import Fault
from pinecone_limits import Kind
from pinecone_server import PineconeServer

from lara_plugins import Bm25Encoder, Match, Passage, PineconeIndex

DENSE = HashedWords(8)
LONG = "x" * 35_000
PASSAGES = [Passage(f"p{n}", f"river {n} {LONG}", heading=f"Page {n}", source="a.md") for n in range(130)]


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


@pytest.fixture(params=["one", "two"])
def index(request: pytest.FixtureRequest, server: PineconeServer) -> PineconeIndex:
    apart = "words" if request.param == "two" else None
    index = PineconeIndex.create(
        client_of(server), "pages", dense=DENSE, sparse=Bm25Encoder(4), sparse_name=apart
    )
    index.upsert(PASSAGES)
    index.wait_until_visible()
    return index


def told(matches: list[Match]) -> dict[str, tuple[Passage, float]]:
    return {match.passage.id: (match.passage, round(match.score, 6)) for match in matches}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
async def test_all_is_found_however_long_the_passages_are(index: PineconeIndex, alpha: float) -> None:
    found = index.search("river", limit=130, alpha=alpha)
    assert {match.passage.id: match.passage for match in found} == {each.id: each for each in PASSAGES}
    assert [match.score for match in found] == sorted((match.score for match in found), reverse=True)
    few = index.search("river", limit=5, alpha=alpha)
    assert told(few).items() <= told(found).items()
    assert await index.asearch("river", limit=130, alpha=alpha) == found


def test_what_is_small_enough_is_asked_for_once(index: PineconeIndex, server: PineconeServer) -> None:
    before = len(server.indexes["pages"].bodies("/query"))
    index.search("river", limit=50, alpha=1.0)
    assert len(server.indexes["pages"].bodies("/query")) == before + 1


def test_another_refusal_is_passed_on(index: PineconeIndex, server: PineconeServer) -> None:
    server.indexes["pages"].faults.append(Fault("/query", times=2, status=400))
    with pytest.raises(Exception, match="400 of this test"):
        index.search("river", limit=5, alpha=1.0)


def test_an_index_that_a_framework_filled_is_read_the_same(server: PineconeServer) -> None:
    stored = server.create("theirs", Kind("cosine", 8, sparse=False))
    client = client_of(server)
    records = [
        {"id": passage.id, "values": [1.0] * 8, "metadata": {"text": passage.text}} for passage in PASSAGES
    ]
    for start in range(0, len(records), 50):
        client.Index(host=stored.url).upsert(vectors=records[start : start + 50])
    index = PineconeIndex(client, "theirs", dense=DENSE, layout="langchain")
    found = index.search("river", limit=130, alpha=1)
    assert {match.passage.text for match in found} == {passage.text for passage in PASSAGES}
