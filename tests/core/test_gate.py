"""The gate's decision, and scoring that stops in time."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lara_plugins import InvalidArgument, NothingKept, Score, ScoreError, ThresholdGate
from lara_plugins.gate import Block, ScoreKind, score_in_time

logits = st.floats(-40, 40, allow_nan=False)
score_lists = st.lists(st.none() | logits.map(Score.from_logit), max_size=60)
thetas = st.floats(0, 1)


@given(score_lists, thetas)
def test_kept_dropped_and_unscored_are_all_there_is(scores: list[Score | None], theta: float) -> None:
    decision = ThresholdGate(theta, on_empty="abstain").admit(scores)
    everything = (*decision.kept, *decision.dropped, *decision.unscored)
    assert sorted(everything) == list(range(len(scores)))
    assert {i for i, s in enumerate(scores) if s is not None and s.value >= theta} == set(decision.kept)
    assert {i for i, s in enumerate(scores) if s is None} == set(decision.unscored)


@given(score_lists, thetas)
def test_noise_rate_is_the_share_of_scored_passages_below_theta(
    scores: list[Score | None], theta: float
) -> None:
    values = [score.value for score in scores if score is not None]
    expected = sum(value < theta for value in values) / len(values) if values else 0.0
    assert ThresholdGate(theta, on_empty="keep_best").admit(scores).noise_rate == expected


@given(score_lists)
def test_order_is_by_rank_and_ties_keep_their_place(scores: list[Score | None]) -> None:
    kept = ThresholdGate(0.0).admit(scores).kept
    for earlier, later in itertools.pairwise(kept):
        a, b = scores[earlier], scores[later]
        assert a is not None
        assert b is not None
        assert a.rank > b.rank or (a.rank == b.rank and earlier < later)


def test_saturated_probabilities_are_ordered_by_logit() -> None:
    scores = [Score.from_logit(x) for x in (38.0, 40.0, 39.0)]
    assert scores[0].value == scores[1].value == 1.0
    assert ThresholdGate().admit(scores).kept == (1, 2, 0)


def test_theta_itself_passes() -> None:
    assert ThresholdGate(0.3).admit([Score.from_probability(0.3)]).kept == (0,)


def test_a_passage_is_judged_on_its_own() -> None:
    lone = ThresholdGate().admit([Score.from_probability(0.4)]).kept
    among = ThresholdGate().admit([Score.from_probability(p) for p in (0.4, 0.99, 0.01)]).kept
    assert 0 in lone
    assert 0 in among


def test_max_k_caps_after_theta() -> None:
    decision = ThresholdGate(max_k=2).admit([Score.from_probability(p) for p in (0.5, 0.9, 0.8, 0.1)])
    assert decision.kept == (1, 2)
    assert decision.dropped == (0, 3)
    assert decision.noise_rate == 0.25


def test_on_empty_policies() -> None:
    scores = [Score.from_probability(p) for p in (0.1, 0.2)]
    assert ThresholdGate(on_empty="abstain").admit(scores).kept == ()
    best = ThresholdGate(on_empty="keep_best").admit(scores)
    assert (best.kept, best.below_theta) == ((1,), True)
    with pytest.raises(NothingKept, match="calibrate theta"):
        ThresholdGate(on_empty="raise").admit(scores)


@given(thetas, thetas)
def test_a_best_score_below_theta_never_reads_as_theta(value: float, theta: float) -> None:
    assume(value < theta)
    reason = ThresholdGate(theta, on_empty="abstain").admit([Score.from_probability(value)]).reason
    found = re.fullmatch(r"none of 1 scored passage reaches theta (\S+); the best has (\S+)", reason)
    assert found is not None
    assert float(found[2]) < float(found[1])


def test_every_empty_decision_has_a_remedy_and_no_other() -> None:
    poor, good = Score.from_probability(0.1), Score.from_probability(0.9)
    assert "lara calibrate" in str(ThresholdGate(on_empty="abstain").admit([poor]).remedy)
    assert "keep_best" in str(ThresholdGate(on_empty="abstain").admit([poor]).remedy)
    assert "afford more time" in str(ThresholdGate().admit([None]).remedy)
    with pytest.raises(NothingKept, match="afford more time"):
        ThresholdGate(on_empty="raise").admit([None])
    for decision in (
        ThresholdGate(on_empty="raise").admit([]),
        ThresholdGate(on_empty="keep_best").admit([poor]),
        ThresholdGate().admit([good]),
    ):
        assert decision.remedy is None


def test_the_default_policy_follows_the_scale() -> None:
    scores = [Score.from_probability(0.1)]
    assert ThresholdGate().admit(scores, scale_known=True).kept == ()
    assert ThresholdGate().admit(scores, scale_known=False).kept == (0,)


def test_no_scores_at_all() -> None:
    for policy in ("abstain", "keep_best", "raise"):
        assert ThresholdGate(on_empty=policy).admit([]).kept == ()
    assert ThresholdGate(on_empty="keep_best").admit([None, None]).kept == ()


@pytest.mark.parametrize("theta", [-0.1, 1.1, math.nan, True])
def test_theta_is_a_probability(theta: float) -> None:
    with pytest.raises(InvalidArgument, match="theta="):
        ThresholdGate(theta)


def test_other_bad_arguments() -> None:
    with pytest.raises(InvalidArgument, match="max_k=0"):
        ThresholdGate(max_k=0)
    with pytest.raises(InvalidArgument, match="on_empty='abstian'"):
        ThresholdGate(on_empty="abstian")  # type: ignore[arg-type]


@given(st.floats(-700, 700))
def test_the_sigmoid_is_one_and_exact(logit: float) -> None:
    value = Score.from_logit(logit).value
    assert 0.0 <= value <= 1.0
    assert value == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-12)
    assert Score.from_logit(-logit).value == pytest.approx(1 - value, abs=1e-15)


@pytest.mark.parametrize("logit", [math.nan, math.inf, -math.inf])
def test_a_logit_is_finite(logit: float) -> None:
    with pytest.raises(ScoreError, match="no score"):
        Score.from_logit(logit)


@pytest.mark.parametrize("probability", [math.nan, -0.01, 1.01, 7.0])
def test_a_probability_is_one(probability: float) -> None:
    with pytest.raises(ScoreError, match="score_kind"):
        Score.from_probability(probability)


class BlocksOf:
    """A scorer whose raw scores are given, in blocks of a set size."""

    name = None
    scale_known = True
    fingerprint = "test"

    def __init__(self, raw: Sequence[float], size: int = 4, score_kind: ScoreKind = "logit") -> None:
        self.raw, self.size, self.score_kind, self.scored = raw, size, score_kind, 0

    def load(self) -> None:
        """Nothing to load."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        for start in range(0, len(self.raw), self.size):
            self.scored += self.size
            yield Block(list(self.raw[start : start + self.size]), truncated=(0,))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return list(self.raw)


