"""Theta from a scorer, a corpus and whatever questions there are: the three tiers, or why there is none."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from towers import LOOKUP, PASSAGES

from lara_plugins import (
    Calibration,
    CallableScorer,
    Example,
    InvalidArgument,
    NotCalibrated,
    Passage,
    ScoreError,
    calibrate,
    load_scorer,
)
from lara_plugins.gate.calibration import from_evidence, from_unrelated

values = st.floats(0, 1)


def evidence(relevant: Sequence[float], unrelated: Sequence[float]) -> Calibration | NotCalibrated:
    relevant_each = [[score] for score in relevant]
    return from_evidence(relevant_each, unrelated, recall=0.95, tier="labelled", fingerprint="s")


def test_too_few_questions_are_not_attainable_and_n_is_stated() -> None:
    outcome = evidence([0.9] * 10, [0.1] * 100)
    assert isinstance(outcome, NotCalibrated)
    assert (outcome.verdict, outcome.n) == ("not attainable", 10)
    assert "needs 19 questions with known evidence and there are 10" in outcome.reason
    assert "10 allow a recall of 0.909" in outcome.reason


def test_scores_that_overlap_are_no_clean_separation() -> None:
    chance = random.Random(1)
    outcome = evidence([chance.random() for _ in range(50)], [chance.random() for _ in range(500)])
    assert isinstance(outcome, NotCalibrated)
    assert outcome.verdict == "no clean separation"
    assert "unrelated pairs reach too" in outcome.reason


@given(st.lists(values, min_size=19, max_size=60), st.lists(values, min_size=20, max_size=60))
def test_a_theta_is_given_only_where_it_leaves_the_unrelated_out(
    relevant: list[float], unrelated: list[float]
) -> None:
    outcome = evidence(relevant, unrelated)
    if isinstance(outcome, Calibration):
        assert fmean(score >= outcome.theta for score in unrelated) == outcome.unrelated_kept <= 0.05
        assert fmean(score >= outcome.theta for score in relevant) == pytest.approx(outcome.kept)
    else:
        assert outcome.verdict == "no clean separation"


def test_without_labels_the_nearest_passages_must_stand_out() -> None:
    unrelated = [n / 1000 for n in range(200)]
    clean = from_unrelated(unrelated, [0.9] * 9 + [0.0], fingerprint="s")
    assert isinstance(clean, Calibration)
    assert 0.198 < clean.theta < 0.199
    assert (clean.tier, clean.recall, clean.kept, clean.n) == ("unlabelled", None, 0.9, 10)
    for scores, nearest in ((unrelated, [0.1] * 10), ([1.0] * 200, [1.0] * 10)):
        outcome = from_unrelated(scores, nearest, fingerprint="s")
        assert isinstance(outcome, NotCalibrated)
        assert outcome.verdict == "no clean separation"
    few = from_unrelated([0.1] * 98, [0.9] * 10, fingerprint="s")
    assert isinstance(few, NotCalibrated)
    assert few.verdict == "not attainable"


def overlap(query: str, texts: Sequence[str]) -> list[float]:
    """The share of the question's words that a text holds."""
    asked = query.casefold().split()
    return [fmean(word in text.casefold() for word in asked) for text in texts]


OVERLAP = CallableScorer(overlap, "probability")

TOPICS = [
    f"{first}{second}"
    for first in ("zink", "blor", "quam", "treb", "fosk")
    for second in ("ane", "ile", "oct")
]
CORPUS = [
    Passage(f"p{n}", f"The {topic} of number{n} is a kind of word{n} that people use in place{n} every day.")
    for n, topic in enumerate(TOPICS * 2)
]
LABELLED = [
    Example(f"the {passage.text.split()[1]} of number{n}", (passage,)) for n, passage in enumerate(CORPUS)
]


def test_labelled_examples_give_the_labelled_tier() -> None:
    outcome = calibrate(OVERLAP, CORPUS, LABELLED, source="a test")
    assert isinstance(outcome, Calibration)
    assert (outcome.tier, outcome.n, outcome.theta) == ("labelled", len(CORPUS), 1.0)
    assert (outcome.fingerprint, outcome.source) == (OVERLAP.fingerprint, "a test")
    beside = calibrate(OVERLAP, CORPUS, [*LABELLED, Example("what?", nearest=CORPUS[0])], source="a test")
    assert isinstance(beside, Calibration)
    assert beside.n == outcome.n


def test_questions_alone_give_the_unlabelled_tier() -> None:
    examples = [Example(e.question, nearest=e.relevant[0]) for e in LABELLED]
    outcome = calibrate(OVERLAP, CORPUS, examples)
    assert isinstance(outcome, Calibration)
    assert (outcome.tier, outcome.n, outcome.recall) == ("unlabelled", len(CORPUS), None)


def test_no_questions_give_the_pseudo_tier_and_the_same_theta_each_time() -> None:
    outcome = calibrate(OVERLAP, CORPUS)
    assert isinstance(outcome, Calibration)
    assert (outcome.tier, outcome.n, outcome.kept) == ("pseudo", len(CORPUS), 1.0)
    assert calibrate(OVERLAP, CORPUS) == outcome


def test_of_passages_found_by_an_answers_words_the_best_suffices() -> None:
    examples = [Example(e.question, (*e.relevant, CORPUS[0]), all_needed=False) for e in LABELLED]
    outcome = calibrate(OVERLAP, CORPUS, examples)
    assert isinstance(outcome, Calibration)
    assert outcome.theta == 1.0


@pytest.mark.parametrize("examples", [[], LABELLED, [Example(LOOKUP, nearest=p) for p in CORPUS]])
def test_a_scorer_that_tells_nothing_apart_is_found_out(examples: list[Example]) -> None:
    outcome = calibrate(CallableScorer(lambda q, texts: [1.0] * len(texts), "probability"), CORPUS, examples)
    assert isinstance(outcome, NotCalibrated)
    assert outcome.verdict == "no clean separation"


def test_a_small_corpus_gives_too_few_questions() -> None:
    outcome = calibrate(load_scorer("embedded"), PASSAGES)
    assert isinstance(outcome, NotCalibrated)
    assert outcome.verdict == "not attainable"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: calibrate(OVERLAP, CORPUS, recall=1.0), r"recall=1\.0"),
        (lambda: calibrate(OVERLAP, CORPUS, recall=0), "recall=0"),
        (lambda: calibrate(OVERLAP, CORPUS, recall=95), "recall=95"),
        (lambda: calibrate(OVERLAP, CORPUS[:1]), "passages=1"),
        (lambda: calibrate(OVERLAP, [CORPUS[0]] * 20, [LABELLED[0]] * 20), "passages=20"),
        (lambda: calibrate(OVERLAP, CORPUS, [Example(" ", (CORPUS[0],))]), "question=' '"),
        (lambda: calibrate(OVERLAP, CORPUS, [Example("what?")]), "nearest passage"),
    ],
)
def test_bad_arguments(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        call()


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(ScoreError):
        calibrate(CallableScorer(lambda q, texts: [math.nan] * len(texts), "logit"), CORPUS)
