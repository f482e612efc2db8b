"""The phases on one query's state: what they decide, and what the trace says of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

import pytest
from fake_time import FakeTime
from towers import LISTING, LOOKUP, PASSAGES

from lara_plugins import (
    Ask,
    CallableScorer,
    LatencyGovernor,
    Limits,
    NothingKept,
    Passage,
    PerChunkLatency,
    QueryClock,
    QueryState,
    QuestionParser,
    Reply,
    Rule,
    ScoreError,
    ThresholdGate,
    drive,
    load_lexicon,
    load_scorer,
)
from lara_plugins.gate import GATE_SHARE, Block, OnEmpty, ScoreKind
from lara_plugins.phases import (
    abstain,
    answer_loop,
    asking_time,
    record_answer,
    run_budget,
    run_gate,
    run_route,
)
from lara_plugins.question import DEFAULT_LIMITS
from lara_plugins.trace import Phase


class Slow:
    """Scores everything alike and takes a second a block of ten."""

    name = None
    score_kind: ScoreKind = "probability"
    scale_known = True
    fingerprint = "slow"

    def __init__(self, time: FakeTime) -> None:
        self.time = time

    def load(self) -> None:
        """Nothing to load."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        for start in range(0, len(texts), 10):
            self.time.seconds += 1.0
            yield Block([0.5] * len(texts[start : start + 10]))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [score for block in self.blocks(query, texts) for score in block.scores]


def phase(state: QueryState, name: str) -> Phase:
    found = state.trace.last(name)
    assert found is not None
    return found


def many(count: int) -> list[Passage]:
    return [Passage(f"p{n}", f"passage {n}") for n in range(count)]


def test_the_gate_stops_in_its_share_of_the_budget() -> None:
    time = FakeTime()
    state = QueryState(clock=QueryClock(10.0, now=time))
    gated = run_gate(state, "q", many(100), Slow(time), ThresholdGate())
    # A share of 4 s pays for four blocks of a second.
    assert time.seconds == 100.0 + 10.0 * GATE_SHARE
    assert len(gated.decision.kept) == 40
    assert len(gated.decision.unscored) == 60
    assert phase(state, "gate").facts["unscored"] == 60
    assert "60 passages were left unscored when the gate's time ended" in state.trace.notes


def test_the_gate_never_takes_more_than_what_is_left() -> None:
    time = FakeTime()
    state = QueryState(clock=QueryClock(10.0, now=time))
    time.seconds += 8.0
    run_gate(state, "q", many(100), Slow(time), ThresholdGate())
    assert time.seconds == 110.0


def test_without_a_deadline_everything_is_scored() -> None:
    time = FakeTime()
    state = QueryState(clock=QueryClock(now=time))
    assert len(run_gate(state, "q", many(100), Slow(time), ThresholdGate()).decision.kept) == 100


def test_an_empty_gate_says_why_and_names_the_best_passages() -> None:
    scorer = CallableScorer(
        lambda q, texts: [0.1, 0.2, 0.15, 0.05], score_kind="probability", scale_known=True
    )
    state = QueryState()
    assert run_gate(state, "q", many(4), scorer, ThresholdGate()).decision.kept == ()
    assert [passage.id for passage in state.best] == ["p1", "p2", "p0"]
    assert state.empty_reason is not None
    assert "the best has 0.2" in state.empty_reason
    assert "set on_empty='keep_best'" in state.empty_reason


def test_few_candidates_are_noted() -> None:
    scorer = CallableScorer(lambda q, texts: [0.9] * len(texts), "probability", scale_known=True)
    few, enough = QueryState(), QueryState()
    run_gate(few, "q", many(2), scorer, ThresholdGate())
    run_gate(enough, "q", many(20), scorer, ThresholdGate())
    assert any("2 candidates" in note for note in few.trace.notes)
    assert not enough.trace.notes


def test_a_truncated_passage_is_noted() -> None:
    state = QueryState()
    run_gate(state, "q", [Passage("p", "word " * 3000)], load_scorer("embedded"), ThresholdGate())
    assert phase(state, "gate").facts["truncated"] == 1
    assert any("longer than the scorer's window" in note for note in state.trace.notes)


@pytest.mark.parametrize(
    ("scores", "error"),
    [([math.nan], ScoreError), ([0.5, 0.5], ScoreError), ([], ScoreError), ([0.1], NothingKept)],
)
def test_what_the_gate_raises(scores: list[float], error: type[Exception]) -> None:
    scorer = CallableScorer(lambda q, texts: scores, score_kind="probability")
    with pytest.raises(error):
        run_gate(QueryState(), "q", many(1), scorer, ThresholdGate(on_empty="raise"))


@pytest.mark.parametrize("on_empty", ["abstain", "raise"])
def test_an_empty_gate_is_in_the_trace_whether_it_raises_or_not(on_empty: OnEmpty) -> None:
    scorer = CallableScorer(lambda q, texts: [0.1] * len(texts), score_kind="probability")
    state = QueryState()

    with pytest.raises(NothingKept) if on_empty == "raise" else nullcontext():
        run_gate(state, "q", many(2), scorer, ThresholdGate(on_empty=on_empty))

    recorded = phase(state, "gate")
    assert recorded.reason == "none of 2 scored passages reaches theta 0.3; the best has 0.1"
    assert (recorded.facts["kept"], recorded.facts["best"]) == (0, 0.1)
    assert "lara calibrate" in str(recorded.facts["remedy"])
    assert [passage.id for passage in state.best] == [passage.id for passage in many(2)]


