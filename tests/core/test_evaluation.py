"""Data sets in the BEIR layout, and the metrics."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.errors import InvalidArgument
from lara_plugins.evaluation import (
    abstention,
    contains_answer,
    load_dataset,
    normalise_answer,
    recall_at,
    reciprocal_rank,
)
from lara_plugins.evaluation.reading import held_out, one_passage, without_answers

DATA = Path(os.environ.get("LARA_DATA", Path(__file__).parents[3] / "shared" / "data"))

rankings = st.lists(st.sampled_from("abcdefgh"), unique=True)
relevant_sets = st.frozensets(st.sampled_from("abcdefgh"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "p1", "title": "Rain", "text": "It rained in 1910."}\n{"_id": "p2", "text": "It was dry."}\n'
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "When did it rain?", "answers": ["1910"]}\n'
        '{"_id": "q2", "text": "When did it snow?", "answerable": false, "near_passage": "p1"}\n'
    )
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\nq1\tp2\t0\n")
    return tmp_path


def test_a_folder_becomes_passages_and_questions(folder: Path) -> None:
    data = load_dataset(folder)
    assert data.passages["p1"].heading == "Rain"
    first, second = data.questions
    assert (first.answers, first.answerable, dict(first.relevant)) == (("1910",), True, {"p1": 1})
    assert (second.answerable, second.near_passage, dict(second.relevant)) == (False, "p1", {})


def test_readings_have_the_gold_or_the_near_passage(folder: Path) -> None:
    readings = list(one_passage(load_dataset(folder)))
    assert [(r.passages[0].id, r.answerable) for r in readings] == [("p1", True), ("p1", False)]
    assert list(without_answers(readings[:1])) == []


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("corpus.jsonl", "{not json}\n", "line 1"),
        ("queries.jsonl", '{"_id": "q1"}\n', '"text"'),
        ("qrels.tsv", "h\th\th\nq1\tp9\t1\n", "p9"),
        ("qrels.tsv", "h\th\th\nq1\tp1\n", "line 2"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(folder: Path, file: str, content: str, named: str) -> None:
    (folder / file).write_text(content)
    with pytest.raises(InvalidArgument, match=named) as caught:
        load_dataset(folder)
    assert file in str(caught.value)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "qrels.tsv").unlink()
    with pytest.raises(InvalidArgument, match=r"qrels\.tsv"):
        load_dataset(folder)


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "nq").is_dir(), reason="the shared data sets are not here; set LARA_DATA")
def test_the_shared_sets_hold_their_answers() -> None:
    for name in ("nq", "squad2"):
        readings = [reading for reading in one_passage(load_dataset(DATA / name)) if reading.answerable]
        assert all(contains_answer(r.passages[0].content, r.question.answers) for r in readings)
        assert 0.3 < sum(held_out(reading.question) for reading in readings) / len(readings) < 0.5


def test_answers_are_compared_without_case_articles_and_punctuation() -> None:
    assert normalise_answer("The  Gupta-Empire, (a) dynasty!") == "gupta empire dynasty"
    assert contains_answer("Coins of the Gupta Empire.", ["Gupta empire"])
    assert not contains_answer("In 1910s style", ["1910"])
    assert not contains_answer("anything", ["", "the"])


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise_answer(normalise_answer(text)) == normalise_answer(text)


@given(rankings, relevant_sets)
def test_recall_grows_with_k_up_to_all_that_was_found(ranking: list[str], relevant: frozenset[str]) -> None:
    values = [recall_at(k, ranking, relevant) for k in range(1, 10)]
    assert values == sorted(values)
    assert values[-1] == (len(relevant.intersection(ranking)) / len(relevant) if relevant else 0.0)


@given(rankings, relevant_sets)
def test_reciprocal_rank_is_one_over_the_first_position(ranking: list[str], relevant: frozenset[str]) -> None:
    positions = [i for i, name in enumerate(ranking, start=1) if name in relevant]
    assert reciprocal_rank(ranking, relevant) == (1 / positions[0] if positions else 0.0)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_abstention_counts(outcomes: list[tuple[bool, bool]]) -> None:
    counts = abstention(outcomes)
    abstained = [answerable for answerable, answered in outcomes if not answered]
    impossible = [answered for answerable, answered in outcomes if not answerable]
    if abstained:
        assert counts.precision == abstained.count(False) / len(abstained)
    if impossible:
        assert counts.recall == impossible.count(False) / len(impossible)
    assert counts.answerable + counts.unanswerable == len(outcomes)
    assert 0 <= counts.wrongly_abstained <= 1
