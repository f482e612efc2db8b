from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import Score
from lara_plugins.question import (
    DEFAULT_LIMITS,
    SINGLE_VALUES,
    AnswerShape,
    Decomposition,
    Limits,
    QuestionShape,
    Regime,
    parse_question,
    route,
    tight_count,
)

ANSWER_SHAPES: tuple[AnswerShape, ...] = get_args(AnswerShape)
DECOMPOSITIONS: tuple[Decomposition, ...] = get_args(Decomposition)


def shape(answer: AnswerShape, parts: Decomposition = "single") -> QuestionShape:
    return QuestionShape(answer, parts, "en", "a-rule", (0, 1))


def spread(count: int) -> list[Score]:
    """Scores that are easily told apart."""
    return [Score.from_logit(5.0 - i) for i in range(count)]


def equal(count: int) -> list[Score]:
    return [Score.from_logit(2.0)] * count


@pytest.mark.parametrize("answer", ANSWER_SHAPES)
def test_one_value_is_read_passage_by_passage_and_the_rest_together(answer: AnswerShape) -> None:
    expected = "sequential" if answer in SINGLE_VALUES else "batch"
    assert route(shape(answer), spread(4), [100] * 4).regime == expected


@pytest.mark.parametrize("parts", ["several_asks", "multi_hop"])
def test_more_than_a_single_ask_is_read_together(parts: Decomposition) -> None:
    assert route(shape("date", parts), spread(2)).regime == "batch"


@pytest.mark.parametrize(
    ("passages", "tokens_each", "regime"),
    [(10, 600, "batch"), (11, 1, "refine"), (10, 601, "refine"), (1, 6_001, "refine"), (0, 0, "batch")],
)
def test_together_is_one_call_where_it_fits(passages: int, tokens_each: int, regime: Regime) -> None:
    chosen = route(shape("list"), spread(passages), [tokens_each] * passages)
    assert chosen.regime == regime


def test_sequential_needs_no_call_that_holds_everything() -> None:
    assert route(shape("date"), spread(50), [5_000] * 50).regime == "sequential"


def test_three_scores_that_cannot_be_told_apart_are_read_together() -> None:
    assert route(shape("date"), equal(3), [10] * 3).regime == "batch"
    assert route(shape("date"), equal(2), [10] * 2).regime == "sequential"
    assert route(shape("date"), equal(11), [10] * 11).regime == "refine"


def test_good_scores_are_not_close_because_a_sigmoid_saturates() -> None:
    good = [Score.from_logit(logit) for logit in (8.0, 6.0, 4.0)]
    assert min(score.value for score in good) > 0.95 * max(score.value for score in good)
    assert route(shape("date"), good).regime == "sequential"


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=30), st.floats(0.0, 0.9))
def test_close_is_a_distance_of_logits(logits: list[float], share: float) -> None:
    reach = -math.log(1.0 - share)
    distances = [max(logits) - logit for logit in logits]
    clearly = sum(distance < reach - 1e-3 for distance in distances)
    possibly = sum(distance <= reach + 1e-3 for distance in distances)
    assert clearly <= tight_count([Score.from_logit(logit) for logit in logits], share) <= possibly


def test_certain_probabilities_are_equal() -> None:
    assert tight_count([Score.from_probability(p) for p in (1.0, 1.0, 0.999)], 0.05) == 2
    assert tight_count([Score.from_probability(0.0)] * 3, 0.05) == 3
    assert tight_count([], 0.05) == 0


@given(
    st.sampled_from(ANSWER_SHAPES),
    st.sampled_from(DECOMPOSITIONS),
    st.lists(st.tuples(st.floats(-20, 20), st.integers(0, 5_000)), max_size=20),
    st.integers(1, 20),
    st.integers(1, 20_000),
)
def test_every_shape_has_a_route_that_keeps_the_limits(
    answer: AnswerShape, parts: Decomposition, kept: list[tuple[float, int]], passages: int, tokens: int
) -> None:
    limits = Limits(passages_per_call=passages, tokens_per_call=tokens)
    counts = [count for _, count in kept]
    chosen = route(shape(answer, parts), [Score.from_logit(logit) for logit, _ in kept], counts, limits)
    fits = len(counts) <= passages and sum(counts) <= tokens
    assert chosen.regime != ("refine" if fits else "batch")
    assert chosen.reason.endswith(".")
    assert "\n" not in chosen.reason


