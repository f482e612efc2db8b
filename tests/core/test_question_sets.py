"""The parser on whole sets of questions: the regimes that it gives them, and what its rules need."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins import Lexicon, QuestionParser, QuestionShape, default_lexicons, parse_question
from lara_plugins.question import SINGLE_VALUES

DATA = Path(os.environ.get("LARA_DATA", Path(__file__).parents[2].parent / "shared" / "data"))

QUESTION_WORD = st.sampled_from(
    re.findall(r"\S+", 'how many which what when is the most or and than of who list same cost ? . : "')
)

SETS = Path(__file__).parents[2] / "benchmarks" / "question_sets"
WRITTEN = {file.stem: 0.96 for file in sorted(SETS.glob("*.jsonl"))}
"""The sets that lie beside the benchmark, and the share of their regimes that is right."""


def written(name: str) -> list[dict[str, str]]:
    return read_lines(SETS / f"{name}.jsonl")


def read_lines(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def without_needs(lexicon: Lexicon) -> Lexicon:
    return replace(lexicon, rules=tuple(replace(rule, needs=()) for rule in lexicon.rules))


TRYING_ALL = QuestionParser([without_needs(lexicon) for lexicon in default_lexicons()])


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_rule_needs_only_saves_time(name: str) -> None:
    for row in written(name):
        assert parse_question(row["text"]) == TRYING_ALL.parse(row["text"]), row["text"]


@given(st.lists(QUESTION_WORD, min_size=1))
def test_what_a_rule_needs_only_saves_time_in_any_order(words: list[str]) -> None:
    text = " ".join(words)
    assert parse_question(text, "en") == TRYING_ALL.parse(text, "en")


@pytest.mark.parametrize(("name", "least"), WRITTEN.items())
def test_the_questions_written_for_the_parser_take_their_regime(name: str, least: float) -> None:
    rows = written(name)
    right = sum(regime(parse_question(row["text"])) == row["regime"] for row in rows)
    assert right >= least * len(rows)


def regime(found: QuestionShape) -> str:
    single = found.decomposition == "single" and found.answer_shape in SINGLE_VALUES
    return "sequential" if single else "batch"


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "shapes").is_dir(), reason=f"no data set under {DATA / 'shapes'}")
def test_labelled_questions_take_their_regime() -> None:
    rows = read_lines(DATA / "shapes" / "shapes.jsonl")
    for english, least in ((True, 0.96), (False, 0.9)):
        chosen = [row for row in rows if (row["lang"] == "en") == english]
        right = sum(regime(parse_question(row["text"])) == row["regime"] for row in chosen)
        assert right >= least * len(chosen)
