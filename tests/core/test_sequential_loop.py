"""The sequential loop: one passage at a time, up to the first whole answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import NOT_FOUND, Script, found, passages

from lara_plugins import (
    Ask,
    InvalidArgument,
    Reply,
    answer_sequentially,
    drive,
)


def test_sequential_stops_at_found_and_complete() -> None:
    script = Script(NOT_FOUND, found("Fact 2", (2, "Fact 2 is written here.")))
    answer = drive(answer_sequentially("q", passages(5)), script)
    assert (answer.calls, answer.outcome, answer.text) == (2, "sufficient", "Fact 2 [2]")
    assert [len(ask.passages) for ask in script.asks] == [1, 1]
    assert not any(ask.last for ask in script.asks)


def test_sequential_keeps_the_best_incomplete_answer() -> None:
    script = Script(
        found("a", (1, "Fact 1"), complete=False, confidence=0.4),
        found("b", (2, "Fact 2"), complete=False, confidence=0.8),
        NOT_FOUND,
    )
    answer = drive(answer_sequentially("q", passages(3)), script)
    assert (answer.outcome, answer.evidence.value) == ("exhausted", "b")


def test_not_found_is_an_answer() -> None:
    answer = drive(answer_sequentially("q", passages(2)), Script(NOT_FOUND, NOT_FOUND))
    assert answer.outcome == "exhausted"
    assert not answer.evidence.answer_found
    assert answer.text == "No answer was found in the 2 passages."


def test_sequential_has_a_budget_of_calls() -> None:
    answer = drive(answer_sequentially("q", passages(5), max_calls=2), Script(NOT_FOUND, NOT_FOUND))
    assert (answer.calls, answer.outcome) == (2, "budget")
    with pytest.raises(InvalidArgument, match="max_calls=0"):
        drive(answer_sequentially("q", passages(5), max_calls=0), Script())


@given(st.integers(1, 12), st.integers(1, 12))
def test_sequential_has_a_budget_of_tokens(n: int, affordable: int) -> None:
    def call(ask: Ask) -> Reply:
        return Reply(NOT_FOUND)

    loop = answer_sequentially("q", passages(n), max_tokens=affordable * 5, count_tokens=lambda text: 5)
    answer = drive(loop, call)
    assert answer.calls == min(n, affordable)
    assert answer.outcome == ("exhausted" if n <= affordable else "budget")


def test_a_wrong_budget_of_tokens_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="max_tokens=0"):
        drive(answer_sequentially("q", passages(5), max_tokens=0), Script())
