"""What is measured: answers found in a text, passages found in a ranking, and abstentions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = re.compile(r"[^\w\s]|_")


def normalise_answer(text: str) -> str:
    """A text in lower case without punctuation, articles and superfluous white space.

    As SQuAD's evaluation does it (Rajpurkar et al., 2016), except that punctuation parts words
    ("1905–1906" is two), so that an answer is found in running text.
    """
    return " ".join(_ARTICLE.sub(" ", _PUNCTUATION.sub(" ", text.lower())).split())


def contains_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether one of the accepted answers stands in a text as whole words, both normalised."""
    padded = f" {normalise_answer(text)} "
    return any(f" {answer} " in padded for answer in map(normalise_answer, answers) if answer)


def recall_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """The share of the relevant passages that are among the first k; 0 where none is relevant.

    Args:
        k: how many of the ranking count, 1 or more.
        ranking: passage ids, best first.
        relevant: ids of the relevant passages.
    """
    return len(set(ranking[:k]) & set(relevant)) / len(set(relevant)) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1 / the position of the first relevant passage, 0 where none is in the ranking.

    Its mean over questions is the MRR (Voorhees, 1999).
    """
    position = next((place for place, name in enumerate(ranking, start=1) if name in relevant), None)
    return 1.0 / position if position else 0.0


@dataclass(frozen=True, slots=True)
class Abstention:
    """How well a reader abstains.

    Args:
        abstained_rightly: unanswerable questions on which it abstained.
        abstained_wrongly: answerable questions on which it abstained.
        unanswerable: unanswerable questions.
        answerable: answerable questions.
    """

    abstained_rightly: int
    abstained_wrongly: int
    unanswerable: int
    answerable: int

    @property
    def precision(self) -> float:
        """The share of abstentions that are right; 1 where there are none."""
        abstained = self.abstained_rightly + self.abstained_wrongly
        return self.abstained_rightly / abstained if abstained else 1.0

    @property
    def recall(self) -> float:
        """The share of the unanswerable questions on which it abstains; 1 where there are none."""
        return self.abstained_rightly / self.unanswerable if self.unanswerable else 1.0

    @property
    def wrongly_abstained(self) -> float:
        """The share of the answerable questions on which it abstains; 0 where there are none."""
        return self.abstained_wrongly / self.answerable if self.answerable else 0.0


def abstention(outcomes: Iterable[tuple[bool, bool]]) -> Abstention:
    """Count abstentions.

    Args:
        outcomes: for each question whether it is answerable and whether the reader answered.
    """
    counted = list(outcomes)
    return Abstention(
        abstained_rightly=sum(not answerable and not answered for answerable, answered in counted),
        abstained_wrongly=sum(answerable and not answered for answerable, answered in counted),
        unanswerable=sum(not answerable for answerable, _ in counted),
        answerable=sum(answerable for answerable, _ in counted),
    )
