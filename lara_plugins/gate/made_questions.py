"""Questions made from passages, for those who have none: deterministic, no model."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from lara_plugins.passages import Passage

WORDS_ASKED = 3
SHORTEST_SENTENCE = 8
"""Words; a shorter line is a heading, a cell or a remark."""

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def made_questions(passages: Sequence[Passage], chance: random.Random) -> Iterator[tuple[str, Passage]]:
    """A question for each passage that has a sentence, with that passage, in random order.

    A question is what a person types who knows a text's own words: of one of its sentences the
    three words that the fewest passages hold, in the order of the sentence.

    How optimistic that is depends on how people ask. Measured with the embedded scorer, the theta
    for a recall of 0.95 keeps 0.97 to 0.99 of people's evidence on Natural Questions, SQuAD and
    CLAPnq, whose questions name what they are about, but 0.89 on HotpotQA and 0.74 on MuSiQue,
    where a question needs a second passage that it does not name. Longer questions share more of
    the passage's wording and are easier yet: with five words MuSiQue's questions whose evidence is
    kept whole fall from 0.65 to 0.20, with a whole sentence that lacks one word to 0.12.

    Languages that put no space between words give none.

    Args:
        passages: the corpus, or a fair sample of it: it says which words are rare.
        chance: chooses the order and the sentences.
    """
    holding = Counter(word for passage in passages for word in set(_words(passage.content)))
    for passage in chance.sample(list(passages), len(passages)):
        sentences = [
            found for line in _SENTENCE_END.split(passage.text) if _long(found := _WORD.findall(line))
        ]
        if sentences:
            words = list(dict.fromkeys(chance.choice(sentences)))
            rare = sorted(words, key=lambda word: holding[word.casefold()])[:WORDS_ASKED]
            yield " ".join(word for word in words if word in rare), passage


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _long(words: Sequence[str]) -> bool:
    return len(words) >= SHORTEST_SENTENCE
