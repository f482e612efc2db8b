"""The answering loops: replies are sent, asks are read; no framework, no clock, no LLM."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import NOT_FOUND, Script, found, passages, step

from lara_plugins import (
    Answer,
    Ask,
    InvalidArgument,
    Passage,
    Reply,
    Usage,
    answer_in_one_call,
    answer_sequentially,
    drive,
    refine_in_threes,
)
from lara_plugins.answering import Loop


def cites(ask: Ask) -> str:
    number = ask.passages[0].number
    return step(True, f"So far [{number}]", False, (number, f"Fact {number} is written here."))


@given(st.integers(0, 40), st.integers(1, 7))
def test_refine_makes_one_call_a_window(n: int, window: int) -> None:
    asks: list[Ask] = []

    def call(ask: Ask) -> Reply:
        asks.append(ask)
        return Reply(cites(ask))

    answer = drive(refine_in_threes("q", passages(n), window=window), call)
    assert answer.calls == len(asks) == math.ceil(n / window)
    assert [item.number for ask in asks for item in ask.passages] == list(range(1, n + 1))
    assert [ask.last for ask in asks] == [False] * (len(asks) - 1) + [True] * bool(asks)
    assert answer.outcome == ("complete" if n else "no_passages")


def test_refine_hands_each_answer_to_the_next_window() -> None:
    script = Script(
        step(True, "One [1]", False, (1, "Fact 1 is written here.")),
        step(True, "One [1] and five [5]", False, (5, "Fact 5 is written here.")),
    )
    answer = drive(refine_in_threes("q", passages(6)), script)
    assert script.asks[1].previous.value == "One [1]"
    assert answer.text == "One [1] and five [5]"
    assert set(answer.citations) == {1, 5}


def test_unchanged_keeps_the_earlier_answer_in_code() -> None:
    script = Script(
        step(True, "One [1]", False, (1, "Fact 1 is written here.")),
        json.dumps({"changed": False, "answer": "The original answer is fine.", "complete": True}),
    )
    answer = drive(refine_in_threes("q", passages(6)), script)
    assert answer.evidence.value == "One [1]"
    assert answer.evidence.complete_answer_found
    assert [record.brought for record in answer.trace] == ["changed", "unchanged"]


def test_an_unsupported_change_does_not_replace_a_supported_answer() -> None:
    script = Script(
        step(True, "One [1]", False, (1, "Fact 1 is written here.")),
        step(True, "Made up", False, (4, "No such words.")),
    )
    answer = drive(refine_in_threes("q", passages(6)), script)
    assert answer.evidence.value == "One [1]"
    assert any("removed" in caveat for caveat in answer.evidence.caveats)


def test_stop_when_complete_is_off_unless_asked_for() -> None:
    complete = step(True, "One [1]", True, (1, "Fact 1 is written here."))
    unchanged = json.dumps({"changed": False})
    assert drive(refine_in_threes("q", passages(6)), Script(complete, unchanged)).calls == 2
    stopped = drive(refine_in_threes("q", passages(6), stop_when_complete=True), Script(complete))
    assert (stopped.calls, stopped.outcome) == (1, "sufficient")


@pytest.mark.parametrize("prose", ["The answer is 42.", "{not json", '{"changed": "perhaps"}', "", "[1, 2]"])
def test_an_unreadable_reply_gets_one_repair_ask_counted_apart(prose: str) -> None:
    script = Script(prose, step(True, "One [1]", False, (1, "Fact 1 is written here.")))
    answer = drive(refine_in_threes("q", passages(2)), script)
    assert (answer.calls, answer.repairs, answer.evidence.value) == (1, 1, "One [1]")
    fault = script.asks[1].fault
    assert fault is not None
    assert fault.reply == prose


def test_a_failed_repair_counts_as_unchanged() -> None:
    script = Script(step(True, "One [1]", False, (1, "Fact 1 is written here.")), "prose", "more prose")
    answer = drive(refine_in_threes("q", passages(6)), script)
    assert (answer.calls, answer.repairs, answer.evidence.value) == (2, 1, "One [1]")
    assert any("more prose" in note for note in answer.notes)


def test_a_model_that_never_gives_a_typed_reply_ends_unparsable() -> None:
    for loop in (refine_in_threes("q", passages(2)), answer_in_one_call("q", passages(2))):
        answer = drive(loop, Script("prose", "prose"))
        assert answer.outcome == "unparsable"
        assert "could not be read" in answer.text
    answer = drive(answer_sequentially("q", passages(1)), Script("prose", "prose"))
    assert (answer.outcome, answer.repairs) == ("exhausted", 1)


def test_an_error_of_the_llm_propagates_and_ends_the_loop() -> None:
    def fail(ask: Ask) -> Reply:
        raise ConnectionError("no route to the LLM")

    for loop in (
        refine_in_threes("q", passages(2)),
        answer_sequentially("q", passages(2)),
        answer_in_one_call("q", passages(2)),
    ):
        with pytest.raises(ConnectionError):
            drive(loop, fail)


def test_a_stopiteration_of_the_llm_is_no_end_of_the_loop() -> None:
    def fail(ask: Ask) -> Reply:
        raise StopIteration

    with pytest.raises(StopIteration):
        drive(answer_in_one_call("q", passages(2)), fail)


@given(st.integers(1, 30), st.integers(0, 12), st.floats(0.1, 2))
def test_an_ask_that_does_not_fit_the_time_left_is_not_made(n: int, affordable: int, seconds: float) -> None:
    left = [affordable * seconds * 1.0001]

    def call(ask: Ask) -> Reply:
        left[0] -= seconds
        return Reply(cites(ask), time_left=left[0])

    windows = math.ceil(n / 3)
    answer = drive(refine_in_threes("q", passages(n), left[0], lambda _: seconds), call)
    assert answer.calls == min(windows, affordable)
    if affordable < windows:
        assert answer.outcome == f"stopped_early {affordable}/{windows}"


def test_an_expired_refine_returns_the_last_whole_answer() -> None:
    script = Script(step(True, "One [1]", False, (1, "Fact 1 is written here.")), None)
    answer = drive(refine_in_threes("q", passages(6), 10.0), script)
    assert (answer.outcome, answer.evidence.value) == ("stopped_early 1/2", "One [1]")


def test_with_no_whole_answer_yet_an_expired_call_ends_out_of_time() -> None:
    assert drive(refine_in_threes("q", passages(6), 10.0), Script(None)).outcome == "out_of_time"
    assert drive(answer_in_one_call("q", passages(6), 10.0), Script(None)).outcome == "out_of_time"
    sequential = drive(answer_sequentially("q", passages(6), 10.0), Script(NOT_FOUND, None))
    assert (sequential.outcome, sequential.calls) == ("budget", 2)


def test_one_call_that_does_not_fit_is_not_made() -> None:
    answer = drive(answer_in_one_call("q", passages(3), 0.1, lambda _: 1.0), Script())
    assert (answer.calls, answer.outcome) == (0, "stopped_early 0/1")


def test_a_repair_must_fit_the_time_left_too() -> None:
    script = Script(Reply("prose", time_left=0.2))
    answer = drive(answer_in_one_call("q", passages(1), 2.0, lambda _: 1.0), script)
    assert (answer.calls, answer.repairs, answer.outcome) == (1, 0, "unparsable")
    assert "the unread reply of ask 1: prose" in answer.notes


def test_no_passages_no_asks() -> None:
    for loop in (refine_in_threes("q", []), answer_sequentially("q", []), answer_in_one_call("q", [])):
        answer = drive(loop, Script())
        assert (answer.calls, answer.outcome) == (0, "no_passages")


def test_usage_is_summed_where_the_provider_reports_it() -> None:
    replies = [
        Reply(step(True, "a [1]", False, (1, "Fact 1")), usage=Usage(100, 10)),
        Reply(json.dumps({"changed": False}), usage=Usage(90, 5)),
    ]
    assert drive(refine_in_threes("q", passages(6)), Script(*replies)).usage == Usage(190, 15)
    assert drive(answer_in_one_call("q", passages(1)), Script(NOT_FOUND)).usage is None


def test_citations_are_added_where_the_model_gave_only_quotes() -> None:
    answer = drive(
        answer_in_one_call("q", passages(3)), Script(found("Two facts", (3, "Fact 3"), (1, "Fact 1")))
    )
    assert answer.text == "Two facts [1] [3]"


def test_a_citation_of_what_was_not_sent_is_a_caveat() -> None:
    answer = drive(answer_in_one_call("q", passages(1)), Script(found("So [1] [7]", (1, "Fact 1"))))
    assert "the answer cites [7], which was not sent" in answer.evidence.caveats


def test_windows_too_big_for_the_context_are_split_in_order() -> None:
    asks: list[Ask] = []

    def call(ask: Ask) -> Reply:
        asks.append(ask)
        return Reply(json.dumps({"changed": False}))

    long = [Passage(f"p{n}", f"{n} " + "word " * 60) for n in range(1, 5)]

    def fits(shown: Sequence[Passage]) -> bool:
        return sum(len(passage.text) for passage in shown) <= 200

    answer = drive(refine_in_threes("q", long, fits=fits), call)
    assert answer.calls == len(asks) > 2
    assert all(fits([item.passage for item in ask.passages]) for ask in asks)
    numbers = [item.number for ask in asks for item in ask.passages]
    assert numbers == sorted(numbers)
    texts: dict[int, str] = {}
    for ask in asks:
        for item in ask.passages:
            texts[item.number] = texts.get(item.number, "") + item.passage.text
    assert list(texts.values()) == [passage.text for passage in long]
    assert any("split" in note for note in answer.notes)


def test_one_call_too_big_for_the_context_becomes_windows() -> None:
    def fits(shown: Sequence[Passage]) -> bool:
        return len(shown) <= 2

    answer = drive(answer_in_one_call("q", passages(6), fits=fits), lambda ask: Reply(cites(ask)))
    assert answer.calls == 3


def test_a_quote_of_a_cut_passage_is_found_in_the_whole_one() -> None:
    long = Passage("p", "left words here. " + "right words there.")

    def fits(shown: Sequence[Passage]) -> bool:
        return sum(len(passage.text) for passage in shown) <= 20

    def call(ask: Ask) -> Reply:
        return Reply(
            step(True, "R [1]", False, (1, "right words"))
            if "right" in ask.passages[0].passage.text
            else json.dumps({"changed": False})
        )

    answer: Answer = drive(refine_in_threes("q", [long], fits=fits), call)
    [span] = answer.evidence.evidence
    assert long.text[span.start : span.end] == "right words"


def test_a_window_is_at_least_one_passage() -> None:
    with pytest.raises(InvalidArgument, match="window=0"):
        drive(refine_in_threes("q", passages(2), window=0), Script())


def test_one_call_reads_what_the_time_left_pays_for() -> None:
    script = Script(found("Fact 2 [2]", (2, "Fact 2")))
    answer = drive(answer_in_one_call("q", passages(8), 0.55, lambda shown: 0.1 * len(shown)), script)
    assert [item.number for item in script.asks[0].passages] == [1, 2, 3, 4, 5]
    assert answer.evidence.answer_found
    assert "5 of 8 passages were read: the time left paid for no more" in answer.notes


def test_the_first_window_shrinks_rather_than_answer_nothing() -> None:
    script = Script(Reply(step(True, "One [1]", False, (1, "Fact 1")), time_left=0.0))
    answer = drive(refine_in_threes("q", passages(6), 0.25, lambda shown: 0.1 * len(shown)), script)
    assert [item.number for item in script.asks[0].passages] == [1, 2]
    assert (answer.outcome, answer.evidence.value) == ("stopped_early 1/2", "One [1]")


@pytest.mark.parametrize("loop", [answer_in_one_call, refine_in_threes])
def test_nothing_is_asked_where_not_one_passage_fits(loop: Callable[..., Loop]) -> None:
    answer = drive(loop("q", passages(6), 0.05, lambda shown: 0.1 * len(shown)), Script())
    assert answer.calls == 0
    assert answer.outcome.startswith("stopped_early 0/")
    assert "did not fit the time left" in answer.text


def test_every_loop_shows_an_answer_without_support_and_says_so() -> None:
    unsupported = found("Made up", (1, "No such words."))
    for loop, replies in (
        (answer_in_one_call("q", passages(2)), [unsupported]),
        (answer_sequentially("q", passages(2)), [unsupported, NOT_FOUND]),
        (refine_in_threes("q", passages(2)), [step(True, "Made up", False, (1, "No such words."))]),
    ):
        answer = drive(loop, Script(*replies))
        assert not answer.evidence.answer_found
        assert "without support: Made up" in answer.text
        assert any("removed" in caveat for caveat in answer.evidence.caveats)
