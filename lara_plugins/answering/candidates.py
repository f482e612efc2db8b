"""The sentences of some passages as candidates for an answer, and what speaks for each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from lara_plugins.answering.answer_types import ABSENT, holds
from lara_plugins.answering.overlap import (
    AskedFor,
    content_terms,
    coverage,
    is_negated,
    missing_share,
    term_weights,
)
from lara_plugins.answering.sentences import Sentence, split_sentences
from lara_plugins.errors import ScoreError
from lara_plugins.gate import Scorer, to_scores
from lara_plugins.passages import Passage

STRETCH = 1500
"""Characters of a passage that are scored at once; a longer one is cut at sentences."""

MOST_STRETCHES = 16
MOST_SENTENCES = 64
"""How many the scorer sees of one question; those with the most of the question's words."""

LOGIT_LIMIT = 8.0
"""Logits are cut here: beyond it a scorer is certain, and its scale says no more."""

T = TypeVar("T")

_HEADING = re.compile(r"#{1,6}\s")
_ITEM = re.compile(r"(?:[-*+•]|\(?\d{1,3}[.)])\s")


class SentenceEvidence(NamedTuple):
    """What speaks for one sentence as the answer.

    Args:
        passage: the scorer's logit of the stretch of text that it stands in.
        sentence: the scorer's logit of the sentence under its headings.
        overlap: the share of the question's terms that it holds, by weight.
        surroundings: the same of its headings, its two neighbours and itself.
        value: how clearly it holds a value of the kind that is asked for.
        opening: 1 for the first sentence of a passage, 1/2 for the second, and so on.
    """

    passage: float
    sentence: float
    overlap: float
    surroundings: float
    value: float
    opening: float


class AnswerEvidence(NamedTuple):
    """What speaks for the best sentence being an answer at all.

    The passage's logit is not among it: a scorer knows the passages that it was trained on, so
    that on the sets it is fitted on it promises more than it keeps on new ones.

    Args:
        sentence, overlap, surroundings: as in ``SentenceEvidence``, of the best sentence.
        missing_names: the share of the question's names that its passage does not have.
        missing_numbers: the same of the question's numbers.
        negation: 1 where the question is negated and the sentence is not.
        no_value: 1 where its passage holds no value of the kind that is asked for.
    """

    sentence: float
    overlap: float
    surroundings: float
    missing_names: float
    missing_numbers: float
    negation: float
    no_value: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that could answer.

    Args:
        passage: position of its passage among those that were given.
        sentence: where it stands.
        order: its position in the passage.
        context: what stands above it: title, section, the lead-in of its list, the head of its table.
        terms: its content terms.
        around: the content terms of its context and its neighbours.
    """

    passage: int
    sentence: Sentence
    order: int
    context: str
    terms: frozenset[str]
    around: frozenset[str]

    @property
    def leads_in(self) -> bool:
        """Whether it only introduces what follows it, such as a list."""
        return self.sentence.quote.endswith((":", "："))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive candidates of a passage, and their text under its title."""

    text: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Weighed:
    """A candidate and what speaks for it."""

    candidate: Candidate
    evidence: SentenceEvidence


@dataclass(frozen=True, slots=True)
class Weighing:
    """The candidates that were weighed, and how many were not for want of the question's words."""

    weighed: tuple[Weighed, ...]
    passed_over: int


def weigh(scorer: Scorer, question: str, asked: AskedFor, passages: Sequence[Passage]) -> Weighing:
    """What speaks for each of the passages' sentences.

    One call of the scorer, on at most ``MOST_STRETCHES`` + ``MOST_SENTENCES`` texts; those with
    the most of the question's words where there are more.

    Raises:
        ScoreError: the scorer returned something that is not a score.
    """
    stretches = [stretch for i, passage in enumerate(passages) for stretch in _stretches(i, passage)]
    if not stretches:
        return Weighing((), 0)
    total = sum(len(stretch.candidates) for stretch in stretches)
    weights = term_weights(asked.terms, [c.terms for stretch in stretches for c in stretch.candidates])
    stretches = _best(
        stretches, [max(_lexical(weights, c) for c in s.candidates) for s in stretches], MOST_STRETCHES
    )
    placed = [(i, candidate) for i, stretch in enumerate(stretches) for candidate in stretch.candidates]
    placed = _best(placed, [_lexical(weights, candidate) for _, candidate in placed], MOST_SENTENCES)
    texts = [stretch.text for stretch in stretches]
    texts += [f"{c.context}\n{c.sentence.quote}" if c.context else c.sentence.quote for _, c in placed]
    logits = _logits(scorer, question, texts)
    weighed = tuple(
        Weighed(
            candidate,
            SentenceEvidence(
                passage=logits[i],
                sentence=logit,
                overlap=coverage(weights, candidate.terms),
                surroundings=coverage(weights, candidate.terms, candidate.around),
                value=holds(candidate.sentence.quote, asked.kind, asked.words),
                opening=1 / (1 + candidate.order),
            ),
        )
        for (i, candidate), logit in zip(placed, logits[len(stretches) :], strict=True)
    )
    return Weighing(weighed, passed_over=total - len(weighed))


