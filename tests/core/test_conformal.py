"""Theta from scores alone: the formulas, and what they promise."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.gate.conformal import exceedance_threshold, recall_threshold

values = st.floats(0, 1)
# Few different values, so that there are ties.
coarse = st.integers(0, 5).map(lambda n: n / 5)
alphas = st.sampled_from(["0.01", "0.05", "0.1", "0.2", "0.37", "0.5", "0.9"])


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
    chance = random.Random(n)
    draws, new = 600, 100
    kept = []
    for _ in range(draws):
        theta = recall_threshold([[chance.betavariate(2, 1)] for _ in range(n)], 0.95)
        assert theta is not None
        kept.append(fmean(chance.betavariate(2, 1) >= theta for _ in range(new)))
    # Three standard errors of the mean below; exactly uniform ranks would give 1 - k / (n + 1).
    assert 0.95 - 0.006 <= fmean(kept) <= 0.95 + 1 / (n + 1) + 0.006


def test_the_promise_holds_for_evidence_of_several_passages() -> None:
    chance = random.Random(3)

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
    chance = random.Random(5)
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
