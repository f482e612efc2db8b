"""Writing to the embedded index: all or nothing, and scores that stay right."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from embedded_indexes import QUESTIONS, WORDS, assert_exact, corpus, passage, summed

from lara_plugins.errors import (
    InvalidArgument,
)
from lara_plugins.passages import Passage
from lara_plugins.retrieval import EmbeddedIndex

pytest.importorskip("qdrant_edge", reason="needs lara-plugins[embedded]")
pytest.importorskip("numpy", reason="needs lara-plugins[embedded]")
pytest.importorskip("wordllama", reason="needs lara-plugins[embedded]")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index") as opened:
        yield opened


class Unit:
    """A dense encoder that returns what it is told to."""

    fingerprint = "unit/2"
    dimension = 2
    alpha_ceiling = 1.0

    def __init__(self, *vector: float) -> None:
        self.vector = list(vector)

    def encode_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.vector for _ in texts]

    def encode_query(self, text: str) -> list[float]:
        return self.vector


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
        Passage(id="bad", text="text", metadata={"huge": 2**63}),
    ],
)
def test_a_passage_that_cannot_be_stored_stops_the_whole_upsert(index: EmbeddedIndex, bad: Passage) -> None:
    with pytest.raises(InvalidArgument):
        index.upsert([passage(1, "good"), bad])
    assert index.count() == 0


def test_a_passage_comes_back_as_it_was(index: EmbeddedIndex) -> None:
    metadata = {
        "page": 3,
        "ratio": 0.5,
        "draft": False,
        "tags": ["a", "b"],
        "title": "Über 東京",
        "whole": 1.0,
    }
    given = Passage("id/1", "Text\nwith lines.", heading="Title", source="/a/b.md", metadata=metadata)  # type: ignore[arg-type]
    index.upsert([given])
    (match,) = index.search("lines", limit=1, alpha=0.5)
    assert match.passage == given


def test_of_two_passages_with_one_id_the_last_counts(index: EmbeddedIndex) -> None:
    index.upsert([passage(1, "river"), passage(1, "moon")])
    assert [match.passage.text for match in index.search("river", limit=5, alpha=0.5)] == ["moon"]


def test_scores_stay_right_when_passages_are_replaced_and_deleted(index: EmbeddedIndex) -> None:
    index.upsert(corpus(120))
    renewed = corpus(60, seed=1)
    index.upsert(renewed)
    index.delete_source("s5")
    index.delete_source("never heard of")
    left = [item for item in renewed + corpus(120)[60:] if item.source != "s5"]
    assert index.count() == len(left)
    for question in QUESTIONS:
        assert_exact(index.search(question, limit=30, alpha=0.5), summed(index.path, left, question, 0.5), 30)


def test_a_drift_of_the_average_length_reencodes_the_sparse_half(index: EmbeddedIndex) -> None:
    short = [passage(number, f"{word} river") for number, word in enumerate(WORDS)]
    index.upsert(short)
    before = json.loads((index.path / "manifest.json").read_text())["average_length"]
    long = [passage(1000 + number, " ".join(WORDS * 20) + f" {number}") for number in range(10)]
    index.upsert(long)
    after = json.loads((index.path / "manifest.json").read_text())["average_length"]
    assert after > 1.25 * before
    for alpha in (0, 0.5):
        totals = summed(index.path, short + long, "silver river", alpha)
        assert_exact(index.search("silver river", limit=30, alpha=alpha), totals, 30)


def test_an_interrupted_reencoding_is_finished_on_opening(tmp_path: Path) -> None:
    passages = corpus(50)
    with EmbeddedIndex(tmp_path) as index:
        index.upsert(passages)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    half_way = {**manifest, "average_length": 500.0, "reencoding": True}
    (tmp_path / "manifest.json").write_text(json.dumps(half_way))
    with EmbeddedIndex(tmp_path) as index:
        assert_exact(
            index.search("river bank", limit=20, alpha=0.2), summed(tmp_path, passages, "river bank", 0.2), 20
        )
    assert json.loads((tmp_path / "manifest.json").read_text())["reencoding"] is False


def test_sources_tell_stale_from_fresh(index: EmbeddedIndex) -> None:
    fresh = {"content_hash": "abc"}
    index.upsert(
        [
            passage(1, "one", source="a.md", metadata=fresh),
            passage(2, "two", source="a.md", metadata=fresh),
            passage(3, "three", source="b.md", metadata=fresh),
            passage(4, "four", source="b.md", metadata={"content_hash": "old"}),
            passage(5, "five", source="c.md"),
            passage(6, "six"),
        ]
    )
    assert index.sources() == {"a.md": "abc", "b.md": "", "c.md": ""}
    index.delete_source("a.md")
    assert index.sources() == {"b.md": "", "c.md": ""}
    index.upsert([passage(4, "four", source="b.md", metadata=fresh)])
    assert index.sources()["b.md"] == "abc"


@pytest.mark.parametrize("vector", [(math.nan, 0.0), (math.inf, 0.0), (3.0, 4.0), (1.0,), (1.0, 0.0, 0.0)])
def test_a_bad_vector_never_goes_in(tmp_path: Path, vector: tuple[float, ...]) -> None:
    with EmbeddedIndex(tmp_path, dense=Unit(*vector)) as index:
        with pytest.raises(InvalidArgument, match="must return"):
            index.upsert([passage(1, "text")])
        assert index.count() == 0


def test_many_threads_search_while_one_writes(index: EmbeddedIndex) -> None:
    passages = corpus(300)
    index.upsert(passages[:50])
    problems: list[BaseException] = []
    written = threading.Event()

    def search() -> None:
        try:
            while not written.is_set():
                found = index.search("river bank loan", limit=40, alpha=0.5)
                scores = [match.score for match in found]
                assert len(found) == 40
                assert scores == sorted(scores, reverse=True)
        except BaseException as error:  # noqa: BLE001 - it is looked at below
            problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(50, 300, 10):
        index.upsert(passages[start : start + 10])
        index.delete_source(passages[start].source)
        index.upsert(passages[max(0, start - 3) : start + 10])
    written.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert_exact(
        index.search("river bank loan", limit=100, alpha=0.5),
        summed(index.path, passages, "river bank loan", 0.5),
        100,
    )


def test_ones_own_encoder_serves(tmp_path: Path) -> None:
    with EmbeddedIndex(tmp_path, dense=Unit(0.6, 0.8)) as index:
        index.upsert([passage(1, "river"), passage(2, "moon")])
        first, second = index.search("moon", limit=2, alpha=0.5)
        assert (first.passage.id, second.passage.id) == ("p2", "p1")
        assert first.dense == pytest.approx(1.0)
        assert index.alpha_ceiling == 1.0
