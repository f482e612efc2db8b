"""Theta from scores: the formulas, what they promise, the three tiers, the file, and who may use it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from towers import LOOKUP, PASSAGES

from lara_plugins import (
    Calibration,
    CalibrationMismatch,
    CalibrationUnreadable,
    CallableScorer,
    Example,
    InvalidArgument,
    NotCalibrated,
    Passage,
    QueryState,
    Score,
    ScoreError,
    Scorer,
    ThresholdGate,
    calibrate,
    load_scorer,
)
from lara_plugins.gate.calibration import from_evidence, from_unrelated
from lara_plugins.gate.conformal import exceedance_threshold, recall_threshold
from lara_plugins.phases import run_gate

values = st.floats(0, 1)
# Few different values, so that there are ties.
coarse = st.integers(0, 5).map(lambda n: n / 5)
alphas = st.sampled_from(["0.01", "0.05", "0.1", "0.2", "0.37", "0.5", "0.9"])

CALIBRATION = Calibration(
    theta=0.4,
    tier="labelled",
    fingerprint="a",
    n=19,
    recall=0.95,
    kept=1.0,
    unrelated=100,
    unrelated_kept=0.0,
)


@given(st.lists(values | coarse, min_size=1, max_size=120), alphas)
def test_with_one_passage_a_question_theta_is_the_kth_smallest_score(scores: list[float], alpha: str) -> None:
    hundredths = round(float(alpha) * 100)
    k = hundredths * (len(scores) + 1) // 100
    expected = sorted(scores)[k - 1] if k else None
    assert recall_threshold([[score] for score in scores], (100 - hundredths) / 100) == expected


@given(st.lists(st.lists(values | coarse, min_size=1, max_size=4), min_size=1, max_size=30), alphas)
def test_theta_is_the_highest_whose_bounded_miss_is_allowed(relevant: list[list[float]], alpha: str) -> None:
    theta = recall_threshold(relevant, float(1 - float(alpha)))

    def misses(t: float) -> float:
        return sum(fmean(score < t for score in scores) for scores in relevant) + 1

    allowed = float(alpha) * (len(relevant) + 1)
    candidates = [s for scores in relevant for s in scores if misses(s) <= allowed + 1e-9]
    assert theta == max(candidates, default=None)


@pytest.mark.parametrize(("n", "recall", "attainable"), [(18, 0.95, False), (19, 0.95, True), (9, 0.9, True)])
def test_the_fewest_questions_for_a_recall(n: int, recall: float, attainable: bool) -> None:
    assert (recall_threshold([[0.5]] * n, recall) is not None) is attainable


@pytest.mark.parametrize("n", [19, 40, 99])
def test_the_promised_recall_holds_on_average_over_draws(n: int) -> None:
    """Exchangeable draws: of new evidence at least 95 % is kept, and at most 1 / (n + 1) more."""
    chance = random.Random(n)  # noqa: S311 - a simulation
    draws, new = 600, 100
    kept = []
    for _ in range(draws):
        theta = recall_threshold([[chance.betavariate(2, 1)] for _ in range(n)], 0.95)
        assert theta is not None
        kept.append(fmean(chance.betavariate(2, 1) >= theta for _ in range(new)))
    # Three standard errors of the mean below; exactly uniform ranks would give 1 - k / (n + 1).
    assert 0.95 - 0.006 <= fmean(kept) <= 0.95 + 1 / (n + 1) + 0.006


def test_the_promise_holds_for_evidence_of_several_passages() -> None:
    chance = random.Random(3)  # noqa: S311 - a simulation

    def question() -> list[float]:
        ease = chance.random()  # a question's passages are hard or easy together
        return [min(1.0, max(0.0, chance.gauss(ease, 0.1))) for _ in range(chance.choice((1, 2, 5)))]

    kept = []
    for _ in range(600):
        theta = recall_threshold([question() for _ in range(40)], 0.9)
        assert theta is not None
        kept += [fmean(score >= theta for score in question()) for _ in range(40)]
    assert fmean(kept) >= 0.9 - 0.006


def test_unrelated_passages_are_left_out_on_average_over_draws() -> None:
    chance = random.Random(5)  # noqa: S311 - a simulation
    passing = []
    for _ in range(400):
        theta = exceedance_threshold([chance.random() for _ in range(199)], 0.01)
        assert theta is not None
        passing.append(fmean(chance.random() >= theta for _ in range(200)))
    assert fmean(passing) <= 0.01 + 0.001


@given(st.lists(values | coarse, max_size=300))
def test_the_unrelated_threshold_is_just_above_its_order_statistic(scores: list[float]) -> None:
    theta = exceedance_threshold(scores, 0.01)
    place = -(-99 * (len(scores) + 1) // 100)
    if place > len(scores):
        assert theta is None
        return
    ranked = sorted(scores)[place - 1]
    assert theta == (math.nextafter(ranked, 2.0) if ranked < 1 else None)


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
    chance = random.Random(1)  # noqa: S311 - a simulation
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


@given(values, st.sampled_from(["labelled", "pseudo", "unlabelled"]), st.text(max_size=20))
def test_a_file_gives_back_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, theta: float, tier: str, source: str
) -> None:
    assume(source.isprintable())
    changed = {**CALIBRATION.model_dump(), "theta": theta, "tier": tier, "source": source}
    saved = Calibration.model_validate(changed)
    path = tmp_path_factory.mktemp("calibration") / "theta.json"
    for _ in range(2):
        saved.save(path)
    assert Calibration.load(path) == saved
    assert [file.name for file in path.parent.iterdir()] == ["theta.json"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        json.dumps(CALIBRATION.model_dump()).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "theta": 1.5}).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "theta": "0.4"}).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "theta": math.nan}).encode(),
        json.dumps({"format": 1, "theta": 0.4}).encode(),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "theta.json"
    path.write_bytes(damage)
    with pytest.raises(CalibrationUnreadable, match="make it with lara calibrate"):
        Calibration.load(path)


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "theta.json"
    path.write_text(json.dumps({"format": 2, "something": "new"}))
    with pytest.raises(CalibrationUnreadable, match="format 2 and this version reads 1"):
        Calibration.load(path)
    with pytest.raises(FileNotFoundError):
        Calibration.load(tmp_path / "absent.json")


def scorer_of(fingerprint: str, *scores: float, known: bool = False) -> Scorer:
    return CallableScorer(
        lambda q, texts: list(scores), "probability", fingerprint=fingerprint, scale_known=known
    )


def some(count: int) -> list[Passage]:
    return [Passage(f"p{n}", f"passage {n}") for n in range(count)]


def test_a_gate_takes_the_calibrated_theta() -> None:
    scores = [Score.from_probability(p) for p in (0.39, 0.4, 0.9)]
    decision = ThresholdGate(CALIBRATION).admit(scores)
    assert (decision.kept, decision.theta) == ((2, 1), 0.4)


def test_a_calibrated_theta_abstains_on_an_unknown_scale() -> None:
    assert ThresholdGate(CALIBRATION).admit([Score.from_probability(0.1)], scale_known=False).kept == ()


def test_another_scorer_is_refused_before_it_scores() -> None:
    def never(query: str, texts: Sequence[str]) -> list[float]:
        raise AssertionError("it must not score")

    other = CallableScorer(never, "probability", fingerprint="b")
    with pytest.raises(CalibrationMismatch, match="calibrated for the scorer a and this one is b"):
        run_gate(QueryState(), LOOKUP, some(3), other, ThresholdGate(CALIBRATION))


def test_the_trace_says_that_theta_is_calibrated() -> None:
    state = QueryState()
    run_gate(state, LOOKUP, some(2), scorer_of("a", 0.5, 0.3), ThresholdGate(CALIBRATION))
    gate = state.trace.last("gate")
    assert gate is not None
    assert (gate.facts["theta"], gate.facts["calibrated"], gate.facts["kept"]) == (0.4, "labelled", 1)
    assert not any("scale" in note for note in state.trace.notes)


@pytest.mark.parametrize(
    ("gate", "remedy"),
    [
        (
            ThresholdGate(),
            "calibrate theta for this scorer and corpus (lara calibrate), or set on_empty='keep_best'",
        ),
        (
            ThresholdGate(CALIBRATION),
            "calibrate theta again, with a higher recall, or set on_empty='keep_best'",
        ),
    ],
)
def test_an_abstention_is_loud(gate: ThresholdGate, remedy: str) -> None:
    state = QueryState()
    run_gate(state, LOOKUP, some(2), scorer_of("a", 0.2, 0.1, known=True), gate)
    decided = state.trace.last("gate")
    assert decided is not None
    assert (decided.facts["best"], decided.facts["theta"]) == (0.2, gate.threshold)
    assert decided.facts["remedy"] == remedy
    assert state.empty_reason is not None
    assert remedy in state.empty_reason
    assert "the best has 0.2" in state.empty_reason


def test_the_default_theta_on_an_unknown_scale_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def noted(scorer: Scorer, gate: ThresholdGate) -> bool:
        state = QueryState()
        run_gate(state, LOOKUP, some(1), scorer, gate)
        return any("scale of this scorer is unknown" in note for note in state.trace.notes)

    unknown = scorer_of("of an unknown scale", 0.9)
    assert noted(unknown, ThresholdGate())
    assert noted(unknown, ThresholdGate())
    assert [record.levelname for record in caplog.records if "lara calibrate" in record.message] == [
        "WARNING"
    ]
    assert not noted(scorer_of("of a known scale", 0.9, known=True), ThresholdGate())
    assert not noted(unknown, ThresholdGate(0.25))
    assert not noted(scorer_of("a", 0.9), ThresholdGate(CALIBRATION))