def answer_evidence(best: Weighed, asked: AskedFor, passage: Passage) -> AnswerEvidence:
    """What speaks for the best sentence, from ``passage``, being an answer at all."""
    found = frozenset(content_terms(passage.content))
    no_value = asked.kind != "any" and holds(passage.text, asked.kind, asked.words) == ABSENT
    return AnswerEvidence(
        sentence=best.evidence.sentence,
        overlap=best.evidence.overlap,
        surroundings=best.evidence.surroundings,
        missing_names=missing_share(asked.names, found),
        missing_numbers=missing_share(asked.numbers, found),
        negation=float(asked.negated and not is_negated(best.candidate.sentence.quote)),
        no_value=float(no_value),
    )


def _stretches(position: int, passage: Passage) -> Iterator[Stretch]:
    """The candidates of a passage, in stretches of about ``STRETCH`` characters."""
    candidates = list(_candidates(position, passage))
    while candidates:
        start = candidates[0].sentence.start
        count = max(1, sum(c.sentence.end - start <= STRETCH for c in candidates))
        text = passage.text[start : candidates[count - 1].sentence.end]
        yield Stretch(f"{passage.heading}\n{text}" if passage.heading else text, tuple(candidates[:count]))
        candidates = candidates[count:]


def _candidates(position: int, passage: Passage) -> Iterator[Candidate]:
    """The sentences of a passage that are no headings, each with what stands above and beside it."""
    sentences = split_sentences(passage.text)
    contexts = list(_contexts(passage.heading, [sentence.quote for sentence in sentences]))
    terms = [frozenset(content_terms(sentence.quote)) for sentence in sentences]
    for order, sentence in enumerate(sentences):
        if not _HEADING.match(sentence.quote):
            around = frozenset(content_terms(contexts[order])).union(*terms[max(0, order - 1) : order + 2])
            yield Candidate(position, sentence, order, contexts[order], terms[order], around)


def _contexts(title: str, quotes: Sequence[str]) -> Iterator[str]:
    """For each sentence the title, its section's heading, and its list's lead-in or table's first row."""
    section = lead = ""
    in_table = False
    for quote in quotes:
        row = quote.startswith("|")
        if _HEADING.match(quote):
            section, lead = quote.lstrip("# "), ""
        elif not row and not _ITEM.match(quote):
            lead = ""
        yield "\n".join(filter(None, (title, section, lead)))
        if quote.endswith((":", "：")) or (row and not in_table):
            lead = quote[-200:]
        in_table = row


def _lexical(weights: dict[str, float], candidate: Candidate) -> float:
    return coverage(weights, candidate.terms) + coverage(weights, candidate.terms, candidate.around)


def _best(items: Sequence[T], values: Sequence[float], most: int) -> list[T]:
    """The ``most`` items of the highest values, in their old order."""
    kept = sorted(range(len(items)), key=lambda position: -values[position])[:most]
    return [items[position] for position in sorted(kept)]


def _logits(scorer: Scorer, question: str, texts: Sequence[str]) -> list[float]:
    """The scores of the texts as logits within ``LOGIT_LIMIT``, whatever kind the scorer gives."""
    scores = to_scores(scorer.score(question, texts), scorer.score_kind)
    if len(scores) != len(texts):
        raise ScoreError(f"the scorer returned {len(scores)} scores for {len(texts)} texts")
    if scorer.score_kind == "logit":
        logits = [score.rank for score in scores]
    else:
        least = 1e-6
        logits = [math.log(max(score.value, least) / max(1 - score.value, least)) for score in scores]
    return [min(LOGIT_LIMIT, max(-LOGIT_LIMIT, logit)) for logit in logits]
