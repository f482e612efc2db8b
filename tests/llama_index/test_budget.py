"""The budget as a node postprocessor: what the time left pays for, and what is said otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from fake_time import FakeTime
from listed_nodes import given, ids
from llama_index.core.llms import LLM
from llama_index.core.schema import TextNode
from llama_index_lara import LaraDecisionEvent, LatencyBudget, RefineInThrees
from recorded_events import recorded_events
from support_traces import facts, lara
from towers import LOOKUP

from lara_plugins import (
    BudgetExhausted,
    Call,
    LatencyModel,
    QueryClock,
)


class PerCall(LatencyModel):
    """A second a call, however many passages it reads."""

    def predict(self, calls: Sequence[Call]) -> float:
        return 1.0 * len(calls)


def test_the_budgets_decision_is_announced(nodes: list[TextNode]) -> None:
    with recorded_events() as events:
        LatencyBudget(afford=900.0, latency=400.0).postprocess_nodes(given(nodes), query_str=LOOKUP)
    [decision] = [event for event in events if isinstance(event, LaraDecisionEvent)]
    assert decision.phase == "budget"
    assert (decision.facts["sent"], decision.facts["reduced"]) == (2, 10)
    assert json.dumps(decision.model_dump(mode="json")["facts"])


@pytest.mark.parametrize(("passed", "sent"), [(0.0, 4), (0.125, 3), (0.25, 2), (0.3, 1), (0.5, 0), (9.0, 0)])
def test_the_budget_sends_what_the_time_left_pays_for(
    nodes: list[TextNode], passed: float, sent: int
) -> None:
    now = FakeTime()
    with QueryClock(now=now):
        now.seconds += passed
        out = LatencyBudget(afford=0.5, latency=0.125).postprocess_nodes(given(nodes), query_str=LOOKUP)
    assert ids(out) == [f"p{n}" for n in range(sent)]


def test_the_strictest_deadline_counts(nodes: list[TextNode]) -> None:
    now = FakeTime()
    for allowed, asked in ((8.0, 2.0), (2.0, 8.0)):
        with QueryClock(afford=allowed, now=now):
            out = LatencyBudget(afford=asked, latency=1.0).postprocess_nodes(given(nodes), query_str=LOOKUP)
        assert ids(out) == ["p0", "p1"]


def spent(afford: float) -> QueryClock:
    """A clock whose time is over."""
    return QueryClock(afford=afford, started=100.0, now=lambda: 200.0)


def test_an_exhausted_budget_abstains(nodes: list[TextNode], llm: LLM) -> None:
    with spent(4.0):
        kept = LatencyBudget().postprocess_nodes(given(nodes), query_str=LOOKUP)
        response = RefineInThrees(llm).synthesize(LOOKUP, kept)
    assert kept == []
    assert facts(response, "budget")["over_budget"] is False
    assert facts(response, "answer")["calls"] == 0
    assert "none of 12 passages fits with -96 s left" in str(response)
    assert "remedy: afford more time" in str(response)
    assert ids(response.source_nodes) == ["p0", "p1", "p2"], "the best passages are still the sources"


def test_an_exhausted_budget_sends_the_best_and_says_so(nodes: list[TextNode], llm: LLM) -> None:
    with spent(4.0):
        kept = LatencyBudget(on_exhausted="send_best").postprocess_nodes(given(nodes), query_str=LOOKUP)
        response = RefineInThrees(llm).synthesize(LOOKUP, kept)
    assert ids(kept) == ["p0"]
    assert facts(response, "budget")["over_budget"] is True
    assert "over budget" in lara(response)["phases"][0]["reason"]
    assert facts(response, "answer")["outcome"] == "complete"
    assert facts(response, "answer")["calls"] == 1
    assert "330" in str(response), "its one ask is exempt from the deadline"


async def test_the_best_passage_over_budget_is_answered_async_and_streamed(
    nodes: list[TextNode], llm: LLM
) -> None:
    with spent(4.0):
        kept = LatencyBudget(on_exhausted="send_best").postprocess_nodes(given(nodes), query_str=LOOKUP)
        assert "330" in str(await RefineInThrees(llm).asynthesize(LOOKUP, kept))
        assert "330" in str(RefineInThrees(llm, streaming=True).synthesize(LOOKUP, kept))


def test_an_exhausted_budget_raises(nodes: list[TextNode]) -> None:
    with spent(4.0), pytest.raises(BudgetExhausted, match=r"the best passage needs 0.1 s and -96 s are left"):
        LatencyBudget(on_exhausted="raise").postprocess_nodes(given(nodes), query_str=LOOKUP)


def test_calls_in_threes_are_told_apart_by_a_latency_model(nodes: list[TextNode]) -> None:
    with QueryClock(afford=2.5, now=FakeTime()):
        one = LatencyBudget(latency=PerCall(), calls="one_call").postprocess_nodes(given(nodes))
        threes = LatencyBudget(latency=PerCall(), calls="in_threes").postprocess_nodes(given(nodes))
    assert (len(one), len(threes)) == (12, 6)
