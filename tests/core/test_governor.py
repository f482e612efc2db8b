"""The governor against the published formula, written down independently."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins import (
    IN_THREES,
    ONE_CALL,
    BudgetExhausted,
    Call,
    InvalidArgument,
    LatencyGovernor,
    LatencyModel,
    PerChunkLatency,
)

counts = st.integers(0, 250)
chunk_seconds = st.floats(1e-6, 1e3, allow_nan=False)
budgets = st.floats(-1e4, 1e5, allow_nan=False) | st.decimals(-10, 100, places=2).map(float)


def published_send_list(n: int, lat_chunk: Fraction, budget: Fraction) -> int:
    exceeded = max(Fraction(0), n * lat_chunk - budget)
    return max(0, n - math.ceil(exceeded / lat_chunk))


@given(counts, chunk_seconds, budgets)
def test_send_list_is_the_published_one(n: int, seconds: float, budget: float) -> None:
    plan = LatencyGovernor(PerChunkLatency(seconds)).plan([100] * n, budget)
    assert plan.sent == published_send_list(n, Fraction(str(seconds)), Fraction(str(budget)))
    assert plan.reduced == n - plan.sent


@given(counts, chunk_seconds, budgets)
def test_send_list_fits_and_one_passage_more_would_not(n: int, seconds: float, budget: float) -> None:
    sent = LatencyGovernor(PerChunkLatency(seconds)).plan([100] * n, budget).sent
    lat_chunk, allowed = Fraction(str(seconds)), max(Fraction(0), Fraction(str(budget)))
    assert sent * lat_chunk <= allowed
    assert sent == n or (sent + 1) * lat_chunk > allowed


@given(counts, chunk_seconds, budgets)
def test_per_chunk_latency_does_not_care_how_passages_are_called(
    n: int, seconds: float, budget: float
) -> None:
    governor = LatencyGovernor(PerChunkLatency(seconds))
    assert governor.plan([7] * n, budget, IN_THREES).sent == governor.plan([7] * n, budget, ONE_CALL).sent


def test_decimal_budgets_are_exact() -> None:
    plan = LatencyGovernor(PerChunkLatency(0.1)).plan([1] * 10, 0.3)
    assert plan.sent == 3
    assert plan.predicted == 0.3


class TokensAndCalls(LatencyModel):
    """A second a call and a millisecond a token."""

    def predict(self, calls: Sequence[Call]) -> float:
        return float(sum(1 + call.input_tokens / 1000 for call in calls))


@given(st.lists(st.integers(1, 3000), max_size=40), st.floats(0, 40))
def test_any_monotone_model_gets_its_longest_fitting_prefix(tokens: list[int], budget: float) -> None:
    model = TokensAndCalls()
    plan = LatencyGovernor(model).plan(tokens, budget, IN_THREES)
    fitting = [n for n in range(len(tokens) + 1) if model.predict(IN_THREES(tokens[:n])) <= budget]
    assert plan.sent == max(fitting, default=0)


def test_without_a_deadline_everything_is_sent() -> None:
    assert LatencyGovernor().plan([1] * 50, math.inf).sent == 50


def test_nothing_to_send() -> None:
    plan = LatencyGovernor().plan([], 4.0)
    assert (plan.sent, plan.reduced, plan.predicted) == (0, 0, 0.0)


@pytest.mark.parametrize("time_left", [0.05, 0.0, -3.0, -math.inf])
def test_policies_where_nothing_fits(time_left: float) -> None:
    assert LatencyGovernor().plan([1, 1], time_left).sent == 0
    best = LatencyGovernor(on_exhausted="send_best").plan([1, 1], time_left)
    assert (best.sent, best.over_budget) == (1, True)
    with pytest.raises(BudgetExhausted, match="afford more time"):
        LatencyGovernor(on_exhausted="raise").plan([1, 1], time_left)


def test_policies_do_not_touch_a_list_that_fits_or_is_empty() -> None:
    for policy in ("send_best", "raise"):
        assert not LatencyGovernor(on_exhausted=policy).plan([1], 1.0).over_budget
        assert LatencyGovernor(on_exhausted=policy).plan([], -1.0).sent == 0


@pytest.mark.parametrize("seconds", [0, -0.1, math.nan, math.inf, True])
def test_a_chunk_takes_a_positive_time(seconds: float) -> None:
    with pytest.raises(InvalidArgument, match="seconds="):
        PerChunkLatency(seconds)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InvalidArgument, match="time_left=nan"):
        LatencyGovernor().plan([1], math.nan)
    with pytest.raises(InvalidArgument, match="on_exhausted='sned_best'"):
        LatencyGovernor(on_exhausted="sned_best")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"latency=0\.1"):
        LatencyGovernor(0.1)  # type: ignore[arg-type]


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(InvalidArgument("theta", 2, "give less")))  # noqa: S301
    assert str(error) == "theta=2: give less"
