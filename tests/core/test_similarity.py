from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.gate.engines.similarity import cosines

WORDS = st.lists(st.sampled_from(["who", "wrote", "the", "novel", "Frankenstein", "zyxgram"]), max_size=12)
TEXTS = st.lists(WORDS.map(" ".join), min_size=1, max_size=5)


@given(WORDS.map(" ".join), TEXTS)
def test_a_cosine_does_not_depend_on_the_company(query: str, texts: list[str]) -> None:
    assert cosines(query, texts) == [cosines(query, [text])[0] for text in texts]


def test_cosines_are_one_for_the_question_itself_and_higher_for_its_subject() -> None:
    itself, near, far = cosines(
        "a river in France", ["a river in France", "The streams of Germany", "parser options"]
    )

    assert itself == pytest.approx(1, abs=1e-5)
    assert itself > near > far


@given(WORDS, st.sampled_from(["\n", "\n\n", "  ", "\t "]))
def test_white_space_counts_for_nothing(words: list[str], gap: str) -> None:
    assert cosines("who wrote it", [gap.join(words)]) == cosines("who wrote it", [" ".join(words)])


@pytest.mark.parametrize("text", ["", "\ud800", "\x00"])
def test_odd_text_has_a_cosine(text: str) -> None:
    [there], [back] = cosines("a river", [text]), cosines(text, ["a river"])

    assert there == pytest.approx(back, abs=1e-6)
    assert -1 <= there <= 1
