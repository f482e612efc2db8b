"""What is scored to fit the fusion and to report: BM25's best passages of each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from figures import first_stage
from numpy.typing import NDArray
from questions import SETS, Collection, Floats, Judged, Part, bm25, load_collection

from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.similarity import cosines


@dataclass(frozen=True)
class Task:
    """Questions with the candidates that are to be ordered.

    Args:
        name: the data set.
        passages: its corpus.
        questions: those with a relevant passage.
        candidates: positions of each question's candidates, BM25's best first.
        lexical: their BM25 scores.
    """

    name: str
    passages: tuple[str, ...]
    questions: list[Judged]
    candidates: list[list[int]]
    lexical: list[Floats]


def task(collection: Collection, part: Part) -> Task:
    """BM25's ten best of each answerable question of a part; within its article for SQuAD 2.0."""
    questions = [question for question in collection.part(part) if question.relevant]
    scores = bm25(list(collection.passages), [question.text for question in questions])
    own = None
    if collection.name == "squad2":
        titles = [collection.titles[min(question.relevant)] for question in questions]
        own = [[i for i, title in enumerate(collection.titles) if title == wanted] for wanted in titles]
    found = first_stage(scores, own)
    lexical = [row[candidates] for row, candidates in zip(scores, found, strict=True)]
    return Task(collection.name, collection.passages, questions, found, lexical)


def tasks(data: Path, part: Part) -> list[Task]:
    """One task a data set."""
    return [task(load_collection(data / name), part) for name in SETS]


def evidence_of(folder: Path, asked: Task) -> list[Floats]:
    """The cross-encoder's logit and the cosine of each candidate, shape (candidates, 2)."""
    model = OnnxCrossEncoder(folder)
    found = []
    for question, candidates in zip(asked.questions, asked.candidates, strict=True):
        texts = [asked.passages[position] for position in candidates]
        found.append(np.array([model.score(question.text, texts), cosines(question.text, texts)]).T)
    return found


def pooled(
    chosen: Sequence[Task], evidence: Mapping[str, Sequence[Floats]]
) -> tuple[Floats, NDArray[np.int64]]:
    """Evidence and label (1 or 0) of every candidate that is not unclear."""
    rows, labels = [], []
    for asked in chosen:
        for question, candidates, columns in zip(
            asked.questions, asked.candidates, evidence[asked.name], strict=True
        ):
            for position, row in zip(candidates, columns, strict=True):
                label = question.label(position, asked.passages[position])
                if label >= 0:
                    rows.append(row)
                    labels.append(label)
    return np.array(rows), np.array(labels)
