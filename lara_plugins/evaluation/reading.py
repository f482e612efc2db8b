"""What a reader is given and expected to do: questions, each with the passages in front of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lara_plugins.evaluation.datasets import DataSet, Question
from lara_plugins.evaluation.metrics import contains_answer
from lara_plugins.passages import Passage
from lara_plugins.retrieval import HybridIndex, retrieval_plan


@dataclass(frozen=True, slots=True)
class Reading:
    """A question and the passages that a reader gets with it.

    Args:
        question: the question.
        passages: what is read, best first.
        answerable: whether these passages answer it.
    """

    question: Question
    passages: tuple[Passage, ...]
    answerable: bool


def one_passage(data: DataSet) -> Iterator[Reading]:
    """Each question with one passage: its gold one, or the near one that does not answer it."""
    for question in data.questions:
        names = [*question.relevant][:1] if question.answerable else [question.near_passage]
        if names and names[0]:
            yield Reading(question, (data.passages[names[0]],), question.answerable)


def retrieved(data: DataSet, index: HybridIndex, count: int) -> Iterator[Reading]:
    """Each question with the ``count`` best passages of an index that holds the corpus.

    It is answerable where one of them holds an accepted answer.
    """
    alpha = retrieval_plan(len(data.passages), alpha_ceiling=index.alpha_ceiling).alpha
    for question in data.questions:
        matches = index.search(question.text, limit=count, alpha=alpha)
        passages = tuple(match.passage for match in matches)
        yield Reading(question, passages, any(_answers(passage, question) for passage in passages))


def without_answers(readings: Sequence[Reading]) -> Iterator[Reading]:
    """The same questions without the passages that answer them: near misses, as retrieval gives them."""
    for reading in readings:
        question = reading.question
        left = [passage for passage in reading.passages if not _answers(passage, question)]
        if left:
            yield Reading(question, tuple(left), answerable=False)


def held_out(question: Question) -> bool:
    """Whether a question is kept from fitting: two of five, by the SHA-1 of its text."""
    return int(hashlib.sha1(question.text.encode(), usedforsecurity=False).hexdigest(), 16) % 5 < 2


def _answers(passage: Passage, question: Question) -> bool:
    return passage.id in question.relevant or contains_answer(passage.content, question.answers)
