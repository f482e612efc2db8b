"""A latency learned from the calls before: its share of misses, its monotony, its file."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lara_plugins import (
    IN_THREES,
    ONE_CALL,
    CalibratedLatency,
    Call,
    InvalidArgument,
    LatencyGovernor,
    LatencyUnreadable,
    Observation,
    PerChunkLatency,
)
from lara_plugins.budget.learned import STEP, WINDOW, Learned
from lara_plugins.budget.settled import Settled

Law = Callable[[random.Random, int], tuple[float, float, int]]
"""From a number of input tokens to the seconds until the first token, those after it, and the output."""


def steady(rng: random.Random, tokens: int) -> tuple[float, float, int]:
    written = max(1, int(rng.lognormvariate(4.5, 0.6)))
    return (0.2 + 0.0005 * tokens) * rng.lognormvariate(0, 0.3), 0.01 * written, written


def seen(rng: random.Random, law: Law = steady, streamed: bool = True, slower: float = 1.0) -> Observation:
    tokens = rng.randint(500, 4000)
    first, rest, written = law(rng, tokens)
    return Observation(tokens, slower * (first + rest), slower * first if streamed else None, written)


def taught(calls: int = 300, seed: int = 1, streamed: bool = True) -> CalibratedLatency:
    rng, model = random.Random(seed), CalibratedLatency("test", overhead=0)
    for _ in range(calls):
        model.observe(seen(rng, streamed=streamed))
    return model


def misses(model: CalibratedLatency, observations: list[Observation]) -> list[bool]:
    """Whether each call took longer than predicted just before it."""
    late = []
    for one in observations:
        late.append(one.seconds > model.predict([Call(1, one.input_tokens)]))
        model.observe(one)
    return late


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("slower", [1.0, 1.6, 0.5])
def test_the_share_of_misses_holds_before_and_after_a_sudden_change(streamed: bool, slower: float) -> None:
    rng = random.Random(7)
    model = taught(streamed=streamed)
    before = misses(model, [seen(rng, streamed=streamed) for _ in range(1000)])
    after = misses(model, [seen(rng, streamed=streamed, slower=slower) for _ in range(1000)])
    late = before + after
    windows = [sum(late[start : start + 250]) for start in range(len(late) - 249)]
    assert sum(late) / len(late) <= 0.05
    assert sum(count <= 12.5 for count in windows) >= 0.95 * len(windows)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 1.5), st.floats(0.1, 1.0))
def test_coverage_on_exchangeable_data(seed: int, spread: float, output_spread: float) -> None:
    def law(rng: random.Random, tokens: int) -> tuple[float, float, int]:
        written = max(1, int(rng.lognormvariate(4, output_spread)))
        return (0.1 + 0.001 * tokens) * rng.lognormvariate(0, spread), 0.005 * written, written

    rng, model = random.Random(seed), CalibratedLatency(overhead=0)
    for _ in range(100):
        model.observe(seen(rng, law))
    late = misses(model, [seen(rng, law) for _ in range(400)])
    assert sum(late) / len(late) <= 0.05


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.001, 60.0), min_size=200, max_size=400))
def test_misses_are_bounded_whatever_the_latencies_do(seconds: list[float]) -> None:
    """The bound of online quantile tracking, which assumes nothing of the data."""
    known = Learned(overhead=0)
    widest = known.margin
    for one in seconds:
        known = known.after(Observation(1000, one, None, 100))
        widest = max(widest, known.margin)
    assert known.missed <= known.aim * len(seconds) + widest / STEP + 1e-6


def throttled(rng: random.Random, calls: int) -> list[Observation]:
    """Calls of which each waits two seconds more."""
    normal = [seen(rng) for _ in range(calls)]
    return [Observation(one.input_tokens, one.seconds + 2.0, None, one.output_tokens) for one in normal]


def test_a_throttled_run_does_not_forbid_what_was_in_time_before_and_after() -> None:
    """A few late calls in a row make the governor careful, not mute."""
    rng, model = random.Random(4), taught()
    governor = LatencyGovernor(model)
    usual = governor.plan([200] * 10, 12.0).sent
    for one in throttled(rng, 6):
        model.observe(one)
    assert 0 < governor.plan([200] * 10, 12.0).sent <= usual
    for _ in range(30):
        model.observe(seen(rng))
    assert governor.plan([200] * 10, 12.0).sent >= usual - 1


@given(st.integers(1, 400))
def test_refusals_alone_move_no_coefficient_and_loosen_in_steps(refusals: int) -> None:
    known = taught(120).learned
    calls = [Call(3, 900)]
    before, predicted = known, known.predict(calls)
    for _ in range(refusals):
        known = known.after_refusal()
    assert (known.fit, known.residuals, known.missed) == (before.fit, before.residuals, before.missed)
    assert known.predict(calls) <= predicted
    assert known.after(Observation(1000, 0.0, None, 10)).refusals == refusals // 2
    late = known.after(Observation(1000, 50.0, None, 10))
    assert (late.refusals, late.present_aim) == (0, before.present_aim)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.integers(0, 3000), max_size=30),
    st.integers(1, 2000),
    st.sampled_from([ONE_CALL, IN_THREES]),
    st.integers(0, 12),
)
def test_more_passages_never_take_less(
    seed: int, tokens: list[int], more: int, calls: Callable[[list[int]], list[Call]], late: int
) -> None:
    model = taught(60, seed)
    for _ in range(late):
        model.observe(Observation(1000, 50.0, None, 100))
    assert model.predict(calls([*tokens, more])) >= model.predict(calls(tokens))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.lists(st.integers(1, 3000), max_size=40), st.floats(0, 60))
def test_the_governor_sends_the_longest_prefix_that_fits(seed: int, tokens: list[int], budget: float) -> None:
    model = taught(60, seed)
    plan = LatencyGovernor(model).plan(tokens, budget, IN_THREES)
    fitting = [n for n in range(len(tokens) + 1) if model.predict(IN_THREES(tokens[:n])) <= budget]
    assert plan.sent == max(fitting)


def test_the_prior_predicts_until_enough_calls_were_seen() -> None:
    model = CalibratedLatency(prior=PerChunkLatency(2.0), warm_up=20)
    rng = random.Random(3)
    for _ in range(19):
        model.observe(seen(rng))
        assert (model.state, model.predict([Call(3, 900)])) == ("warming up", 6.0)
    model.observe(seen(rng))
    assert model.state == "calibrated"
    assert model.predict([Call(3, 900)]) != 6.0


def test_a_cut_call_is_a_miss_where_it_outlived_its_prediction_and_nothing_before() -> None:
    model = taught()
    known = model.learned
    predicted = model.predict([Call(1, 1000)])
    model.observe(Observation(1000, predicted / 2, cut=True))
    assert model.learned == known
    model.observe(Observation(1000, predicted * 1.01, cut=True))
    assert model.learned.missed == known.missed + 1
    assert model.learned.margin > known.margin
    assert model.learned.fit == known.fit


def test_an_llm_that_has_recovered_is_tried_again() -> None:
    """Evidence ages with refusals, so that a governor does not wait for calls that it forbids."""
    model = taught()
    for _ in range(40):
        model.observe(Observation(1000, 40.0, None, 100))
    governor = LatencyGovernor(model)
    assert governor.plan([200], 10.0).sent == 0
    refusals = 0
    while not governor.plan([200], 10.0).sent:
        model.refused()
        refusals += 1
        assert refusals < 1000
    rng = random.Random(5)
    for _ in range(WINDOW):
        model.observe(seen(rng))
    assert governor.plan([200], 10.0).sent == 1


def test_an_llm_too_slow_for_the_budget_wastes_few_calls_and_is_found_again() -> None:
    rng, model = random.Random(8), taught()
    governor = LatencyGovernor(model)

    def play(queries: int, slower: float) -> tuple[int, int]:
        outcomes: list[bool] = []
        for _ in range(queries):
            one = seen(rng, slower=slower)
            if governor.plan([one.input_tokens - 400], 6.0).sent:
                model.observe(one)
                outcomes.append(one.seconds > 6.0)
            else:
                model.refused()
        return len(outcomes), sum(outcomes)

    assert play(500, 1.0)[0] > 400
    _, late = play(2000, 4.0)
    assert late <= 0.025 * 2000
    play(300, 1.0)
    assert play(500, 1.0)[0] > 400


def test_one_very_long_call_among_the_first_does_not_forbid_the_others_for_long() -> None:
    rng, model = random.Random(6), taught(29)
    model.observe(Observation(1000, 60.0, 0.5, 2000))
    governor, sent = LatencyGovernor(model), []
    for _ in range(600):
        one = seen(rng)
        sent.append(governor.plan([one.input_tokens], 12.0).sent)
        if sent[-1]:
            model.observe(one)
        else:
            model.refused()
    assert sum(sent[:50]) < 40
    assert sum(sent[-200:]) > 180


def test_a_cap_on_what_is_written_bounds_the_prediction() -> None:
    model = taught()
    uncapped = model.predict([Call(3, 1500)])
    assert model.predict([Call(3, 1500, max_output_tokens=10)]) < uncapped
    assert model.predict([Call(3, 1500, max_output_tokens=10**6)]) == uncapped
    caps = [model.output_cap(Call(3, 1500), seconds) for seconds in (2.0, 4.0, 8.0)]
    assert None not in caps
    assert caps == sorted(caps, key=lambda cap: cap or 0)
    assert model.output_cap(Call(3, 1500), math.inf) is None
    assert PerChunkLatency().output_cap(Call(3, 1500), 2.0) is None


def test_the_slowest_of_calls_at_once_counts() -> None:
    model = taught(400)
    alone = model.predict([Call(3, 900)])
    assert model.predict([Call(3, 900, at_once=4)]) >= alone


def test_copies_learn_together_and_pickles_apart() -> None:
    model = taught(50)
    shared, apart = copy.deepcopy({"latency": model})["latency"], pickle.loads(pickle.dumps(model))  # noqa: S301
    assert shared is model is copy.copy(model)
    assert apart.learned == model.learned
    model.observe(seen(random.Random(9)))
    assert apart.learned.observed == 50
    apart.observe(seen(random.Random(9)))
    assert apart.learned == model.learned


def test_many_threads_lose_no_call() -> None:
    model = CalibratedLatency()

    def teach(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(100):
            model.observe(seen(rng))
            model.predict([Call(1, 500)])

    threads = [threading.Thread(target=teach, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.learned.observed == 800
    assert len(model.learned.residuals) == WINDOW


def test_what_was_learned_survives_its_file(tmp_path: Path) -> None:
    model = taught()
    model.save(tmp_path / "latency.json")
    loaded = CalibratedLatency.load(tmp_path / "latency.json")
    assert loaded.learned == model.learned
    assert (loaded.name, loaded.state) == ("test", "calibrated")
    assert [file.name for file in tmp_path.iterdir()] == ["latency.json"]


def damaged(**changes: object) -> str:
    content = {"format": 1, "name": "", "risk": 0.05, "learned": {}}
    return json.dumps({**content, **changes})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"theta": 0.3}',
        damaged(format=2),
        damaged(risk=0.9),
        damaged(learned={"load": 0}),
        damaged(learned={"observed": 5}),
        damaged(learned={"observed": 1, "residuals": [{"reading": -1, "writing": 1, "tokens": 1}]}),
        damaged(learned={"fit": {"per_input": -1}}),
        damaged(learned={"refusals": -1}),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "latency.json").write_text(content)
    with pytest.raises(LatencyUnreadable, match="no latency file"):
        CalibratedLatency.load(tmp_path / "latency.json")


def test_workers_put_together_what_they_know() -> None:
    one, other = taught(200, seed=1), taught(100, seed=2)
    one.merge(other)
    assert one.learned.observed == 300
    assert len(one.learned.residuals) == WINDOW
    rng = random.Random(11)
    late = misses(one, [seen(rng) for _ in range(500)])
    assert sum(late) / len(late) <= 0.05
    with pytest.raises(InvalidArgument, match="another worker"):
        one.merge(one)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"risk": 0.0}, "risk=0.0"),
        ({"risk": 0.5}, "risk=0.5"),
        ({"warm_up": 5}, "warm_up=5"),
        ({"overhead": -1}, "overhead=-1"),
        ({"prior": 0.1}, r"prior=0\.1"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        CalibratedLatency(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [(-1, 1.0), (100, -1.0), (100, math.nan), (100, math.inf), (100, 1.0, 2.0), (100, 1.0, 0.5, -1)],
)
def test_an_observation_is_something_that_can_be_measured(arguments: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Observation(*arguments)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.floats(0, 1e4), st.integers(0, 10**5)), min_size=31, max_size=60
    )
)
def test_any_measurable_calls_give_a_finite_prediction(calls: list[tuple[int, float, int]]) -> None:
    model = CalibratedLatency()
    for tokens, seconds, written in calls:
        model.observe(Observation(tokens, seconds, seconds / 2, written))
    assert 0 <= model.predict([Call(3, 900)]) < math.inf
    assert model.learned.load > 0


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.integers(0, 3000), min_size=1, max_size=20),
    st.floats(-1.0, 1.0),
    st.integers(0, 200),
)
def test_a_plan_sees_all_residuals_that_matter(
    seed: int, tokens: list[int], margin: float, refusals: int
) -> None:
    learned = replace(taught(80, seed).learned, margin=margin, refusals=refusals)
    for calls in (ONE_CALL(tokens), IN_THREES(tokens), [Call(3, 500, at_once=4)]):
        assert Settled.of(learned).predict(calls) == pytest.approx(learned.predict(calls))
