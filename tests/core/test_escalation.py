"""A sequential answer that is exhausted goes once to one call over all passages, where that is asked for."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scripted import NOT_FOUND, Script, found, passages

from lara_plugins import Reply, answer_sequentially, drive

TOGETHER = found("Facts 1 and 2 [1] [2]", (1, "Fact 1"), (2, "Fact 2"))


def test_an_exhausted_answer_goes_once_to_one_call_where_the_user_asks_for_it() -> None:
    script = Script(NOT_FOUND, NOT_FOUND, NOT_FOUND, TOGETHER)
    answer = drive(answer_sequentially("q", passages(3), escalate=True), script)
    assert [len(ask.passages) for ask in script.asks] == [1, 1, 1, 3]
    assert (answer.calls, answer.outcome, answer.escalated) == (4, "sufficient", True)
    assert answer.text == "Facts 1 and 2 [1] [2]"
    assert any(note.startswith("escalated") for note in answer.notes)
    # Shown once it is accepted, like every sequential answer.
    assert not any(ask.last for ask in script.asks)


def test_escalation_is_off_unless_asked_for() -> None:
    answer = drive(answer_sequentially("q", passages(3)), Script(NOT_FOUND, NOT_FOUND, NOT_FOUND))
    assert (answer.calls, answer.outcome, answer.escalated) == (3, "exhausted", False)


@pytest.mark.parametrize(
    ("replies", "count"),
    [([found("one", (1, "Fact 1"))], 3), ([NOT_FOUND], 1)],
    ids=["sufficient", "there is but one passage"],
)
def test_an_answer_that_is_not_exhausted_over_several_is_not_escalated(
    replies: list[str], count: int
) -> None:
    answer = drive(answer_sequentially("q", passages(count), escalate=True), Script(*replies))
    assert (answer.calls, answer.escalated) == (1, False)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_calls": 3},
        {"max_tokens": 100, "count_tokens": lambda text: 20},
        {"time_left": 1.0, "seconds_for": lambda shown: 0.5 * len(shown)},
        {"fits": lambda shown: len(shown) < 3},
    ],
    ids=["calls", "tokens", "time", "prompt"],
)
def test_escalation_keeps_the_budget(limits: dict[str, Any]) -> None:
    left = limits.get("time_left", math.inf)
    script = Script(
        Reply(found("a", (1, "Fact 1"), complete=False), time_left=left),
        Reply(NOT_FOUND, time_left=left),
        Reply(NOT_FOUND, time_left=left),
    )
    answer = drive(answer_sequentially("q", passages(3), escalate=True, **limits), script)
    assert (answer.calls, answer.outcome, answer.escalated) == (3, "exhausted", False)
    assert answer.evidence.value == "a"
    assert any(note.startswith("not escalated") for note in answer.notes)


def test_the_better_answer_stands_after_an_escalation() -> None:
    incomplete = found("a", (1, "Fact 1"), complete=False, confidence=0.7)
    for reply, value in (
        (NOT_FOUND, "a"),
        (found("b", (2, "Fact 2"), complete=False, confidence=0.4), "a"),
        (found("c", (2, "Fact 2"), complete=False, confidence=0.8), "c"),
    ):
        script = Script(incomplete, NOT_FOUND, reply)
        answer = drive(answer_sequentially("q", passages(2), escalate=True), script)
        assert (answer.outcome, answer.escalated, answer.evidence.value) == ("exhausted", True, value)


def test_an_escalation_that_outlives_the_deadline_leaves_the_answer_before_it() -> None:
    script = Script(found("a", (1, "Fact 1"), complete=False), NOT_FOUND, Reply(None, time_left=0.0))
    answer = drive(answer_sequentially("q", passages(2), 1.0, escalate=True), script)
    assert (answer.outcome, answer.evidence.value, answer.text) == ("budget", "a", "a [1]")


def test_an_escalation_that_cannot_be_read_leaves_the_answer_before_it() -> None:
    script = Script(found("a", (1, "Fact 1"), complete=False), NOT_FOUND, "prose", "prose again")
    answer = drive(answer_sequentially("q", passages(2), escalate=True), script)
    assert (answer.outcome, answer.evidence.value, answer.repairs) == ("exhausted", "a", 1)
