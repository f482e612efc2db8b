"""The questions that the embedded scorer is trained, chosen and reported on, and their candidates."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lara_plugins.evaluation import DataSet, Question, load_dataset
from lara_plugins.retrieval import Bm25Encoder

Floats: TypeAlias = NDArray[np.float64]
Part: TypeAlias = Literal["train", "choose", "report"]

SETS = ("nq", "squad2", "hotpotqa", "musique")
TRAIN_SHARE, CHOOSE_SHARE = 0.7, 0.1
"""The rest, a fifth of the questions, is only reported on."""

SALT = b"embedded scorer: "
"""The data sets themselves were dealt by the SHA-1 of the bare question."""


@dataclass(frozen=True)
class Judged:
    """A question with what is known about its passages.

    Args:
        text: the question.
        part: what it is used for.
        relevant: positions of its relevant passages in its set's corpus.
        near: position of the passage that only seems to answer it, or None.
        answers: accepted short answers, in lower case.
    """

    text: str
    part: Part
    relevant: frozenset[int]
    near: int | None
    answers: tuple[str, ...]

    def label(self, position: int, passage: str) -> int:
        """1 relevant, 0 not, -1 unclear: without a label, but with an accepted answer in it."""
        if position in self.relevant:
            return 1
        return -1 if any(answer in passage.lower() for answer in self.answers) else 0


@dataclass(frozen=True)
class Collection:
    """A corpus and the questions about it.

    Args:
        name: its data set.
        titles: title of each passage.
        passages: title above text, as passages are scored in use.
        questions: all of them; those without an answer have no relevant passage.
    """

    name: str
    titles: tuple[str, ...]
    passages: tuple[str, ...]
    questions: tuple[Judged, ...]

    def part(self, part: Part) -> list[Judged]:
        """The questions of one part."""
        return [question for question in self.questions if question.part == part]


def load_collection(folder: Path) -> Collection:
    """Read a data set and split its questions."""
    data = load_dataset(folder)
    positions = {name: position for position, name in enumerate(data.passages)}
    parts = _parts(data)
    questions = tuple(
        Judged(
            text=question.text,
            part=parts[question.id],
            relevant=frozenset(positions[name] for name in question.relevant),
            near=positions.get(question.near_passage),
            answers=tuple(answer.lower() for answer in question.answers if len(answer) < 60),
        )
        for question in data.questions
    )
    passages = data.passages.values()
    return Collection(
        name=data.name,
        titles=tuple(passage.heading for passage in passages),
        passages=tuple(f"{p.heading}\n{p.text}" if p.heading else p.text for p in passages),
        questions=questions,
    )


def _parts(data: DataSet) -> dict[str, Part]:
    """The part of each question: by the SHA-1 of the first question of its group.

    Questions that share a passage, relevant or near, are in one group, so that no passage is
    relevant both in training and in the report.
    """
    group: dict[str, str] = {}

    def root(passage: str) -> str:
        while group.setdefault(passage, passage) != passage:
            passage = group[passage]
        return passage

    for question in data.questions:
        first, *others = _passages(question)
        for other in others:
            group[root(other)] = root(first)
    names: dict[str, str] = {}
    for question in data.questions:
        key = root(_passages(question)[0])
        names[key] = min(names.get(key, question.text), question.text)
    return {question.id: _part(names[root(_passages(question)[0])]) for question in data.questions}


def _passages(question: Question) -> list[str]:
    near = [question.near_passage] if question.near_passage else []
    return sorted(question.relevant) + near or [f"no passage: {question.id}"]


def _part(text: str) -> Part:
    share = int(hashlib.sha1(SALT + text.encode("utf-8")).hexdigest()[:8], 16) / 16**8  # noqa: S324
    if share < TRAIN_SHARE:
        return "train"
    return "choose" if share < TRAIN_SHARE + CHOOSE_SHARE else "report"


def bm25(passages: list[str], questions: list[str]) -> Floats:
    """The scores of ``Bm25Encoder`` fitted on the passages, shape (questions, passages)."""
    encoder = Bm25Encoder.fit(passages)
    columns = {term: column for column, term in enumerate(encoder.frequencies.counts)}

    def matrix(vectors: list[tuple[tuple[int, ...], tuple[float, ...]]]) -> csr_matrix:
        rows = [row for row, (terms, _) in enumerate(vectors) for term in terms if term in columns]
        cols = [columns[term] for terms, _ in vectors for term in terms if term in columns]
        data = [
            v for terms, values in vectors for term, v in zip(terms, values, strict=True) if term in columns
        ]
        return csr_matrix((data, (rows, cols)), shape=(len(vectors), len(columns)))

    documents = matrix([(v.indices, v.values) for v in encoder.encode_documents(passages)])
    asked = matrix([(v.indices, v.values) for v in (encoder.encode_query(q) for q in questions)])
    scores: Floats = (asked @ documents.T).toarray()
    return scores