@given(st.integers(0, 40), st.integers(1, 9), st.integers(0, 60))
def test_scoring_overruns_its_time_by_one_block_at_most(n: int, size: int, allowed: int) -> None:
    scorer = BlocksOf([0.0] * n, size)
    scored = score_in_time(scorer, "q", ["t"] * n, lambda: allowed - scorer.scored)
    assert len(scored.scores) == n
    done = sum(score is not None for score in scored.scores)
    assert all(score is not None for score in scored.scores[:done])
    assert done == n or allowed <= done < allowed + size or (allowed == 0 and done == size)


def test_what_was_cut_is_reported_by_its_position() -> None:
    assert score_in_time(BlocksOf([0.0] * 10), "q", ["t"] * 10, lambda: 1.0).truncated == (0, 4, 8)


@pytest.mark.parametrize("count", [3, 9])
def test_a_wrong_count_is_refused(count: int) -> None:
    with pytest.raises(ScoreError, match="for 6 passages"):
        score_in_time(BlocksOf([0.0] * count), "q", ["t"] * 6, lambda: 1.0)


def test_nan_is_refused() -> None:
    with pytest.raises(ScoreError):
        score_in_time(BlocksOf([0.0, math.nan]), "q", ["t"] * 2, lambda: 1.0)


def test_logits_declared_as_probabilities_are_refused() -> None:
    with pytest.raises(ScoreError, match=r"outside 0\.\.1"):
        score_in_time(BlocksOf([3.0], score_kind="probability"), "q", ["t"], lambda: 1.0)


@pytest.mark.parametrize("question", ["", " \n"])
def test_an_empty_question_is_refused_before_scoring(question: str) -> None:
    scorer = BlocksOf([0.0])
    with pytest.raises(InvalidArgument, match="question="):
        score_in_time(scorer, question, ["t"], lambda: 1.0)
    assert scorer.scored == 0


def test_no_texts_need_no_model_call() -> None:
    scorer = BlocksOf([0.0])
    assert score_in_time(scorer, "q", [], lambda: 1.0).scores == ()
    assert scorer.scored == 0
