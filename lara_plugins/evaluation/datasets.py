"""Data sets in the BEIR layout (Thakur et al., 2021): corpus.jsonl, queries.jsonl, qrels.tsv."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import Passage

JsonObject: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what is known about its answer.

    Args:
        id: its identity in the data set.
        text: the question.
        answers: accepted answer strings; free-form ones where the data set says so.
        answerable: whether the corpus answers it.
        relevant: grades above 0 of the passages that answer it, by passage id.
        near_passage: of an unanswerable question, the passage that seems to answer it; "" where
            the data set names none.
        gold_sentences: the sentences that answer it, where the data set names them.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    answerable: bool
    relevant: Mapping[str, int]
    near_passage: str = ""
    gold_sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataSet:
    """A corpus and questions about it.

    Args:
        name: the name of its folder.
        passages: the corpus, by passage id.
        questions: in the file's order.
    """

    name: str
    passages: Mapping[str, Passage]
    questions: tuple[Question, ...]


def load_dataset(folder: Path | str) -> DataSet:
    """Read a data set.

    ``queries.jsonl`` may hold ``answers``, ``answerable``, ``near_passage`` and ``gold_sentences``
    beside BEIR's own ``_id`` and ``text``; without them a question is answerable by its qrels.

    Args:
        folder: the folder with corpus.jsonl, queries.jsonl and qrels.tsv.

    Raises:
        InvalidArgument: a file is missing, a line is no JSON object or lacks a field, or the
            qrels name a passage that the corpus lacks.
    """
    folder = Path(folder)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        if not (folder / name).is_file():
            raise InvalidArgument(
                "folder", str(folder), f"{name} is not in it; give a folder in the BEIR layout"
            )
    passages = {}
    for row in _rows(folder / "corpus.jsonl"):
        passage = Passage(id=str(row["_id"]), text=str(row["text"]), heading=str(row.get("title") or ""))
        passages[passage.id] = passage
    relevant = _relevant(folder / "qrels.tsv", passages)
    questions = tuple(_question(row, relevant) for row in _rows(folder / "queries.jsonl"))
    return DataSet(folder.name, passages, questions)


def _rows(path: Path) -> Iterator[JsonObject]:
    """The objects of a JSON-lines file; each has ``_id`` and ``text``."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidArgument("folder", str(path), f"line {number} is no JSON: {error}") from error
            if not isinstance(row, dict) or not {"_id", "text"} <= row.keys():
                raise InvalidArgument("folder", str(path), f'line {number} needs "_id" and "text"')
            yield row


def _relevant(path: Path, passages: Mapping[str, Passage]) -> dict[str, dict[str, int]]:
    """The grades above 0, by question and passage."""
    relevant: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows, None)  # the header
        for number, row in enumerate(rows, start=2):
            if len(row) != 3 or not row[2].lstrip("-").isdigit():
                remedy = f"line {number} needs question id, passage id and a whole-number grade"
                raise InvalidArgument("folder", str(path), remedy)
            question, passage, grade = row
            if passage not in passages:
                raise InvalidArgument(
                    "folder", str(path), f"line {number} names {passage}, not in the corpus"
                )
            if int(grade) > 0:
                relevant.setdefault(question, {})[passage] = int(grade)
    return relevant


def _question(row: JsonObject, relevant: Mapping[str, Mapping[str, int]]) -> Question:
    identity = str(row["_id"])
    grades = relevant.get(identity, {})
    return Question(
        id=identity,
        text=str(row["text"]),
        answers=_strings(row, "answers"),
        answerable=bool(row.get("answerable", bool(grades))),
        relevant=grades,
        near_passage=str(row.get("near_passage") or ""),
        gold_sentences=_strings(row, "gold_sentences"),
    )


def _strings(row: JsonObject, field: str) -> tuple[str, ...]:
    values = row.get(field)
    return tuple(str(value) for value in values) if isinstance(values, list) else ()
