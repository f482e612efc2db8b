"""What a phase usually takes: the prediction beside its actual seconds in the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_time import FakeTime
from hashed_words import HashedWords
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins import CallableScorer, EmbeddedIndex, Passage, QueryClock, QueryState, ThresholdGate
from lara_plugins.phases import arun_retrieval, run_gate, run_retrieval
from lara_plugins.phases.usual import UsualSeconds

KINDS = ["sync", "async"]


class SlowWords(HashedWords):
    """Takes as many seconds of a fake clock as it is told to."""

    def __init__(self, time: FakeTime, name: str) -> None:
        super().__init__(name=name)
        self.time, self.takes = time, 0.0

    def encode_query(self, text: str) -> list[float]:
        self.time.seconds += self.takes
        return super().encode_query(text)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=300))
def test_the_prediction_is_the_upper_quantile_of_the_latest_runs(seconds: list[float]) -> None:
    usual = UsualSeconds(window=100)
    assert usual.at_most("a kind") is None
    for one in seconds:
        usual.took("a kind", one)
    latest = sorted(seconds[-100:])
    predicted = usual.at_most("a kind")
    assert predicted in latest
    longer = sum(one > predicted for one in latest)
    assert longer <= 0.05 * len(latest)
    assert usual.at_most("another") is None


def test_the_kind_that_was_seen_longest_ago_is_forgotten() -> None:
    usual = UsualSeconds(most=2)
    for kind in ("a", "b", "a", "c"):
        usual.took(kind, 1.0)
    assert [usual.at_most(kind) for kind in ("a", "b", "c")] == [1.0, None, 1.0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_retrieval_is_read_against_the_searches_before(kind: str, tmp_path: Path) -> None:
    time = FakeTime()
    words = SlowWords(time, f"slow, {kind}")
    facts = []
    with EmbeddedIndex(tmp_path / "index", dense=words) as index:
        index.upsert([Passage(f"p{n}", f"alpha {kind} {n}") for n in range(5)])
        for words.takes in (0.5, 0.25, 0.125):
            state = QueryState(clock=QueryClock(4.0, now=time))
            if kind == "sync":
                run_retrieval(state, "alpha?", index)
            else:
                asyncio.run(arun_retrieval(state, "alpha?", index))
            retrieval = state.trace.last("retrieval")
            assert retrieval is not None
            facts.append((retrieval.facts["predicted"], retrieval.seconds))
    assert facts == [(None, 0.5), (0.5, 0.25), (0.5, 0.125)]


def test_a_gate_is_read_against_what_its_scorer_took_a_passage_within_its_share() -> None:
    time = FakeTime()

    def score(_: str, texts: Sequence[str]) -> list[float]:
        time.seconds += 0.25 * len(texts)
        return [0.9] * len(texts)

    scorer = CallableScorer(score, "probability", scale_known=True)
    predicted = []
    for count, afford in ((2, 10.0), (4, 10.0), (100, 10.0), (4, None)):
        state = QueryState(clock=QueryClock(afford, now=time))
        run_gate(state, "q?", [Passage(f"p{n}", f"text {n}") for n in range(count)], scorer, ThresholdGate())
        gate = state.trace.last("gate")
        assert gate is not None
        predicted.append(gate.facts["predicted"])
    assert predicted == [None, 1.0, 4.0, 1.0]
