"""Sentences of a text, as offsets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.answering.sentences import LONGEST_SENTENCE, split_sentences


def quotes(text: str) -> list[str]:
    return [sentence.quote for sentence in split_sentences(text)]


messy_texts = st.lists(
    st.sampled_from(
        [
            "Dr. ",
            "U.S. ",
            "It ",
            "ended",
            ". ",
            "! ",
            "。",
            "\n",
            "\n\n",
            "- ",
            "1. ",
            "```",
            "```py\n",
            "# ",
            "|",
            " ",
            "3.5",
        ]
    )
    | st.text(max_size=8),
    max_size=40,
).map("".join)


@given(messy_texts)
def test_every_sentence_is_verbatim_in_order_and_not_blank(text: str) -> None:
    sentences = split_sentences(text)
    assert all(text[s.start : s.end] == s.quote and s.quote == s.quote.strip() != "" for s in sentences)
    assert all(before.end <= after.start for before, after in itertools.pairwise(sentences))
    assert all(len(s.quote) <= LONGEST_SENTENCE for s in sentences)


@given(messy_texts)
def test_no_letter_or_digit_is_lost(text: str) -> None:
    kept = "".join(quotes(text))
    assert sum(c.isalnum() for c in kept) == sum(c.isalnum() for c in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. We left.", ["It rained.", "We left."]),
        ("Dr. Smith met Mrs. Jones. They talked.", ["Dr. Smith met Mrs. Jones.", "They talked."]),
        ("She lives in the U.S. He does not.", ["She lives in the U.S.", "He does not."]),
        ("The U.S. Army came.", ["The U.S. Army came."]),
        ("Some fruit, e.g. Apples, is red.", ["Some fruit, e.g. Apples, is red."]),
        ("See No. 5 for it. No. It is wrong.", ["See No. 5 for it.", "No.", "It is wrong."]),
        ("It is 3.5 m wide. Fine.", ["It is 3.5 m wide.", "Fine."]),
        ("By J. K. Rowling. Read it.", ["By J. K. Rowling.", "Read it."]),
        ('He said "stop!" and left. "Go." They went.', ['He said "stop!" and left.', '"Go."', "They went."]),
        ("The war ended . It was long .", ["The war ended .", "It was long ."]),
        ("`` Trust God '' . They did .", ["`` Trust God '' .", "They did ."]),
        ("It ended.[12] Nobody knew.", ["It ended.[12]", "Nobody knew."]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
    ],
)
def test_english(text: str, expected: list[str]) -> None:
    assert quotes(text) == expected


def test_marks_of_other_scripts_end_sentences() -> None:
    assert quotes("今日は雨です。明日は晴れ！「本当？」") == ["今日は雨です。", "明日は晴れ！", "「本当？」"]
    assert quotes("यह पहला है। यह दूसरा है।") == ["यह पहला है।", "यह दूसरा है।"]


def test_headings_items_and_rows_stand_alone_and_wrapped_lines_do_not() -> None:
    text = "# Costs\nWrapped\nline. More.\n- one\n- two\n1. First. Then\n| a | b |\n|---|---|\n| 1 | 2 |\nEnd"
    assert quotes(text) == [
        "# Costs",
        "Wrapped\nline.",
        "More.",
        "- one",
        "- two",
        "1. First.",
        "Then",
        "| a | b |",
        "| 1 | 2 |",
        "End",
    ]


def test_fenced_code_is_one_piece() -> None:
    assert quotes("Run this.\n```sh\nmake it. Now.\n\nmake that\n```\nDone.") == [
        "Run this.",
        "```sh\nmake it. Now.\n\nmake that\n```",
        "Done.",
    ]


def test_the_rest_of_a_block_that_was_cut_by_a_chunker_does_not_turn_prose_into_code() -> None:
    text = "x = 1\n```\n\nSet the rate. Then train.\n\n```python\ntrain(1)\n```\n"
    assert "Set the rate." in quotes(text)
    assert quotes(text)[-1] == "```python\ntrain(1)\n```"


def test_text_without_an_end_is_cut_at_spaces() -> None:
    pieces = quotes("word " * 4600)
    assert all(len(piece) <= LONGEST_SENTENCE and piece.replace("word", "").strip() == "" for piece in pieces)
    assert [len(piece) for piece in quotes("x" * 1500)] == [600, 600, 300]


@pytest.mark.parametrize("text", ["", " \n\t ", "---", "* * *"])
def test_nothing_to_read(text: str) -> None:
    assert quotes(text) == []
