"""What every hybrid index does, in a folder or at Pinecone, in one index or in two."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashed_words import HashedWords
from pinecone_clients import client_of
from pinecone_server import PineconeServer

from lara_plugins import (
    Bm25Encoder,
    EmbeddedIndex,
    HybridIndex,
    InvalidArgument,
    Match,
    Passage,
    Patience,
    PineconeIndex,
)
from lara_plugins.retrieval import Filter

TEXT = """river bank loan interest water bridge steel engine train station ticket price market fruit
apple orchard tree forest fire smoke alarm clock tower bell church music piano concert hall door"""
WORDS = TEXT.split()
QUESTIONS = ("river bank loan", "price of a ticket", "tower bell bell", "zebra")
ALPHAS = (0, 0.3, 0.7, 1)
LAYOUTS = ("embedded", "one index", "two indexes")
DENSE = HashedWords()


def corpus(size: int = 60, seed: int = 0) -> list[Passage]:
    chance = random.Random(seed)
    return [
        Passage(
            f"p{number:03}",
            " ".join(chance.choices(WORDS, k=chance.randint(5, 40))),
            heading=chance.choice(WORDS),
            source=f"s{number // 3}",
            metadata={
                "number": number,
                "even": number % 2 == 0,
                "tags": chance.sample(["a", "b", "c"], chance.randint(0, 3)),
                **({"half": number / 2} if number % 3 else {}),
            },
        )
        for number in range(size)
    ]


PASSAGES = corpus()
BM25 = Bm25Encoder.fit(passage.content for passage in PASSAGES)


@dataclass
class Opened:
    """An index and how to see what was written to it."""

    index: EmbeddedIndex | PineconeIndex
    settle: Callable[[], None]

    def write(self, passages: Sequence[Passage]) -> None:
        self.index.upsert(passages)
        self.settle()


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """An empty index of the kind that the test is run for."""
    if request.param == "embedded":
        pytest.importorskip("qdrant_edge", reason="needs lara-plugins[embedded]")
        with EmbeddedIndex(tmp_path / "index", dense=DENSE, sparse=BM25) as index:
            yield Opened(index, lambda: None)
        return
    with PineconeServer() as server:
        hosted = PineconeIndex.create(
            client_of(server),
            "passages",
            dense=DENSE,
            sparse=BM25,
            sparse_name="words" if request.param == "two indexes" else None,
            namespace="tests",
            patience=Patience(first_pause=0.001),
        )
        for stored in server.indexes.values():
            stored.lag = 2
        yield Opened(hosted, hosted.wait_until_visible)


@pytest.fixture
def filled(opened: Opened) -> HybridIndex:
    opened.write(PASSAGES)
    return opened.index


def summed(passages: Sequence[Passage], question: str, alpha: float) -> dict[str, float]:
    """The hybrid score of every passage by id, without an index."""
    contents = [passage.content for passage in passages]
    query = BM25.encode_query(question)
    weights = dict(zip(query.indices, query.values, strict=True))
    dense = DENSE.encode_query(question)
    totals = {}
    for passage, vector, words in zip(
        passages, DENSE.encode_documents(contents), BM25.encode_documents(contents), strict=True
    ):
        similar = math.fsum(a * b for a, b in zip(vector, dense, strict=True))
        entries = zip(words.indices, words.values, strict=True)
        lexical = math.fsum(value * weights.get(index, 0.0) for index, value in entries)
        totals[passage.id] = alpha * similar + (1 - alpha) * lexical
    return totals


def assert_exact(matches: Sequence[Match], totals: dict[str, float], limit: int) -> None:
    """The matches are the best by ``totals``, in order; scores closer than 1e-6 may change places."""
    best = sorted(totals.values(), reverse=True)[:limit]
    assert len(matches) == len(best) == len({match.passage.id for match in matches})
    for match, expected in zip(matches, best, strict=True):
        assert match.score == pytest.approx(expected, abs=1e-6)
        assert totals[match.passage.id] == pytest.approx(expected, abs=1e-6)


everywhere = pytest.mark.parametrize("opened", LAYOUTS, indirect=True)


@everywhere
def test_the_order_is_that_of_the_exact_sum(filled: HybridIndex) -> None:
    for alpha in ALPHAS:
        for question in QUESTIONS:
            matches = filled.search(question, limit=100, alpha=alpha)
            assert_exact(matches, summed(PASSAGES, question, alpha), 100)


@pytest.mark.parametrize("opened", ["embedded", "one index"], indirect=True)
def test_the_best_few_are_exact_where_one_index_ranks(filled: HybridIndex) -> None:
    for alpha in ALPHAS:
        for question in QUESTIONS:
            matches = filled.search(question, limit=10, alpha=alpha)
            assert_exact(matches, summed(PASSAGES, question, alpha), 10)


@everywhere
def test_every_score_is_the_exact_sum_however_few_are_asked_for(filled: HybridIndex) -> None:
    for alpha in ALPHAS:
        totals = summed(PASSAGES, "river bank loan", alpha)
        matches = filled.search("river bank loan", limit=5, alpha=alpha)
        assert len(matches) == 5
        assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
        for match in matches:
            assert match.score == pytest.approx(totals[match.passage.id], abs=1e-6)


@everywhere
def test_the_halves_that_are_told_are_right(filled: HybridIndex) -> None:
    for question in QUESTIONS:
        dense, sparse = summed(PASSAGES, question, 1), summed(PASSAGES, question, 0)
        for alpha in ALPHAS:
            for match in filled.search(question, limit=20, alpha=alpha):
                id_ = match.passage.id
                assert match.dense is None or match.dense == pytest.approx(dense[id_], abs=1e-6)
                assert match.sparse is None or match.sparse == pytest.approx(sparse[id_], abs=1e-6)


@everywhere
def test_many_threads_search_while_one_writes(opened: Opened) -> None:
    opened.write(PASSAGES[:30])
    with ThreadPoolExecutor(4) as threads:
        searches = [threads.submit(opened.index.search, "river bank", limit=10, alpha=0.5) for _ in range(40)]
        for start in range(30, 60, 10):
            opened.write(PASSAGES[start : start + 10])
        for search in searches:
            assert len(search.result()) == 10
    assert opened.index.count() == len(PASSAGES)


@everywhere
def test_it_is_a_hybrid_index(filled: HybridIndex) -> None:
    assert isinstance(filled, HybridIndex)
    assert (filled.alpha_floor, filled.alpha_ceiling) == (0.0, 1.0)
    assert DENSE.fingerprint in filled.fingerprint
    assert "bm25" in filled.fingerprint
    assert filled.count() == len(PASSAGES)
    filled.load()


@everywhere
async def test_asearch_finds_the_same(filled: HybridIndex) -> None:
    filter = {"even": True}
    found = await filled.asearch("river bank", limit=9, alpha=0.5, filter=filter)
    assert found == filled.search("river bank", limit=9, alpha=0.5, filter=filter)


@everywhere
def test_a_passage_comes_back_as_it_was(opened: Opened) -> None:
    given = [
        Passage(
            "id/1",
            "Text\nwith lines.",
            heading="Title",
            source="/a/b.md",
            metadata={
                "page": 3,
                "ratio": 0.5,
                "whole": 1.0,
                "large": 1e300,
                "of_numpy": np.float64(0.25),
                "draft": False,
                "tags": ["a", "b"],
                "none": [],
                "title": "Über 東京",
            },
        ),
        Passage("2", "bare lines"),
        Passage(
            "3", "lines of its own", source="file", metadata={"source": "web", "text": "t", "heading": "h"}
        ),
        Passage("4", "lines of no source", metadata={"source": "web"}),
        Passage("5", "lines of one source", source="web", metadata={"source": "web"}),
    ]
    opened.write(given)
    found = [match.passage for match in opened.index.search("lines", limit=5, alpha=0.5)]
    assert sorted(found, key=lambda passage: passage.id) == sorted(given, key=lambda passage: passage.id)


@everywhere
def test_all_passages_can_be_read(opened: Opened) -> None:
    assert list(opened.index.passages()) == []
    many = corpus(250)
    opened.write(many)
    assert sorted(opened.index.passages(), key=lambda passage: passage.id) == many
    assert opened.index.sources() == {passage.source: "" for passage in many}


@everywhere
def test_what_a_generator_yields_is_written(opened: Opened) -> None:
    passages = (Passage(f"p{n}", f"river {n}") for n in range(3))
    opened.write(passages)  # type: ignore[arg-type]  # a Sequence is asked for; nothing may be lost
    assert {match.passage.id for match in opened.index.search("river", limit=9, alpha=0.5)} == {
        "p0",
        "p1",
        "p2",
    }


@everywhere
@pytest.mark.parametrize("passages", [Passage("p", "river"), "river", None, [{"id": "p"}], [None]])
def test_what_is_no_list_of_passages_is_named(opened: Opened, passages: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidArgument, match=r"^passages=.*: give "):
        opened.index.upsert(passages)


@everywhere
def test_an_id_is_written_once(opened: Opened) -> None:
    opened.write([Passage("1", "river"), Passage("2", "moon"), Passage("1", "bridge")])
    assert opened.index.count() == 2
    opened.write([Passage("1", "tower bell"), Passage("2", "moon")])
    found = {
        match.passage.id: match.passage.text for match in opened.index.search("bell", limit=5, alpha=0.5)
    }
    assert found == {"1": "tower bell", "2": "moon"}


@everywhere
def test_scores_stay_right_when_passages_are_replaced_and_deleted(opened: Opened) -> None:
    opened.write(PASSAGES)
    renewed = [
        Passage(passage.id, other.text, source=passage.source)
        for passage, other in zip(PASSAGES, corpus(20, 1), strict=False)
    ]
    opened.index.delete_source("s5")
    opened.index.delete_source("never heard of")
    opened.write([passage for passage in renewed if passage.source != "s5"])
    left = [passage for passage in renewed + PASSAGES[20:] if passage.source != "s5"]
    assert opened.index.count() == len(left)
    expected = {passage.id: passage for passage in left}
    found = opened.index.search("river bank", limit=100, alpha=1)
    assert {match.passage.id: match.passage for match in found} == expected


@everywhere
def test_a_source_that_was_deleted_may_be_written_again(opened: Opened) -> None:
    opened.write(
        [Passage("1", "river", source="a"), Passage("2", "moon", source="a"), Passage("3", "sun", source="b")]
    )
    opened.index.delete_source("a")
    opened.write([Passage("2", "moon", source="a"), Passage("4", "star", source="a")])
    found = [match.passage.id for match in opened.index.search("moon", limit=9, alpha=1)]
    assert sorted(found) == ["2", "3", "4"]
    opened.index.delete_source("a")
    opened.settle()
    assert [match.passage.id for match in opened.index.search("moon", limit=9, alpha=1)] == ["3"]


@everywhere
def test_a_text_that_no_encoder_knows_is_stored_and_found_last(opened: Opened) -> None:
    opened.write([Passage("1", "!?"), Passage("2", "river bank")])
    for alpha in ALPHAS:
        assert [match.passage.id for match in opened.index.search("river", limit=5, alpha=alpha)] == [
            "2",
            "1",
        ]
        assert len(opened.index.search("?!", limit=5, alpha=alpha)) == 2


@everywhere
def test_a_text_that_loses_its_terms_is_found_by_none(opened: Opened) -> None:
    opened.write([Passage("1", "river"), Passage("2", "river bank")])
    opened.write([Passage("1", "!?")])
    (first, second) = opened.index.search("river", limit=5, alpha=0.3)
    assert (first.passage.id, second.passage.text) == ("2", "!?")
    assert second.score == pytest.approx(0, abs=1e-6)


@everywhere
def test_dense_text_replaces_the_dense_half_only(filled: HybridIndex) -> None:
    sparse = summed(PASSAGES, "river bank", 0)
    dense = summed(PASSAGES, "music hall", 1)
    for match in filled.search("river bank", limit=60, alpha=0.4, dense_text="music hall"):
        id_ = match.passage.id
        assert match.score == pytest.approx(0.4 * dense[id_] + 0.6 * sparse[id_], abs=1e-6)


@everywhere
@pytest.mark.parametrize(
    "filter",
    [
        {"number": 7},
        {"number": {"$gte": 10, "$lt": 20.5}},
        {"even": True},
        {"even": {"$ne": True}},
        {"tags": "a"},
        {"tags": {"$in": ["a", "c"]}},
        {"tags": {"$nin": ["a"]}},
        {"half": {"$exists": False}},
        {"half": {"$ne": 0.5}},
        {"source": {"$in": ["s1", "s2"]}},
        {"$or": [{"number": {"$lte": 2}}, {"$and": [{"even": False}, {"tags": "b"}]}]},
        {"nothing": {"$exists": True}},
        {},
    ],
)
def test_a_filter_searches_what_passes(filled: HybridIndex, filter: Filter) -> None:
    passing = [passage for passage in PASSAGES if PASSES[repr(filter)](passage)]
    for alpha in (0, 0.3, 1):
        matches = filled.search("river bank loan", limit=100, alpha=alpha, filter=filter)
        assert_exact(matches, summed(passing, "river bank loan", alpha), 100)


def _meta(passage: Passage, key: str) -> float:
    return float(passage.metadata[key])  # type: ignore[arg-type]


def _tags(passage: Passage) -> list[str]:
    tags = passage.metadata["tags"]
    assert isinstance(tags, list)
    return tags


PASSES: dict[str, Callable[[Passage], bool]] = {
    "{'number': 7}": lambda passage: _meta(passage, "number") == 7,
    "{'number': {'$gte': 10, '$lt': 20.5}}": lambda passage: 10 <= _meta(passage, "number") < 20.5,
    "{'even': True}": lambda passage: passage.metadata["even"] is True,
    "{'even': {'$ne': True}}": lambda passage: passage.metadata["even"] is False,
    "{'tags': 'a'}": lambda passage: "a" in _tags(passage),
    "{'tags': {'$in': ['a', 'c']}}": lambda passage: bool({"a", "c"} & set(_tags(passage))),
    "{'tags': {'$nin': ['a']}}": lambda passage: "a" not in _tags(passage),
    "{'half': {'$exists': False}}": lambda passage: "half" not in passage.metadata,
    "{'half': {'$ne': 0.5}}": lambda passage: passage.metadata.get("half") != 0.5,
    "{'source': {'$in': ['s1', 's2']}}": lambda passage: passage.source in ("s1", "s2"),
    "{'$or': [{'number': {'$lte': 2}}, {'$and': [{'even': False}, {'tags': 'b'}]}]}": lambda passage: (
        _meta(passage, "number") <= 2 or (not passage.metadata["even"] and "b" in _tags(passage))
    ),
    "{'nothing': {'$exists': True}}": lambda passage: False,
    "{}": lambda passage: True,
}


@everywhere
def test_an_empty_index_finds_nothing(opened: Opened) -> None:
    opened.write([])
    assert opened.index.count() == 0
    assert opened.index.search("anything", limit=5, alpha=0.5) == []
    opened.index.delete_source("nothing")


@everywhere
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"text": " \n"}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"dense_text": " "}, "dense_text"),
        ({"limit": 0}, "limit"),
        ({"limit": 2.0}, "limit"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": 1.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"filter": {"number": {"$about": 3}}}, "filter['number']"),
    ],
)
async def test_a_bad_search_is_named(opened: Opened, arguments: dict[str, object], named: str) -> None:
    whole = {"text": "river", "limit": 5, "alpha": 0.5, **arguments}
    with pytest.raises(InvalidArgument) as caught:
        opened.index.search(**whole)  # type: ignore[arg-type]
    assert caught.value.argument == named
    with pytest.raises(InvalidArgument):
        await opened.index.asearch(**whole)  # type: ignore[arg-type]


@everywhere
@pytest.mark.parametrize(
    "bad",
    [
        Passage(id="bad", text=" "),
        Passage(id="", text="text"),
        Passage(id="bad", text="half \ud800"),
        Passage(id="bad", text="text", metadata={"score": math.nan}),
        Passage(id="bad", text="text", metadata={"nested": {"a": 1}}),  # type: ignore[dict-item]
        Passage(id="bad", text="text", metadata={"nothing": None}),  # type: ignore[dict-item]
        Passage(id="bad", text="text", metadata={"mixed": ["a", 1]}),  # type: ignore[list-item]
        Passage(id="bad", text="text", metadata={"title": "half \ud800"}),
        Passage(id="bad", text="text", metadata={"tags": ["half \ud800"]}),
        Passage(id="bad", text="text", metadata={"half \ud800": 1}),
    ],
)
def test_a_passage_that_cannot_be_stored_stops_the_whole_upsert(opened: Opened, bad: Passage) -> None:
    with pytest.raises(InvalidArgument):
        opened.index.upsert([Passage("good", "text"), bad])
    assert opened.index.count() == 0


def test_both_kinds_of_index_agree_on_the_order(tmp_path: Path) -> None:
    pytest.importorskip("qdrant_edge", reason="needs lara-plugins[embedded]")
    passages = corpus(300, seed=2)
    words = Bm25Encoder.fit(passage.content for passage in passages)
    with PineconeServer() as server, EmbeddedIndex(tmp_path, dense=DENSE, sparse=words) as embedded:
        hosted = PineconeIndex.create(client_of(server), "passages", dense=DENSE, sparse=words)
        embedded.upsert(passages)
        hosted.upsert(passages)
        for alpha in ALPHAS:
            for question in QUESTIONS:
                ours = embedded.search(question, limit=50, alpha=alpha)
                theirs = hosted.search(question, limit=50, alpha=alpha)
                scores = {match.passage.id: match.score for match in [*ours, *theirs]}
                for one, other in zip(ours, theirs, strict=True):
                    assert one.score == pytest.approx(other.score, abs=1e-6)
                    if one.passage != other.passage:  # only passages that are as good as the same
                        assert scores[one.passage.id] == pytest.approx(scores[other.passage.id], abs=1e-6)
