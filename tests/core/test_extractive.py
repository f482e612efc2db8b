"""The extractive reader: which sentences answer, and when none does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lara_plugins.answering.answer_types import ABSENT, CLEAR, WEAK, AnswerKind, expected_kind, holds
from lara_plugins.answering.extractive import ExtractiveReader
from lara_plugins.answering.overlap import coverage, read_question, stem, term_weights
from lara_plugins.errors import InvalidArgument, ScoreError
from lara_plugins.gate import Block, ScoreKind, load_scorer
from lara_plugins.passages import Passage
from lara_plugins.question import AnswerShape, QuestionShape

pytest.importorskip("onnxruntime", reason="the embedded scorer needs lara-plugins[embedded]")

TOWER = Passage(
    "tower",
    "The Old Tower stands above the harbour of Lindow. The tower was built by Edith Marsh in 1887. "
    "Its walls are two metres thick and rise 41 metres. Visitors climb 212 steps to the lamp. "
    "The lamp was switched off in 1979, because ships had radar by then.",
    heading="Old Tower (Lindow)",
)
BRIDGE = Passage(
    "bridge",
    "The bridge over the Wend is made of oak. Farmers use it at harvest time.",
    heading="Wend bridge",
)
FEES = Passage(
    "fees",
    "# Fees\n\nThe card has three fees:\n\n- a yearly fee of 30 euros\n- a foreign exchange fee of 2 %\n"
    "- a cash fee of 5 euros\n\nThe hotline is open on weekdays.\n",
    heading="Card handbook",
)


@pytest.fixture(scope="module")
def reader() -> ExtractiveReader:
    return ExtractiveReader(load_scorer("embedded"))


def shaped(shape: AnswerShape) -> QuestionShape:
    return QuestionShape(shape, "single", "en", "given", (0, 0))


def test_a_date_question_gets_the_sentence_with_the_date(reader: ExtractiveReader) -> None:
    answer = reader.read("When was the Old Tower built?", [BRIDGE, TOWER])
    assert answer.answer_found
    assert answer.evidence[0].quote == "The tower was built by Edith Marsh in 1887."
    assert answer.value.startswith("The tower was built by Edith Marsh in 1887. [2]")


def test_a_person_and_a_number_are_found(reader: ExtractiveReader) -> None:
    assert "Edith Marsh" in reader.read("Who built the Old Tower?", [TOWER]).value
    assert "212" in reader.read("How many steps lead to the lamp of the Old Tower?", [TOWER]).value


def test_a_single_value_has_two_sentences_at_most_and_a_list_more(reader: ExtractiveReader) -> None:
    single = reader.read("How high is the foreign exchange fee of the card?", [FEES], shaped("amount"))
    several = reader.read("Which fees does the card have?", [FEES], shaped("list"))
    assert len(single.evidence) <= 2
    assert "foreign exchange fee of 2 %" in single.value
    assert "has three fees:" not in single.value
    assert [span.start for span in several.evidence] == sorted(span.start for span in several.evidence)
    assert all(fee in several.value for fee in ("30 euros", "2 %", "5 euros"))
    assert not several.complete_answer_found


def test_passages_are_cited_by_the_given_numbers(reader: ExtractiveReader) -> None:
    answer = reader.read("When was the Old Tower built?", [BRIDGE, TOWER], numbers=[4, 9])
    assert "[9]" in answer.value
    with pytest.raises(InvalidArgument, match="numbers"):
        reader.read("When was it built?", [TOWER], numbers=[1, 2])
    with pytest.raises(InvalidArgument, match="numbers"):
        reader.read("When was it built?", [TOWER], numbers=[0])


@pytest.mark.parametrize(
    "question", ["Who won the chess championship of 1954 in Havana?", "How do I reset my router password?"]
)
def test_nothing_answers(reader: ExtractiveReader, question: str) -> None:
    answer = reader.read(question, [TOWER, BRIDGE])
    assert (answer.answer_found, answer.value, answer.evidence) == (False, "", ())
    assert answer.confidence < reader.min_confidence
    assert answer.caveats


@pytest.mark.parametrize("passages", [[], [Passage("blank", " \n\t ")], [Passage("rule", "---\n\n***")]])
def test_nothing_to_read(reader: ExtractiveReader, passages: list[Passage]) -> None:
    answer = reader.read("When was it built?", passages)
    assert not answer.answer_found
    assert answer.confidence == 0.0


def test_an_empty_question_and_a_confidence_out_of_range_are_refused(reader: ExtractiveReader) -> None:
    with pytest.raises(InvalidArgument, match="question"):
        reader.read("  ", [TOWER])
    with pytest.raises(InvalidArgument, match="min_confidence"):
        ExtractiveReader(reader.scorer, min_confidence=1.5)


def test_a_sentence_far_into_a_long_passage_is_found(reader: ExtractiveReader) -> None:
    filler = "Gulls nest on the roof of the customs house every spring. " * 200
    long = Passage("long", filler + TOWER.text + " " + filler, heading=TOWER.heading)
    answer = reader.read("Who built the Old Tower?", [long])
    assert "Edith Marsh" in answer.value
    assert any("not weighed" in caveat for caveat in answer.caveats)


def test_a_question_of_20_000_characters_is_read_in_part_and_says_so(reader: ExtractiveReader) -> None:
    answer = reader.read("When was the Old Tower built? " * 700, [TOWER])
    assert any("characters of the question" in caveat for caveat in answer.caveats)


def test_the_same_sentence_twice_is_given_once(reader: ExtractiveReader) -> None:
    copy = Passage("copy", TOWER.text, heading=TOWER.heading)
    quotes = [span.quote for span in reader.read("When was the Old Tower built?", [TOWER, copy]).evidence]
    assert len(quotes) == len(set(quotes))


texts = st.lists(
    st.sampled_from(
        [
            "It was built in 1887. ",
            "今日は雨です。",
            "\n",
            "# Head\n",
            "- item\n",
            "```",
            "| a |\n",
            "Dr. ",
            "U.S. ",
        ]
    )
    | st.text(max_size=12),
    max_size=12,
).map("".join)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(min_size=1, max_size=60).filter(str.strip),
    st.lists(texts, max_size=4),
    st.sampled_from([0.0, 0.5]),
)
def test_spans_are_verbatim_whatever_the_text(question: str, contents: list[str], least: float) -> None:
    passages = [Passage(str(i), text) for i, text in enumerate(contents)]
    answer = ExtractiveReader(load_scorer("embedded"), min_confidence=least).read(question, passages)
    by_id = {passage.id: passage.text for passage in passages}
    assert all(by_id[s.passage_id][s.start : s.end] == s.quote for s in answer.evidence)
    assert answer.answer_found == bool(answer.evidence) == bool(answer.value)
    assert all(1 <= int(n) <= len(passages) for n in re.findall(r"\[(\d+)\]$", answer.value))


def test_one_reader_serves_many_threads(reader: ExtractiveReader) -> None:
    questions = ["When was the Old Tower built?", "Who built the Old Tower?"] * 4
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda question: reader.read(question, [TOWER, BRIDGE]), questions))
    assert together == [reader.read(question, [TOWER, BRIDGE]) for question in questions]


class Constant:
    """A scorer that gives every text the same raw score, and may give too few."""

    name = None
    scale_known = False
    fingerprint = "constant"

    def __init__(self, raw: float, kind: ScoreKind, missing: int = 0) -> None:
        self.raw, self.score_kind, self.missing = raw, kind, missing

    def load(self) -> None:
        pass

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        yield Block(self.score(query, texts))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [self.raw] * (len(texts) - self.missing)


def test_logits_and_probabilities_of_a_user_s_scorer_mean_the_same() -> None:
    question = "When was the Old Tower built?"
    by_logit = ExtractiveReader(Constant(0.0, "logit")).read(question, [TOWER])
    assert by_logit == ExtractiveReader(Constant(0.5, "probability")).read(question, [TOWER])
    assert ExtractiveReader(Constant(1.0, "probability")).read(question, [TOWER]).answer_found


@pytest.mark.parametrize(
    "scorer", [Constant(float("nan"), "logit"), Constant(1.5, "probability"), Constant(0, "logit", 1)]
)
def test_what_is_no_score_is_refused(scorer: Constant) -> None:
    with pytest.raises(ScoreError):
        ExtractiveReader(scorer).read("When was it built?", [TOWER])


@pytest.mark.parametrize(
    ("sentence", "kind", "expected"),
    [
        ("It opened in 1887.", "date", CLEAR),
        ("It opens on 2024-05-01.", "date", CLEAR),
        ("It opens in March.", "date", WEAK),
        ("It opens soon, as it may.", "date", ABSENT),
        ("It costs $30 a year.", "quantity", CLEAR),
        ("There are twelve.", "number", CLEAR),
        ("There are many.", "number", ABSENT),
        ("Claims are paid within three working days.", "duration", CLEAR),
        ("Built by Edith Marsh.", "person", CLEAR),
        ("built by Edith.", "person", WEAK),
        ("built by farmers.", "person", ABSENT),
        ("It stands near Lindow.", "place", CLEAR),
        ("It was closed because ships had radar.", "reason", CLEAR),
        ("2019年に開業した。", "date", CLEAR),
        ("Anything.", "any", ABSENT),
    ],
)
def test_kinds_of_value(sentence: str, kind: AnswerKind, expected: float) -> None:
    assert holds(sentence, kind) == expected


def test_what_the_question_says_itself_is_no_answer() -> None:
    assert holds("In 1887 it burned.", "date", {"in", "1887"}) == ABSENT
    assert holds("built by Edith Marsh", "person", {"edith", "marsh"}) == ABSENT


def test_the_question_word_refines_an_entity_and_the_shape_decides_else() -> None:
    assert expected_kind("Who built it?", "entity") == "person"
    assert expected_kind("Where is it?", "unknown") == "place"
    assert expected_kind("Who is entitled, and for how much?", "amount") == "quantity"
    assert expected_kind("Who are the members?", "list") == "any"


def test_term_weights_sum_to_one_and_rare_terms_weigh_more() -> None:
    weights = term_weights(("steps", "towers"), [{"towers"}, {"towers", "steps"}, {"towers"}])
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["steps"] > weights["towers"]
    assert coverage(weights, {"steps"}, {"towers"}) == pytest.approx(1)


def test_forms_of_a_word_share_a_stem_and_names_and_numbers_are_told_apart() -> None:
    assert stem("established") == stem("establish")
    assert stem("cities") == stem("city")
    assert stem("1990s") == "1990"
    asked = read_question("Did Marsh not climb 212 steps?", "boolean")
    assert asked.negated
    assert asked.numbers == {"212"}
    assert asked.names == {"marsh"}


def test_a_list_items_bullet_or_number_is_not_part_of_the_answer(reader: ExtractiveReader) -> None:
    text = "The tower has three limits:\n\n1. It may not sway.\n2. It may not lean.\n- It may not rust.\n"
    answer = reader.read(
        "What are the limits of the tower?", [Passage("p", text, heading="Limits of the tower")]
    )
    assert answer.answer_found
    for span in answer.evidence:
        assert text[span.start : span.end] == span.quote
        assert not span.quote.startswith(("1.", "2.", "-"))
