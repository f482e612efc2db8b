"""What goes wrong between here and Pinecone: nothing is lost, and nothing is written twice."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pinecone
import pytest
from hashed_words import HashedWords
from pinecone_clients import client_of
from pinecone_data import IndexServer
from pinecone_http import Fault
from pinecone_server import PineconeServer

from lara_plugins import (
    Bm25Encoder,
    NotYetVisible,
    PartialUpsert,
    Passage,
    Patience,
    PineconeIndex,
    UnstorablePassages,
)

TEXT = "river bank loan interest water bridge steel engine train station ticket price"
WORDS = TEXT.split()
PASSAGES = [
    Passage(f"p{n}", f"{WORDS[n % 12]} {WORDS[n % 5]} {n}", source=f"s{n}", metadata={"filler": "x" * 9_000})
    for n in range(600)
]
SOON = Patience(attempts=4, first_pause=0.001, visible_within=0.05)
STORM = 40
"""More failures than the SDK of any major puts up with by itself."""


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


@pytest.fixture
def index(server: PineconeServer) -> PineconeIndex:
    return PineconeIndex.create(
        client_of(server), "passages", dense=HashedWords(8), sparse=Bm25Encoder(4), patience=SOON
    )


@pytest.fixture
def stored(server: PineconeServer, index: PineconeIndex) -> IndexServer:
    return server.indexes["passages"]


def written(stored: IndexServer) -> dict[str, int]:
    """How often each id was written."""
    return dict(stored.namespaces[""].writes)


def test_a_large_upsert_keeps_to_the_limits(index: PineconeIndex, stored: IndexServer) -> None:
    index.upsert(PASSAGES)
    assert written(stored) == {passage.id: 1 for passage in PASSAGES}
    assert 3 <= len(stored.bodies("/vectors/upsert")) <= 6


def test_many_small_passages_go_by_the_thousand(index: PineconeIndex, stored: IndexServer) -> None:
    index.upsert([Passage(f"{n}", f"river {n}") for n in range(2_001)])
    assert [len(body["vectors"]) for body in stored.bodies("/vectors/upsert")] == [1000, 1000, 1]
    assert set(written(stored).values()) == {1}


@pytest.mark.parametrize("status", [503, 429, 500, None])
def test_a_failure_that_passes_is_weathered(
    index: PineconeIndex, stored: IndexServer, status: int | None
) -> None:
    stored.faults.append(Fault("/vectors/upsert", skip=1, times=1, status=status))
    index.upsert(PASSAGES)
    assert written(stored) == {passage.id: 1 for passage in PASSAGES}
    index.wait_until_visible()
    assert index.count() == len(PASSAGES)


def test_an_answer_that_got_lost_leaves_one_record_an_id(index: PineconeIndex, stored: IndexServer) -> None:
    stored.faults.append(Fault("/vectors/upsert", skip=1, times=1, status=None, done=True))
    index.upsert(PASSAGES)
    assert index.count() == len(PASSAGES)
    first = len(stored.bodies("/vectors/upsert")[0]["vectors"])
    assert [written(stored)[passage.id] for passage in PASSAGES[:first]] == [1] * first


def test_throttling_is_waited_out_as_long_as_the_service_asks(
    index: PineconeIndex, stored: IndexServer
) -> None:
    stored.faults.append(Fault("/vectors/upsert", times=1, status=429, retry_after=1))
    index.upsert(PASSAGES[:5])
    assert written(stored) == {passage.id: 1 for passage in PASSAGES[:5]}


@pytest.mark.parametrize("status", [503, 429, None])
def test_a_storm_stops_the_upsert_and_tells_what_is_missing(
    server: PineconeServer, stored: IndexServer, status: int | None
) -> None:
    stored.faults.append(Fault("/vectors/upsert", skip=2, times=STORM, status=status))
    hasty = Patience(attempts=1)
    index = PineconeIndex(
        client_of(server), "passages", dense=HashedWords(8), sparse=Bm25Encoder(4), patience=hasty
    )
    with pytest.raises(PartialUpsert, match=r"of 600 passages are written, then Pinecone failed") as caught:
        index.upsert(PASSAGES)
    error = caught.value
    assert 0 < error.written < len(PASSAGES)
    left = PASSAGES[error.written :]
    assert error.unwritten == tuple(passage.id for passage in left)
    assert set(written(stored)) == {passage.id for passage in PASSAGES[: error.written]}
    assert index.count() == error.written
    stored.faults.clear()
    index.upsert(left)
    assert written(stored) == {passage.id: 1 for passage in PASSAGES}


def test_the_error_that_tells_what_is_missing_can_be_pickled() -> None:
    error = PartialUpsert(1, ["p0"], ValueError("why"))
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (str(twin), twin.unwritten) == (str(error), error.unwritten)


def test_a_refusal_is_not_repeated(index: PineconeIndex, stored: IndexServer) -> None:
    stored.faults.append(Fault("/vectors/upsert", times=2, status=401))
    with pytest.raises(PartialUpsert, match="401"):
        index.upsert(PASSAGES[:3])
    assert len(stored.bodies("/vectors/upsert")) == 1


def test_a_sparse_index_that_fails_leaves_no_half_behind(server: PineconeServer) -> None:
    index = PineconeIndex.create(
        client_of(server),
        "dense",
        dense=HashedWords(8),
        sparse=Bm25Encoder(4),
        sparse_name="words",
        patience=SOON,
    )
    words = server.indexes["words"]
    words.faults.append(Fault("/vectors/upsert", times=1, status=401))
    with pytest.raises(PartialUpsert) as caught:
        index.upsert(PASSAGES[:3])
    assert (caught.value.written, caught.value.unwritten) == (0, ("p0", "p1", "p2"))
    index.upsert(PASSAGES[:3])
    index.wait_until_visible()
    assert len(words.namespaces[""].visible) == len(server.indexes["dense"].namespaces[""].visible) == 3


def test_a_search_passes_the_sdks_error_on(index: PineconeIndex, stored: IndexServer) -> None:
    stored.faults.append(Fault("/query", times=1, status=401))
    with pytest.raises(Exception, match="401") as caught:
        index.search("river", limit=3, alpha=0.5)
    assert type(caught.value).__module__.startswith("pinecone")


async def test_the_asynchronous_calls_weather_the_same(index: PineconeIndex, stored: IndexServer) -> None:
    stored.faults.append(Fault("/vectors/upsert", skip=1, times=1, status=503))
    await index.aupsert(PASSAGES)
    await index.await_until_visible()
    assert written(stored) == {passage.id: 1 for passage in PASSAGES}
    await index.adelete_source("s3")
    await index.await_until_visible()
    assert await index.acount() == len(PASSAGES) - 1


@pytest.mark.parametrize("status", [503, 429, None])
async def test_the_sdks_own_asynchronous_index_weathers_the_same(
    server: PineconeServer, stored: IndexServer, status: int | None
) -> None:
    async with (
        pinecone.PineconeAsyncio(api_key="key", host=server.url) as client,
        client.IndexAsyncio(host=stored.url) as handle,
    ):
        index = PineconeIndex(
            client_of(server),
            "passages",
            dense=HashedWords(8),
            sparse=Bm25Encoder(4),
            async_index=handle,
            patience=SOON,
        )
        stored.faults.append(Fault("/vectors/upsert", skip=1, times=1, status=status))
        await index.aupsert(PASSAGES)
        assert written(stored) == {passage.id: 1 for passage in PASSAGES}
        stored.faults.append(Fault("/vectors/upsert", times=1, status=401))
        with pytest.raises(PartialUpsert, match="0 of 3 passages"):
            await index.aupsert(PASSAGES[:3])


def test_what_never_becomes_visible_is_said(index: PineconeIndex, stored: IndexServer) -> None:
    stored.lag = 10_000
    index.upsert(PASSAGES[:7])
    with pytest.raises(NotYetVisible, match="7 writes to the Pinecone index passages"):
        index.wait_until_visible()


def test_a_deletion_is_waited_for(index: PineconeIndex, stored: IndexServer) -> None:
    index.upsert(PASSAGES[:7])
    index.wait_until_visible()
    stored.lag = 3
    index.delete_source("s3")
    index.wait_until_visible()
    assert index.count() == 6
    stored.lag = 10_000
    index.delete_source("s4")
    with pytest.raises(NotYetVisible, match="1 writes"):
        index.wait_until_visible()


def test_counts_are_good_for_a_while_and_follow_ones_own_writes(
    index: PineconeIndex, stored: IndexServer
) -> None:
    index.upsert(PASSAGES[:3])
    assert [index.count() for _ in range(5)] == [3] * 5
    assert len(stored.bodies("/describe_index_stats")) == 1
    index.upsert(PASSAGES[3:5])
    assert index.count() == 5


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        (Passage("big", "x", metadata={"a": "é" * 20_480}), "at most 40960 bytes in Pinecone"),
        (Passage("big", "x" * 41 * 1024), "at most 40960 bytes in Pinecone"),
        (Passage("ünicode", "x"), "ASCII"),
        (Passage("i" * 513, "x"), "512"),
        (Passage("1", "x", metadata={"lara_text": "y"}), "rename the key"),
        (Passage("1", "x", metadata={"$x": "y"}), "rename the key"),
        (Passage("1", "x", metadata={"huge": 2**53 + 1}), "64-bit floats"),
        (Passage("1", " ".join(f"word{n}" for n in range(1_001))), "1001 sparse entries"),
    ],
)
def test_what_pinecone_would_refuse_is_named_before_anything_is_sent(
    index: PineconeIndex, stored: IndexServer, passage: Passage, sentence: str
) -> None:
    with pytest.raises(UnstorablePassages, match=sentence) as caught:
        index.upsert([PASSAGES[0], passage])
    assert list(caught.value.reasons) == [passage.id]
    assert not stored.bodies("/vectors/upsert")


def test_all_that_pinecone_would_refuse_is_named_at_once(index: PineconeIndex, stored: IndexServer) -> None:
    huge = [Passage(f"huge-{n}", "x", metadata={"n": 2**53 + n}) for n in range(1, 4)]
    with pytest.raises(UnstorablePassages, match="2 more stand in this error's reasons") as caught:
        index.upsert([huge[0], PASSAGES[0], *huge[1:]])
    copied = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert str(copied) == str(caught.value)
    assert [reason.argument for reason in copied.reasons.values()] == [
        f"metadata['n'] of passage 'huge-{n}'" for n in range(1, 4)
    ]
    assert not stored.bodies("/vectors/upsert")