def test_the_budget_counts_from_the_querys_start() -> None:
    time = FakeTime()
    state = QueryState(clock=QueryClock(2.0, now=time))
    time.seconds += 1.5
    plan = run_budget(state, many(20), LatencyGovernor(PerChunkLatency(0.1)))
    assert plan.sent == 5
    assert phase(state, "budget").facts["time_left"] == 0.5


def test_an_exhausted_budget_says_why() -> None:
    time = FakeTime()
    state = QueryState(clock=QueryClock(2.0, now=time))
    time.seconds += 3.0
    assert run_budget(state, many(20), LatencyGovernor()).sent == 0
    assert state.empty_reason is not None
    assert "afford more time" in state.empty_reason
    assert len(state.best) == 3


def test_a_passage_sent_over_budget_is_exempt_from_the_check() -> None:
    time = FakeTime()
    state = QueryState(clock=QueryClock(2.0, now=time))
    time.seconds += 3.0
    passages = many(20)
    plan = run_budget(state, passages, LatencyGovernor(on_exhausted="send_best"))
    assert (plan.sent, plan.over_budget) == (1, True)
    time_left, seconds_for = asking_time(state, passages[:1], PerChunkLatency())
    assert (time_left, seconds_for(passages[:1])) == (math.inf, 0.0)


def test_refine_stops_when_complete_for_single_values_only() -> None:
    # Twenty passages do not fit one call; a listing is refined to its end.
    state = QueryState()
    answer_loop(state, "List all the passages.", many(20), PerChunkLatency())
    assert phase(state, "route").facts["regime"] == "refine"


def test_passages_that_a_later_part_has_added_are_routed_too() -> None:
    scorer = CallableScorer(lambda q, texts: [0.9] * len(texts), score_kind="probability")
    state, passages = QueryState(), many(4)
    run_gate(state, "q", passages[:3], scorer, ThresholdGate())
    _, chosen = run_route(state, "What is a tower?", passages)
    assert chosen.regime == "sequential"


def test_an_abstention_names_the_part_that_took_the_passages() -> None:
    scorer = CallableScorer(lambda q, texts: [0.9] * len(texts), score_kind="probability")
    gated = QueryState()
    run_gate(gated, "q", many(4), scorer, ThresholdGate())
    assert "the gate kept 4 passages and none was left after it" in abstain(gated).text
    retrieved = QueryState()
    retrieved.trace.record("retrieval", "7 passages were retrieved", 0.0, found=7)
    run_gate(retrieved, "q", [], scorer, ThresholdGate())
    assert "7 passages were retrieved and none was left to answer from" in abstain(retrieved).text


class Reads:
    """An LLM that finds the answer in one call over several passages, and never in one alone."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def __call__(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        if len(ask.passages) == 1:
            return Reply(json.dumps({"answer_found": False}))
        text = ask.passages[0].passage.text
        reply = {"answer_found": True, "complete_answer_found": True, "value": text, "confidence": 0.9}
        return Reply(json.dumps({**reply, "evidence": [{"passage": 1, "quote": text}]}))


def kept_by_a_gate(on_empty: OnEmpty | None, theta: float) -> QueryState:
    state = QueryState()
    scorer = CallableScorer(lambda query, texts: [0.5] * len(texts), "probability")
    run_gate(state, LOOKUP, PASSAGES[:3], scorer, ThresholdGate(theta, on_empty=on_empty))
    state.scores = {}  # equal scores would be read together
    return state


def test_an_exhausted_answer_escalates_over_passages_that_the_gate_kept() -> None:
    reads = Reads()
    state = kept_by_a_gate(None, 0.3)
    answer = drive(answer_loop(state, LOOKUP, PASSAGES[:3], escalate=True), reads)
    assert [len(ask.passages) for ask in reads.asks] == [1, 1, 1, 3]
    assert (answer.outcome, answer.escalated) == ("sufficient", True)
    record_answer(state, answer)
    assert phase(state, "answer").facts["escalated"] is True
    assert any(note.startswith("escalated") for note in state.trace.notes)


@pytest.mark.parametrize(
    ("state", "limits"),
    [
        (lambda: kept_by_a_gate("keep_best", 0.9), DEFAULT_LIMITS),
        (QueryState, Limits(passages_per_call=2)),
        (QueryState, Limits(tokens_per_call=5)),
        (QueryState, Limits(sequential_calls=3)),
        (QueryState, Limits(sequential_tokens=150)),
    ],
    ids=["kept below theta", "too many for one call", "too long for one call", "calls", "tokens"],
)
def test_an_exhausted_answer_does_not_escalate(state: Callable[[], QueryState], limits: Limits) -> None:
    reads = Reads()
    answer = drive(answer_loop(state(), LOOKUP, PASSAGES[:3], limits=limits, escalate=True), reads)
    assert not answer.escalated
    assert all(len(ask.passages) == 1 for ask in reads.asks)


def test_budget_exits_of_the_table_end_a_sequential_answer() -> None:
    state = QueryState()
    limits = Limits(sequential_calls=2)
    answer = drive(answer_loop(state, LOOKUP, PASSAGES[:3], limits=limits), Reads())
    assert (answer.calls, answer.outcome) == (2, "budget")
    assert phase(state, "route").facts["max_calls"] == 2
    assert phase(state, "route").facts["max_tokens"] is None


def test_a_parser_of_ones_own_routes_the_question() -> None:
    english = load_lexicon("en").with_rules(Rule("towers", "{word} towers", answer_shape="entity"))
    state = QueryState()
    answer_loop(state, LISTING, PASSAGES[:3], parser=QuestionParser([english]))
    assert phase(state, "route").facts["parsed_by"] == "towers"
    assert phase(state, "route").facts["regime"] == "sequential"
