"""Answers a question with the sentences of the passages themselves: no LLM, nothing made up.

Which sentences, and whether any of them answers at all, are two small linear models over the
scorer's logits and plain features of the wording. Their weights stand here as constants;
``training/reader/fit.py`` fits them again for another scorer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul

from lara_plugins.answering.candidates import (
    AnswerEvidence,
    Candidate,
    SentenceEvidence,
    Weighed,
    answer_evidence,
    weigh,
)
from lara_plugins.answering.contract import AnswerWithEvidence
from lara_plugins.answering.overlap import read_question
from lara_plugins.answering.quotes import without_citations
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate import Scorer, checked_question
from lara_plugins.passages import Passage, Span
from lara_plugins.question import SINGLE_VALUES, QuestionShape, parse_question

SENTENCE_WEIGHTS = SentenceEvidence(
    passage=0.75,
    sentence=0.47,
    overlap=1.12,
    surroundings=1.51,
    value=2.71,
    opening=1.05,
)
"""Log-odds that one unit of each feature gives a sentence over the others of the passages."""

ANSWER_WEIGHTS = AnswerEvidence(
    sentence=0.97,
    overlap=-0.07,
    surroundings=-0.1,
    missing_names=-0.96,
    missing_numbers=-0.38,
    negation=-1.36,
    no_value=-0.99,
)
"""Log-odds that one unit of each feature gives the best sentence of being an answer."""

ANSWER_BIAS = -0.16
"""Log-odds of being an answer where no feature says anything."""

MIN_CONFIDENCE = 0.3
"""Confidence from which an answer is given: below even odds, since half of what the weights are
fitted on has no answer, and of text unlike it the scorer is less sure even where it is right."""

COMPLETE_CONFIDENCE = 0.5
"""Confidence from which a single value is held to be the whole answer."""

LONGEST_QUESTION = 4000
"""Of a longer question the first and the last half of so many characters are read."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How many sentences an answer may have, and how close to the best each must be.

    Args:
        most: sentences at most.
        margin: log-odds that a sentence may be behind the best one.
    """

    most: int
    margin: float


SHORT = Extent(most=2, margin=1.5)
LONG = Extent(most=8, margin=2.0)


class ExtractiveReader:
    """Chooses the sentences that answer, or says that none does.

    One instance serves many threads.

    Args:
        scorer: the cross-encoder that reads question and sentence together; the weights are
            fitted for the embedded one.
        min_confidence: confidence, 0..1, from which an answer is given; higher abstains more.

    Raises:
        InvalidArgument: ``min_confidence`` is not within 0..1.
    """

    def __init__(self, scorer: Scorer, *, min_confidence: float = MIN_CONFIDENCE) -> None:
        if not 0.0 <= min_confidence <= 1.0:
            raise InvalidArgument("min_confidence", min_confidence, "give a number from 0 to 1")
        self.scorer = scorer
        self.min_confidence = min_confidence

    def read(
        self,
        question: str,
        passages: Sequence[Passage],
        shape: QuestionShape | None = None,
        *,
        numbers: Sequence[int] | None = None,
    ) -> AnswerWithEvidence:
        """The answer that the passages hold.

        Its value is the chosen sentences, each followed by the number of its passage: up to two,
        best first, for a single value; up to eight, in the passages' order and one a line, for a
        list, a comparison, a procedure, a summary or several asks. A single value is complete
        from ``COMPLETE_CONFIDENCE`` on. Of the others an extract cannot know what it lacks:
        they are never complete.

        Args:
            question: what is asked.
            passages: where the answer may stand, best first.
            shape: the shape of the question; by default it is parsed.
            numbers: what the passages are cited by, one each, from 1; by default 1, 2, 3...

        Returns:
            The answer, or a not-found whose confidence is the probability that it was there
            all the same, and whose caveat says what is missing.

        Raises:
            InvalidArgument: the question is empty, or ``numbers`` do not fit the passages.
            ScoreError: the scorer returned something that is not a score.
        """
        question, caveats = _readable(checked_question(question))
        cited = _checked_numbers(numbers, passages)
        shape = shape or parse_question(question)
        single = shape.decomposition == "single"
        short = single and shape.answer_shape in SINGLE_VALUES | {"unknown"}
        asked = read_question(question, shape.answer_shape)
        weighing = weigh(self.scorer, question, asked, passages)
        if weighing.passed_over:
            caveats += (
                f"{weighing.passed_over} sentences with fewest of the question's words were not weighed",
            )
        ranked = sorted(weighing.weighed, key=_standing, reverse=True)
        if short:
            ranked = [weighed for weighed in ranked if not weighed.candidate.leads_in] or ranked
        if not ranked:
            return AnswerWithEvidence(caveats=(*caveats, "there is no text to read"))
        evidence = answer_evidence(ranked[0], asked, passages[ranked[0].candidate.passage])
        confidence = answer_probability(evidence)
        if confidence < self.min_confidence:
            reason = _why_not(evidence, confidence, self.min_confidence)
            return AnswerWithEvidence(confidence=confidence, caveats=(*caveats, reason))
        chosen = [weighed.candidate for weighed in choose(ranked, SHORT if short else LONG)]
        if not short:
            chosen.sort(key=lambda candidate: (candidate.passage, candidate.order))
        typed = single and shape.answer_shape in SINGLE_VALUES
        return AnswerWithEvidence(
            value=(" " if short else "\n").join(
                f"{without_citations(c.sentence.bare.quote)} [{cited[c.passage]}]" for c in chosen
            ),
            evidence=tuple(_span(candidate, passages[candidate.passage]) for candidate in chosen),
            answer_found=True,
            complete_answer_found=typed and confidence >= COMPLETE_CONFIDENCE,
            confidence=confidence,
            caveats=caveats,
        )


def answer_probability(evidence: AnswerEvidence) -> float:
    """The probability that the best sentence is an answer: logistic in its evidence."""
    return 1.0 / (1.0 + math.exp(-ANSWER_BIAS - _weighted(ANSWER_WEIGHTS, evidence)))


def choose(ranked: Sequence[Weighed], extent: Extent) -> list[Weighed]:
    """The first sentences of ``ranked``, as many as the extent allows, no wording twice."""
    chosen: dict[str, Weighed] = {}
    floor = _standing(ranked[0]) - extent.margin
    for weighed in ranked:
        if _standing(weighed) < floor or len(chosen) == extent.most:
            break
        chosen.setdefault(" ".join(weighed.candidate.sentence.quote.casefold().split()), weighed)
    return list(chosen.values())


def _standing(weighed: Weighed) -> float:
    return _weighted(SENTENCE_WEIGHTS, weighed.evidence)


def _weighted(weights: Iterable[float], features: Iterable[float]) -> float:
    return math.fsum(map(mul, weights, features))


def _readable(question: str) -> tuple[str, tuple[str, ...]]:
    """The part of a question that is read, and what a reader must know of the rest."""
    if len(question) <= LONGEST_QUESTION:
        return question, ()
    half = LONGEST_QUESTION // 2
    caveat = f"of the {len(question)} characters of the question the first and last {half} are read"
    return f"{question[:half]} {question[-half:]}", (caveat,)


def _checked_numbers(numbers: Sequence[int] | None, passages: Sequence[Passage]) -> Sequence[int]:
    if numbers is None:
        return range(1, len(passages) + 1)
    if len(numbers) != len(passages) or any(number < 1 for number in numbers):
        remedy = f"give one number, 1 or more, for each of the {len(passages)} passages"
        raise InvalidArgument("numbers", list(numbers), remedy)
    return numbers


def _span(candidate: Candidate, passage: Passage) -> Span:
    sentence = candidate.sentence.bare
    return Span(passage.id, sentence.start, sentence.end, sentence.quote)


def _why_not(evidence: AnswerEvidence, confidence: float, least: float) -> str:
    """One sentence that says why the best sentence is not given as an answer."""
    lacks = [
        words
        for words, missing in (
            ("its passage lacks names of the question", evidence.missing_names),
            ("its passage lacks numbers of the question", evidence.missing_numbers),
            ("it does not deny what the question denies", evidence.negation),
            ("its passage holds no value of the kind that is asked for", evidence.no_value),
        )
        if missing
    ]
    return f"the best sentence has a confidence of {confidence:.2f}, under {least:.2f}" + "".join(
        f"; {words}" for words in lacks
    )
