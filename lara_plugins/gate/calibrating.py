"""From a scorer, a corpus and whatever questions there are to a theta, or to why there is none."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lara_plugins.arguments import check_share
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate.calibration import Calibration, NotCalibrated, from_evidence, from_unrelated
from lara_plugins.gate.made_questions import made_questions
from lara_plugins.gate.scorer import Scorer
from lara_plugins.gate.scoring import checked_question, score_in_time
from lara_plugins.passages import Passage

DEFAULT_RECALL = 0.95

MADE = 200
"""Questions that are made from the passages where none are given."""

MISMATCHED_QUESTIONS = 100
MISMATCHED_EACH = 10
"""Unrelated passages that each of so many questions is paired with."""

SEED = 20_260_901
"""The same scorer, corpus and questions give the same theta."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question, and what is known of the passages that answer it.

    Args:
        question: as a person asks it.
        relevant: the passages that answer it; none where nobody has labelled it.
        all_needed: whether each of them is evidence to keep, or the best one suffices (where they
            were found by an answer's words).
        nearest: what a retriever finds first, for a question without labels.
    """

    question: str
    relevant: tuple[Passage, ...] = ()
    all_needed: bool = True
    nearest: Passage | None = None


def calibrate(
    scorer: Scorer,
    passages: Sequence[Passage],
    examples: Sequence[Example] = (),
    *,
    recall: float = DEFAULT_RECALL,
    source: str = "",
) -> Calibration | NotCalibrated:
    """Choose theta for a scorer and a corpus, on the best grounds that the examples allow.

    Examples with relevant passages give the ``labelled`` tier, others beside them are left out;
    examples without any give the ``unlabelled`` tier; with no examples at all, questions are made
    from the passages, the ``pseudo`` tier. `Calibration` says what each tier promises. Labelled
    evidence is scored whether or not a retriever would find it: theta answers for the gate alone.

    Args:
        scorer: the scorer whose scores theta is for.
        passages: the corpus, or a fair sample of it; unrelated passages are drawn from it.
        examples: questions, labelled or not.
        recall: the share of the evidence to keep; the unlabelled tier does not use it.
        source: what the examples and the corpus are, for people; it is kept with the result.

    Returns:
        The calibration, or why there is no theta that means something.

    Raises:
        InvalidArgument: ``recall`` is not within 0..1, a question is blank, an example without
            labels has no nearest passage, or there are no two passages.
        ScoreError: the scorer returned something that is not a score.
    """
    check_recall(recall)
    if len(passages) < 2:
        raise InvalidArgument("passages", len(passages), "give the corpus: unrelated passages come from it")
    for example in examples:
        checked_question(example.question)
    chance = random.Random(SEED)  # noqa: S311 - nobody gains by guessing it
    labelled = [example for example in examples if example.relevant]
    if examples and not labelled:
        return _unlabelled(scorer, passages, examples, chance, source)
    if not labelled:
        made = islice(made_questions(passages, chance), MADE)
        labelled = [Example(question, (passage,)) for question, passage in made]
    unrelated = _mismatched(scorer, passages, labelled, chance)
    if labelled and not unrelated:
        raise InvalidArgument("passages", len(passages), "every one belongs to a question: give the corpus")
    return from_evidence(
        [_evidence(scorer, example) for example in labelled],
        unrelated,
        recall=recall,
        tier="labelled" if examples else "pseudo",
        fingerprint=scorer.fingerprint,
        source=source,
    )


def check_recall(recall: float) -> None:
    """Refuse what is not a share above 0 and below 1."""
    check_share("recall", recall, "give the share of the evidence to keep, such as 0.95")
    if not 0 < recall < 1:
        raise InvalidArgument("recall", recall, "give a share above 0 and below 1, such as 0.95")


def _unlabelled(
    scorer: Scorer,
    passages: Sequence[Passage],
    examples: Sequence[Example],
    chance: random.Random,
    source: str,
) -> Calibration | NotCalibrated:
    pairs = [(example.question, example.nearest) for example in examples]
    if None in (nearest for _, nearest in pairs):
        raise InvalidArgument("examples", len(examples), "give each one without labels its nearest passage")
    nearest = [_values(scorer, question, [passage])[0] for question, passage in pairs if passage is not None]
    unrelated = _mismatched(scorer, passages, examples, chance)
    return from_unrelated(unrelated, nearest, fingerprint=scorer.fingerprint, source=source)


def _evidence(scorer: Scorer, example: Example) -> list[float]:
    """The values that have to reach theta for the example's evidence to be kept."""
    values = _values(scorer, example.question, example.relevant)
    return values if example.all_needed else [max(values)]


def _mismatched(
    scorer: Scorer, passages: Sequence[Passage], examples: Sequence[Example], chance: random.Random
) -> list[float]:
    """The values of questions with passages drawn at random, those that belong to them left out."""
    asked = chance.sample(list(examples), min(MISMATCHED_QUESTIONS, len(examples)))
    return [
        value
        for example in asked
        for value in _values(scorer, example.question, list(_others(example, passages, chance)))
    ]


def _others(example: Example, passages: Sequence[Passage], chance: random.Random) -> Iterator[Passage]:
    own = {passage.content for passage in (*example.relevant, example.nearest) if passage is not None}
    drawn = chance.sample(passages, min(len(passages), MISMATCHED_EACH + len(own)))
    return islice((passage for passage in drawn if passage.content not in own), MISMATCHED_EACH)


def _values(scorer: Scorer, question: str, passages: Sequence[Passage]) -> list[float]:
    texts = [passage.content for passage in passages]
    scored = score_in_time(scorer, question, texts, lambda: math.inf)
    return [score.value for score in scored.scores if score is not None]
