from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from cross_encoders import PASSAGES, QUESTION
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.errors import InvalidArgument, ScoreError
from lara_plugins.gate import Block, ScoreKind, Scorer, load_scorer, score_in_time
from lara_plugins.gate.engines.caching import CachingScorer


class Lengths:
    """Scores a text by its length, in blocks of four, and remembers what it was asked."""

    name: str | None = "lengths"
    score_kind: ScoreKind = "logit"
    scale_known = True
    fingerprint = "lengths"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def load(self) -> None:
        """Nothing to load."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        for start in range(0, len(texts), 4):
            block = texts[start : start + 4]
            self.asked.extend(block)
            scores = [float(len(query + text)) for text in block]
            yield Block(scores, tuple(i for i, text in enumerate(block) if len(text) > 3))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [score for block in self.blocks(query, texts) for score in block.scores]


TEXTS = st.lists(st.text("ab", max_size=5), max_size=20)


@given(st.lists(st.tuples(st.sampled_from(["q", "qq"]), TEXTS), max_size=6), st.integers(1, 12))
def test_scores_and_flags_are_the_scorers_whatever_was_asked_before(
    asked: list[tuple[str, list[str]]], size: int
) -> None:
    caching = CachingScorer(Lengths(), size)

    for query, texts in asked:
        blocks = list(caching.blocks(query, texts))

        starts = [sum(len(block.scores) for block in blocks[:i]) for i in range(len(blocks))]
        truncated = [start + i for start, block in zip(starts, blocks, strict=True) for i in block.truncated]
        assert [score for block in blocks for score in block.scores] == Lengths().score(query, texts)
        assert truncated == [i for i, text in enumerate(texts) if len(text) > 3]
        assert len(caching) <= size


def test_only_what_is_unknown_is_scored_and_once() -> None:
    lengths = Lengths()
    caching = CachingScorer(lengths)

    caching.score("q", ["a", "bb", "a"])
    caching.score("q", ["ccc", "bb", "a", "ccc"])

    assert lengths.asked == ["a", "bb", "ccc"]


def test_another_query_is_another_score() -> None:
    caching = CachingScorer(Lengths())

    assert caching.score("q", ["a"]) + caching.score("qq", ["a"]) == [2.0, 3.0]
    assert caching.score("qa", [""]) != caching.score("q", ["aa"])


def test_another_fingerprint_is_another_score() -> None:
    lengths = Lengths()
    caching = CachingScorer(lengths)
    caching.score("q", ["a"])

    lengths.fingerprint = "lengths of another revision"
    caching.score("q", ["a"])

    assert lengths.asked == ["a", "a"]


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    lengths = Lengths()
    caching = CachingScorer(lengths, size=2)
    for text in ("a", "b", "a", "c"):  # c takes the place of b
        caching.score("q", [text])
    lengths.asked.clear()

    caching.score("q", ["a", "c", "b"])

    assert lengths.asked == ["b"]


def test_scoring_stops_with_the_scorers_own_blocks() -> None:
    lengths = Lengths()
    caching = CachingScorer(lengths)
    texts = [f"text {i}" for i in range(10)]
    caching.score("q", texts[:2])
    lengths.asked.clear()

    scored = score_in_time(caching, "q", texts, lambda: 0.0)

    assert lengths.asked == texts[2:6]
    assert [score is not None for score in scored.scores] == [True] * 6 + [False] * 4
    assert caching.score("q", texts) == Lengths().score("q", texts)


def test_what_is_known_needs_no_scorer() -> None:
    lengths = Lengths()
    caching = CachingScorer(lengths)
    caching.score("q", ["a", "b"])
    lengths.asked.clear()

    assert [len(block.scores) for block in caching.blocks("q", ["b", "a", "b"])] == [3]
    assert lengths.asked == []
    assert list(caching.blocks("q", [])) == []


@pytest.mark.parametrize("count", [-1, 1])
def test_a_wrong_count_is_refused(count: int) -> None:
    class Wrong(Lengths):
        def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
            yield Block([0.0] * (len(texts) + count))

    with pytest.raises(ScoreError, match="passages"):
        CachingScorer(Wrong()).score("q", ["a", "b"])


def test_what_is_no_score_is_refused_and_not_kept() -> None:
    class Unsure(Lengths):
        def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
            yield Block([math.nan] * len(texts))

    caching = CachingScorer(Unsure())

    with pytest.raises(ScoreError, match="nan"):
        caching.score("q", ["a"])
    assert len(caching) == 0


def test_declares_what_its_scorer_declares() -> None:
    embedded = load_scorer("embedded")

    caching = CachingScorer(embedded)
    caching.load()

    assert isinstance(caching, Scorer)
    assert (caching.name, caching.score_kind, caching.scale_known) == ("embedded", "logit", True)
    assert caching.fingerprint == embedded.fingerprint
    assert caching.score(QUESTION, PASSAGES) == embedded.score(QUESTION, PASSAGES)
    assert caching.score(QUESTION, PASSAGES) == embedded.score(QUESTION, PASSAGES)


def test_a_copy_works_and_remembers_nothing() -> None:
    caching = CachingScorer(load_scorer("embedded"), size=5)
    expected = caching.score(QUESTION, PASSAGES[:2])

    for twin in (copy.copy(caching), copy.deepcopy(caching), pickle.loads(pickle.dumps(caching))):  # noqa: S301
        assert len(twin) == 0
        assert twin.score(QUESTION, PASSAGES[:2]) == expected


def test_serves_many_threads() -> None:
    caching = CachingScorer(Lengths(), size=50)
    texts = [[f"{'x' * i}{j}" for j in range(40)] for i in range(16)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda asked: caching.score("q", asked), texts * 4))

    assert found == [Lengths().score("q", asked) for asked in texts * 4]
    assert len(caching) == 50


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_refuses_a_size_that_keeps_nothing(size: int) -> None:
    with pytest.raises(InvalidArgument, match="size="):
        CachingScorer(Lengths(), size)
