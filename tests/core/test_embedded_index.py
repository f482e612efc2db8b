"""Searching the embedded index: the exact order, and what is no search."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_indexes import QUESTIONS, assert_exact, corpus, passage, run, summed

from lara_plugins.errors import (
    InvalidArgument,
)
from lara_plugins.retrieval import Bm25Encoder, EmbeddedIndex, HybridIndex, WordLlamaEncoder

pytest.importorskip("qdrant_edge", reason="needs lara-plugins[embedded]")
pytest.importorskip("numpy", reason="needs lara-plugins[embedded]")
pytest.importorskip("wordllama", reason="needs lara-plugins[embedded]")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index") as opened:
        yield opened


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path_factory.mktemp("filled") / "index") as opened:
        opened.upsert(corpus(400))
        yield opened


@pytest.mark.parametrize("alpha", [0, 0.05, 0.3, 0.5, 0.7, 0.95, 1])
def test_the_order_is_that_of_the_exact_sum(filled: EmbeddedIndex, alpha: float) -> None:
    for question in QUESTIONS:
        totals = summed(filled.path, corpus(400), question, alpha)
        for limit in (1, 10, 60, 1000):
            assert_exact(filled.search(question, limit=limit, alpha=alpha), totals, limit)


def test_a_match_says_what_its_score_is_made_of(filled: EmbeddedIndex) -> None:
    for match in filled.search(QUESTIONS[0], limit=50, alpha=0.3):
        assert match.dense is not None
        assert match.sparse is not None
        assert match.score == pytest.approx(0.3 * match.dense + 0.7 * match.sparse)
        assert match.passage == next(item for item in corpus(400) if item.id == match.passage.id)


def test_ties_are_broken_by_id(index: EmbeddedIndex) -> None:
    index.upsert([passage(number, "the same words") for number in (5, 3, 9, 1, 7)])
    for alpha in (0, 0.5, 1):
        found = [match.passage.id for match in index.search("same", limit=3, alpha=alpha)]
        assert found == ["p1", "p3", "p5"]
    assert [match.passage.id for match in index.search("else", limit=2, alpha=0)] == ["p1", "p3"]


def test_dense_text_replaces_the_dense_half_only(filled: EmbeddedIndex) -> None:
    plain = {match.passage.id: match for match in filled.search("river bank", limit=400, alpha=0.5)}
    other = {match.passage.id: match for match in filled.search("moon orbit", limit=400, alpha=0.5)}
    mixed = filled.search("river bank", limit=400, alpha=0.5, dense_text="moon orbit")
    for match in mixed:
        assert match.sparse == pytest.approx(plain[match.passage.id].sparse, abs=1e-6)
        assert match.dense == pytest.approx(other[match.passage.id].dense, abs=1e-6)


async def test_asearch_finds_the_same(filled: EmbeddedIndex) -> None:
    found = await filled.asearch("river bank", limit=20, alpha=0.5)
    assert found == filled.search("river bank", limit=20, alpha=0.5)


def test_it_is_a_hybrid_index(filled: EmbeddedIndex) -> None:
    assert isinstance(filled, HybridIndex)
    assert filled.alpha_ceiling == 0.6
    assert WordLlamaEncoder().fingerprint in filled.fingerprint
    assert Bm25Encoder().formula in filled.fingerprint


def test_an_empty_index_finds_nothing(index: EmbeddedIndex) -> None:
    index.upsert([])
    assert index.count() == 0
    assert index.sources() == {}
    assert index.search("anything", limit=5, alpha=0.5) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"dense_text": " "}, "dense_text"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 2.0}, "limit"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": 1.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
    ],
)
def test_a_bad_search_is_named(filled: EmbeddedIndex, arguments: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        filled.search(**{"text": "river", "limit": 5, "alpha": 0.5, **arguments})  # type: ignore[arg-type]
    assert caught.value.argument == named


def test_a_text_that_no_encoder_knows_is_stored_and_found_last(index: EmbeddedIndex) -> None:
    index.upsert([passage(1, "!?"), passage(2, "river bank")])
    assert [match.passage.id for match in index.search("river", limit=5, alpha=0.6)] == ["p2", "p1"]
    assert len(index.search("?!", limit=5, alpha=0.6)) == 2


def test_the_dense_encoder_gives_unit_vectors_or_zero_and_leaves_logging_alone() -> None:
    script = """
import logging
from lara_plugins.retrieval import WordLlamaEncoder
vectors = WordLlamaEncoder().encode_documents(["river bank", ""])
print(len(vectors[0]), round(sum(x * x for x in vectors[0]), 4), sum(map(abs, vectors[1])))
print(logging.root.handlers, logging.root.level)
"""
    outcome = run(script, Path())
    assert outcome.stdout.splitlines() == ["256 1.0 0.0", f"[] {logging.WARNING}"]


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    script = """
import sys
from lara_plugins import EmbeddedIndex, retrieval_plan
print([name for name in ("numpy", "wordllama", "qdrant_edge") if name in sys.modules])
EmbeddedIndex(sys.argv[1])
print([name for name in ("numpy", "wordllama") if name in sys.modules])
"""
    assert run(script, tmp_path / "index").stdout.splitlines() == ["[]", "[]"]
