"""How many passages, in how many calls, with which cap: planned together for the time left."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins import (
    IN_THREES,
    ONE_CALL,
    Ask,
    AskMany,
    BudgetExhausted,
    CalibratedLatency,
    Call,
    InvalidArgument,
    LatencyGovernor,
    LatencyModel,
    Observation,
    Passage,
    PerChunkLatency,
    QueryClock,
    QueryState,
    Reading,
    Reply,
    drive,
    plan_jointly,
)
from lara_plugins.budget import IN_ONE_CALL, PASSAGE_BY_PASSAGE, WINDOW_BY_WINDOW
from lara_plugins.phases import answer_loop, refine_loop, run_budget, run_plan
from lara_plugins.phases.shares import gate_seconds

AT_ONCE = Reading("at_once", at_once=4)
tokens_of = st.lists(st.integers(1, 900), max_size=40)


class ASecondACall(LatencyModel):
    """A second a call and a millisecond a token; calls made at once take as long as one."""

    def predict(self, calls: Sequence[Call]) -> float:
        return float(sum(1 + call.input_tokens / 1000 for call in calls))


@given(tokens_of, st.floats(0, 60))
def test_a_per_chunk_latency_keeps_the_published_list_and_the_preferred_way(
    tokens: list[int], left: float
) -> None:
    governor = LatencyGovernor(PerChunkLatency(0.3))
    published = governor.plan(tokens, left).sent
    for readings in ((WINDOW_BY_WINDOW, AT_ONCE), (PASSAGE_BY_PASSAGE, WINDOW_BY_WINDOW)):
        plan = plan_jointly(governor, tokens, left, readings)
        assert plan.send.sent == published
        assert plan.reading == readings[0]
        assert plan.output_cap is None


@given(tokens_of, st.floats(0, 60), st.permutations([WINDOW_BY_WINDOW, IN_ONE_CALL, AT_ONCE]))
def test_the_way_that_reads_the_most_is_taken(
    tokens: list[int], left: float, readings: list[Reading]
) -> None:
    governor = LatencyGovernor(ASecondACall())
    plan = plan_jointly(governor, tokens, left, readings)
    alone = [
        governor.plan(tokens[: reading.readable(tokens)], left, reading.calls).sent for reading in readings
    ]
    assert plan.send.sent == max(alone)
    assert plan.reading == readings[alone.index(max(alone))]
    assert plan.send.predicted <= left
    assert plan.send.sent + plan.send.reduced == len(tokens)


def test_windows_at_once_where_windows_in_turn_do_not_fit() -> None:
    governor = LatencyGovernor(ASecondACall())
    tokens = [100] * 12
    assert plan_jointly(governor, tokens, 5.5, [WINDOW_BY_WINDOW, AT_ONCE]).reading == WINDOW_BY_WINDOW
    assert plan_jointly(governor, tokens, 4.0, [WINDOW_BY_WINDOW, AT_ONCE]).reading == AT_ONCE
    assert plan_jointly(governor, tokens, 4.0, [WINDOW_BY_WINDOW]).send.sent == 9


def test_one_call_reads_no_more_than_it_may() -> None:
    governor = LatencyGovernor(ASecondACall())
    assert plan_jointly(governor, [10] * 30, math.inf, [IN_ONE_CALL]).send.sent == 10
    assert plan_jointly(governor, [2500] * 4, math.inf, [IN_ONE_CALL]).send.sent == 2
    assert plan_jointly(governor, [10] * 30, math.inf, [IN_ONE_CALL, WINDOW_BY_WINDOW]).send.sent == 30


@pytest.mark.parametrize("readings", [[IN_ONE_CALL], [PASSAGE_BY_PASSAGE, IN_ONE_CALL]])
def test_policies_where_nothing_fits(readings: list[Reading]) -> None:
    def plan(policy: str) -> int:
        governor = LatencyGovernor(ASecondACall(), policy)  # type: ignore[arg-type]
        return plan_jointly(governor, [100, 100], 0.5, readings).send.sent

    assert plan("abstain") == 0
    assert plan("send_best") == 1
    with pytest.raises(BudgetExhausted, match="afford more time"):
        plan("raise")
    with pytest.raises(InvalidArgument, match="readings="):
        plan_jointly(LatencyGovernor(), [1], 1.0, [])


@given(tokens_of, st.integers(1, 8))
def test_more_passages_never_take_less_at_once(tokens: list[int], at_once: int) -> None:
    calls = Reading("at_once", at_once=at_once).calls
    model = ASecondACall()
    costs = [model.predict(calls(tokens[:count])) for count in range(len(tokens) + 1)]
    assert costs == sorted(costs)


def learned(seconds: float) -> CalibratedLatency:
    model = CalibratedLatency()
    for call in range(60):
        model.observe(Observation(1000 + call * 50, seconds * (1 + call / 600), seconds / 2, 100))
    return model


def state(afford: float, latency: LatencyModel | None = None) -> QueryState:
    return QueryState(clock=QueryClock(afford, now=lambda: 100.0), latency=latency)


PASSAGES = [Passage(f"p{n}", "word " * 60) for n in range(20)]


def test_the_gate_gets_what_answering_does_not_need() -> None:
    fast, slow = (
        gate_seconds(state(10.0, learned(1.0)), PASSAGES),
        gate_seconds(state(10.0, learned(6.0)), PASSAGES),
    )
    assert 7.0 < fast < 10.0
    assert 1.0 <= slow < 4.0
    assert gate_seconds(state(10.0, learned(60.0)), PASSAGES) == 1.0


def test_the_gate_gets_its_fixed_share_where_nothing_was_learned() -> None:
    for latency in (None, PerChunkLatency(), CalibratedLatency()):
        assert gate_seconds(state(10.0, latency), PASSAGES) == 4.0
    assert gate_seconds(QueryState(latency=learned(1.0)), PASSAGES) == math.inf


def test_a_refused_query_is_told_to_the_model() -> None:
    model = learned(30.0)
    spent = state(2.0)
    assert run_budget(spent, PASSAGES, LatencyGovernor(model)).sent == 0
    assert model.learned.refusals == 1
    assert spent.empty_reason is not None


def test_the_trace_tells_the_plan() -> None:
    working = state(4.0, learned(1.0))
    working.trace.record("route", "as the test wants it", 0.0, regime="refine")
    run_plan(working, PASSAGES[:9], 2.0, (WINDOW_BY_WINDOW, IN_ONE_CALL))
    route = working.trace.last("route")
    assert route is not None
    assert (route.facts["way"], route.facts["reads"], route.facts["calls"]) == ("one_call", 9, 1)
    assert isinstance(route.facts["output_cap"], int)
    assert "in_threes" in str(route.facts["plan"])


def test_calls_of_every_way() -> None:
    tokens = [1, 2, 3, 4, 5]
    assert PASSAGE_BY_PASSAGE.calls(tokens) == [Call(1, count) for count in tokens]
    assert WINDOW_BY_WINDOW.calls(tokens) == IN_THREES(tokens)
    assert IN_ONE_CALL.calls(tokens) == ONE_CALL(tokens)
    assert AT_ONCE.calls(tokens) == [Call(3, 9, at_once=2), Call(5, 15)]
    assert AT_ONCE.calls(tokens[:2]) == [Call(2, 3)]


class ASecondAndAHalf(LatencyModel):
    """A second and a half a call, however much it reads."""

    def predict(self, calls: Sequence[Call]) -> float:
        return 1.5 * len(calls)


@pytest.mark.parametrize(
    ("question", "count", "afford", "way"),
    [
        ("How tall is the Eiffel Tower?", 2, 4.0, "one_by_one"),
        ("How tall is the Eiffel Tower?", 6, 4.0, "one_call"),
        ("Which towers are there?", 6, 4.0, "one_call"),
        ("Which towers are there?", 18, 10.0, "in_threes"),
        ("Which towers are there?", 18, 7.0, "at_once"),
    ],
)
def test_the_route_prefers_and_the_time_decides(question: str, count: int, afford: float, way: str) -> None:
    working = state(afford)
    passages = [Passage(f"p{n}", f"Tower {n} is here.") for n in range(count)]
    asked: list[int] = []
    wanted = answer_loop(working, question, passages, ASecondAndAHalf(), at_once=6).send(None)
    asked.append(len(wanted.asks) if isinstance(wanted, AskMany) else 1)
    route = working.trace.last("route")
    assert route is not None
    assert route.facts["way"] == way
    assert asked == [6 if way == "at_once" else 1]


def test_windows_at_once_are_off_by_default_and_never_for_a_sequential_route() -> None:
    passages = [Passage(f"p{n}", f"Tower {n} is here.") for n in range(18)]
    for question, at_once in (("Which towers are there?", 1), ("How tall is the Eiffel Tower?", 6)):
        loop = answer_loop(state(7.0), question, passages, ASecondAndAHalf(), at_once=at_once)
        assert isinstance(loop.send(None), Ask)


def test_every_ask_is_capped_by_the_time_that_is_left_then() -> None:
    working, passages = state(60.0, learned(1.0)), PASSAGES[:9]
    caps: list[int | None] = []
    left = iter((40.0, 20.0, 10.0))

    def call(ask: Ask) -> Reply:
        caps.append(ask.max_output_tokens)
        return Reply('{"changed": false}', next(left))

    drive(refine_loop(working, "Which towers are there?", passages), call)
    assert None not in caps
    assert caps == sorted(caps, key=lambda cap: cap or 0, reverse=True)
    assert len(set(caps)) == 3
