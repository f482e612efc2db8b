"""Fits the two linear models of the extractive reader and prints their constants.

    python training/reader/fit.py --data ../shared/data

Three of five questions of NQ, SQuAD 2.0 and CLAPNQ are used; the others (by the SHA-1 of their
text) are left for ``benchmarks/reader.py``. Which sentence answers is a conditional logit over
the sentences in front of the reader; whether the best one answers at all is a logistic regression.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lara_plugins.answering.candidates import (
    AnswerEvidence,
    SentenceEvidence,
    Weighed,
    answer_evidence,
    weigh,
)
from lara_plugins.answering.overlap import AskedFor, read_question
from lara_plugins.evaluation import contains_answer, load_dataset
from lara_plugins.evaluation.reading import Reading, held_out, one_passage, retrieved, without_answers
from lara_plugins.gate import Scorer, load_scorer
from lara_plugins.question import parse_question
from lara_plugins.retrieval import EmbeddedIndex

Floats = NDArray[np.float64]

PASSAGE_TRUST = 0.5
"""Share of the passage logit's weight that is kept. The embedded scorer was trained on the passages
of these sets, and ranks others less well; on these, half the weight costs half a point at most."""

RIDGE = 1e-3
STEPS = 2000
LEARNING_RATE = 0.02


@dataclass(frozen=True)
class Example:
    """A reading with what speaks for each of its sentences.

    Args:
        reading: question and passages.
        importance: how much it counts for whether there is an answer.
        asked: the question as it was read.
        weighed: its candidates.
    """

    reading: Reading
    importance: float
    asked: AskedFor
    weighed: tuple[Weighed, ...]

    @property
    def features(self) -> Floats:
        """One row a candidate."""
        return np.array([weighed.evidence for weighed in self.weighed])

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which candidates hold an accepted answer."""
        answers = self.reading.question.answers
        return np.array([contains_answer(w.candidate.sentence.quote, answers) for w in self.weighed])


def examples(data: Path, scorer: Scorer) -> Iterator[Example]:
    """All that is fitted on; CLAPNQ counts more as it is small, SQuAD 2.0 less as it is made to trap."""
    nq, squad2, clapnq = (load_dataset(data / name) for name in ("nq", "squad2", "clapnq"))
    with tempfile.TemporaryDirectory() as folder, EmbeddedIndex(Path(folder) / "index") as index:
        index.upsert(list(nq.passages.values()))
        from_index = [reading for reading in retrieved(nq, index, 10) if not held_out(reading.question)]
    parts = [
        (one_passage(nq), 0.5),
        (from_index, 1.0),
        (without_answers(from_index), 1.0),
        (one_passage(squad2), 0.25),
        (one_passage(clapnq), 6.0),
    ]
    for readings, importance in parts:
        for reading in readings:
            if not held_out(reading.question):
                question = reading.question.text
                asked = read_question(question, parse_question(question).answer_shape)
                weighed = weigh(scorer, question, asked, reading.passages).weighed
                if weighed:
                    yield Example(reading, importance, asked, weighed)


def fit_sentences(fitted_on: Sequence[Example]) -> SentenceEvidence:
    """The weights that make the sentences with an answer likeliest among those of a question.

    A conditional logit (McFadden, 1974) in which any right sentence will do, by Adam.
    """
    groups = [(e.features, e.right) for e in fitted_on if e.reading.answerable]
    groups = [group for group in groups if group[1].any() and not group[1].all()]
    rows = np.concatenate([features for features, _ in groups])
    right = np.concatenate([marks for _, marks in groups])
    sizes = np.array([len(marks) for _, marks in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    weights = np.zeros(rows.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        odds = rows @ weights
        odds = np.exp(odds - np.repeat(np.maximum.reduceat(odds, starts), sizes))
        share = odds / np.repeat(np.add.reduceat(odds, starts), sizes)
        right_odds = odds * right + 1e-12 * right
        target = right_odds / np.repeat(np.add.reduceat(right_odds, starts), sizes)
        gradient = rows.T @ (share - target) / len(groups) + 2 * RIDGE * weights
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        scale = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        weights -= LEARNING_RATE * (mean / (1 - 0.9**step)) / scale
    fitted = SentenceEvidence(*weights.tolist())
    return fitted._replace(passage=PASSAGE_TRUST * fitted.passage)


def fit_answers(fitted_on: Sequence[Example], sentences: SentenceEvidence) -> tuple[AnswerEvidence, float]:
    """Weights and bias of the probability that the best sentence answers, by Newton's method."""
    rows = []
    for example in fitted_on:
        best = example.weighed[int(np.argmax(example.features @ np.array(sentences)))]
        passage = example.reading.passages[best.candidate.passage]
        rows.append([1.0, *answer_evidence(best, example.asked, passage)])
    features = np.array(rows)
    answerable = np.array([example.reading.answerable for example in fitted_on], float)
    importance = np.array([example.importance for example in fitted_on])
    weights = np.zeros(features.shape[1])
    for _ in range(30):
        probability = 1 / (1 + np.exp(-features @ weights))
        gradient = features.T @ (importance * (probability - answerable)) + weights
        curvature = importance * probability * (1 - probability)
        hessian = (features.T * curvature) @ features + np.eye(len(weights))
        weights -= np.linalg.solve(hessian, gradient)
    bias, *others = weights.tolist()
    return AnswerEvidence(*others), bias


def main() -> None:
    """Fit both models and print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with nq, squad2 and clapnq")
    parser.add_argument("--scorer", default="embedded", help="the scorer to fit the weights for")
    arguments = parser.parse_args()
    fitted_on = list(examples(arguments.data, load_scorer(arguments.scorer)))
    sentences = fit_sentences(fitted_on)
    answers, bias = fit_answers(fitted_on, sentences)
    print(f"{len(fitted_on)} readings")
    for name, weights in (("SENTENCE_WEIGHTS", sentences), ("ANSWER_WEIGHTS", answers)):
        print(name, {field: round(weight, 2) for field, weight in weights._asdict().items()})
    print("ANSWER_BIAS", round(bias, 2))


if __name__ == "__main__":
    main()
