"""The five phases end to end, over an index on disk."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from towers import COMPARISON, LISTING, LOOKUP, PASSAGES, UNANSWERABLE

from lara_plugins import (
    Answer,
    EmbeddedIndex,
    ExtractiveModel,
    ExtractiveReader,
    InvalidArgument,
    Lexicon,
    Limits,
    Outcome,
    Passage,
    Pipeline,
    QueryClock,
    QueryState,
    QuestionParser,
    load_scorer,
)
from lara_plugins.phases import arun_retrieval
from lara_plugins.trace import Fact


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    scorer = load_scorer("embedded")
    with EmbeddedIndex(tmp_path / "index") as index:
        index.upsert(PASSAGES)
        yield Pipeline(index, scorer, ExtractiveModel(ExtractiveReader(scorer)), afford=600.0)


def outcome_of(pipeline: Pipeline, question: str) -> tuple[Outcome, Answer]:
    outcome = pipeline.ask(question)
    return outcome, outcome.answer


def test_a_lookup_end_to_end(pipeline: Pipeline) -> None:
    outcome, answer = outcome_of(pipeline, LOOKUP)
    assert "330 metres" in outcome.text
    assert answer.outcome == "sufficient"
    for number, spans in answer.citations.items():
        text = outcome.sources[number - 1].text
        assert all(text[span.start : span.end] == span.quote for span in spans)
    assert [one.name for one in outcome.trace.phases] == ["retrieval", "gate", "budget", "route", "answer"]


def test_regimes_follow_the_question(pipeline: Pipeline) -> None:
    regimes = {}
    for question in (LOOKUP, LISTING, COMPARISON):
        route = pipeline.ask(question).trace.last("route")
        assert route is not None
        regimes[question] = route.facts["regime"]
    assert regimes == {LOOKUP: "sequential", LISTING: "batch", COMPARISON: "batch"}


def test_an_unanswerable_question_is_not_asked(pipeline: Pipeline) -> None:
    outcome, answer = outcome_of(pipeline, UNANSWERABLE)
    assert answer.calls == 0
    assert outcome.text.startswith("No answer: none of 12 scored passages reaches theta 0.3")
    assert len(outcome.sources) == 3


def test_an_empty_corpus_is_said_to_be_empty(tmp_path: Path, pipeline: Pipeline) -> None:
    with EmbeddedIndex(tmp_path / "empty") as index:
        outcome = Pipeline(index, pipeline.scorer, pipeline.model).ask(LOOKUP)
    assert "the index holds no passage" in outcome.text


def test_a_question_of_twenty_thousand_characters(pipeline: Pipeline) -> None:
    assert pipeline.ask(LOOKUP + " Please." * 2500).text


@pytest.mark.parametrize("question", ["", "  ", "\n"])
def test_an_empty_question_is_refused(pipeline: Pipeline, question: str) -> None:
    with pytest.raises(InvalidArgument, match="question="):
        pipeline.ask(question)


@pytest.mark.parametrize("afford", [0, -1.0, math.nan, math.inf, True, "4"])
def test_afford_is_a_positive_number_of_seconds(afford: float) -> None:
    with pytest.raises(InvalidArgument, match="afford="):
        QueryClock(afford)


def test_the_strictest_of_several_deadlines_counts() -> None:
    clock = QueryClock(4.0)
    clock.allow(9.0)
    assert clock.afford == 4.0
    clock.allow(2.0)
    assert clock.afford == 2.0


def test_a_trace_is_plain_json(pipeline: Pipeline) -> None:
    trace = pipeline.ask(LISTING).trace.to_dict()
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace
    without_deadline = Pipeline(pipeline.index, pipeline.scorer, pipeline.model).ask(LISTING).trace
    json.dumps(without_deadline.to_dict(), allow_nan=False)


def test_nothing_that_was_asked_or_read_is_logged(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for question in (LOOKUP, LISTING, UNANSWERABLE):
        pipeline.ask(question)
    for secret in (LOOKUP, LISTING, UNANSWERABLE, "330 metres"):
        assert secret not in caplog.text


async def test_counting_the_index_does_not_block_the_event_loop(pipeline: Pipeline) -> None:
    loop_thread = threading.get_ident()
    counted_in: list[int] = []

    class Watched(EmbeddedIndex):
        def count(self) -> int:
            counted_in.append(threading.get_ident())
            return super().count()

    folder = pipeline.index.path.parent / "watched"  # type: ignore[attr-defined]
    with Watched(folder) as index:
        index.upsert(PASSAGES)
        counted_in.clear()
        assert await arun_retrieval(QueryState(), LOOKUP, index)
    assert loop_thread not in counted_in


def test_a_footnote_in_the_text_is_no_citation(tmp_path: Path, pipeline: Pipeline) -> None:
    text = "The Eiffel Tower is 330 metres tall.[2] It was completed in 1889."
    with EmbeddedIndex(tmp_path / "footnotes") as index:
        index.upsert([Passage("p", text, heading="Eiffel Tower")])
        outcome = Pipeline(index, pipeline.scorer, pipeline.model).ask(LOOKUP)
    assert "[2]" not in outcome.text
    assert "[1]" in outcome.text
    assert outcome.answer.evidence.evidence[0].quote in text
    assert not outcome.answer.evidence.caveats


def test_the_pipeline_takes_table_and_parser(pipeline: Pipeline) -> None:
    listing = replace(pipeline, limits=Limits(one_passage=frozenset({"list"}), tight_minimum=20))
    assert facts_of(listing.ask(LISTING), "route")["regime"] == "sequential"
    nothing = replace(pipeline, parser=QuestionParser([Lexicon("en", ())]))
    assert facts_of(nothing.ask(LOOKUP), "route")["rule"] == "unknown-shape"


def facts_of(outcome: Outcome, name: str) -> Mapping[str, Fact]:
    found = outcome.trace.last(name)
    assert found is not None
    return found.facts