def test_the_reason_is_a_sentence_with_the_numbers() -> None:
    reason = route(shape("list"), spread(12), [700] * 12).reason
    assert reason == (
        "The answer is gathered: shape list (rule a-rule), and 12 passages of 8400 tokens "
        "do not fit one call of 10 passages and 6000 tokens."
    )


def test_the_table_can_be_replaced() -> None:
    limits = replace(DEFAULT_LIMITS, one_passage=SINGLE_VALUES | {"procedure"})
    assert route(shape("procedure"), spread(3), limits=limits).regime == "sequential"
    assert route(shape("procedure"), spread(3)).regime == "batch"


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("passages_per_call", lambda: Limits(passages_per_call=0)),
        ("tokens_per_call", lambda: Limits(tokens_per_call=-1)),
        ("tight_minimum", lambda: Limits(tight_minimum=0)),
        ("tight_share", lambda: Limits(tight_share=5)),
        ("tight_share", lambda: Limits(tight_share=math.nan)),
    ],
)
def test_a_wrong_limit_is_refused(argument: str, make: Callable[[], Limits]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "values",
    [
        {"passages_per_call": 1.5},
        {"tokens_per_call": math.nan},
        {"tight_minimum": "3"},
        {"sequential_calls": 2.5},
        {"one_passage": {"date"}},
        {"one_passage": frozenset({"dat"})},
    ],
)
def test_a_limit_of_the_wrong_kind_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(values))):
        Limits(**values)


@pytest.mark.parametrize("tokens", [[1], [1, 2, -3]])
def test_token_counts_must_belong_to_the_scores(tokens: list[int]) -> None:
    with pytest.raises(InvalidArgument, match="tokens"):
        route(shape("list"), spread(3), tokens)


def test_the_decision_is_logged_without_the_question(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lara_plugins.question"):
        route(parse_question("Which zebras are striped?"), spread(2), [5, 6])
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "regime=batch" in record.getMessage()
    assert "tokens=11" in record.getMessage()
    assert "zebra" not in record.getMessage()


def test_budget_exits_are_chosen_at_dispatch() -> None:
    limits = Limits(sequential_calls=3, sequential_tokens=900)
    chosen = route(shape("date"), spread(5), limits=limits)
    assert (chosen.regime, chosen.max_calls, chosen.max_tokens) == ("sequential", 3, 900)
    together = route(shape("list"), spread(5), limits=limits)
    assert (together.regime, together.max_calls, together.max_tokens) == ("batch", None, None)
    assert (route(shape("date")).max_calls, route(shape("date")).max_tokens) == (None, None)


def test_a_wrong_budget_exit_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="sequential_calls=0"):
        Limits(sequential_calls=0)
    with pytest.raises(InvalidArgument, match="sequential_tokens=-1"):
        Limits(sequential_tokens=-1)


def test_the_log_line_is_structured(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lara_plugins.question"):
        route(parse_question("When is it due?"), spread(2), [5, 6], Limits(sequential_calls=4))
    (record,) = caplog.records
    line = record.getMessage().removeprefix("route ")
    assert dict(pair.split("=") for pair in line.split()) == {
        "regime": "sequential",
        "rule": "one-passage",
        "shape": "date",
        "decomposition": "single",
        "language": "en",
        "parsed_by": "when",
        "passages": "2",
        "tokens": "11",
        "max_calls": "4",
        "max_tokens": "None",
    }


def test_before_retrieval_the_shape_alone_decides() -> None:
    assert route(shape("date")).reason == (
        "One passage can hold the one date that is asked for (rule a-rule), so the passages are read "
        "best first, one a call."
    )
    assert route(shape("list")).reason == "The answer is gathered: shape list (rule a-rule)."
