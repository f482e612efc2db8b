"""A threshold for one scorer and one corpus: what it was made from, what it promises, and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lara_plugins.errors import CalibrationMismatch, CalibrationUnreadable, InvalidArgument
from lara_plugins.gate.conformal import (
    complement,
    exceedance_threshold,
    least_sample,
    recall_threshold,
    share_reaching,
)
from lara_plugins.saving import save_text

FORMAT = 1

Tier = Literal["labelled", "pseudo", "unlabelled"]

MOST_UNRELATED = 0.05
"""Where more than this share of mismatched pairs reaches theta, the scores do not separate cleanly."""

UNRELATED_KEPT = 0.01
"""The share of mismatched pairs that may reach the theta of the unlabelled tier."""

LEAST_NEAREST = 0.75
"""Where fewer of the questions' nearest passages reach that theta, the scores do not separate cleanly."""


class Calibration(BaseModel):
    """A threshold that was calibrated for one scorer.

    The tiers, by what each can promise:

    * ``labelled``: of a new question's evidence, a share of ``recall`` reaches theta, in expectation
      (split conformal; see ``recall_threshold``), as far as new questions are like the labelled ones.
    * ``pseudo``: the same on questions that were made from the passages, which are easier than a
      person's; see ``made_questions`` for by how much.
    * ``unlabelled``: of new pairs of a question and a passage that do not belong together, at most
      1 % reach theta. It promises nothing about the evidence.

    Args:
        theta: the threshold on the score's value, 0..1.
        tier: what it was made from.
        fingerprint: that of the scorer.
        n: questions that it was made from.
        recall: the share of the evidence that was asked for; None in the unlabelled tier.
        kept: the share of the evidence at hand that reaches theta; in the unlabelled tier of the
            questions' nearest passages.
        unrelated: mismatched pairs that were scored.
        unrelated_kept: the share of them that reaches theta.
        source: what questions and passages they were, for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    theta: float = Field(ge=0, le=1)
    tier: Tier
    fingerprint: str = Field(min_length=1)
    n: int = Field(ge=1)
    recall: float | None = Field(default=None, gt=0, lt=1)
    kept: float = Field(ge=0, le=1)
    unrelated: int = Field(ge=1)
    unrelated_kept: float = Field(ge=0, le=1)
    source: str = ""

    @model_validator(mode="after")
    def _recall_and_tier_agree(self) -> Self:
        if (self.recall is None) != (self.tier == "unlabelled"):
            raise ValueError("recall belongs to every tier but the unlabelled one")
        return self

    def check(self, fingerprint: str) -> None:
        """Refuse another scorer than the one it was made for.

        Args:
            fingerprint: that of the scorer whose scores are to be gated.

        Raises:
            CalibrationMismatch: the two differ.
        """
        if fingerprint != self.fingerprint:
            raise CalibrationMismatch(
                f"theta={self.theta:.3g} was calibrated for the scorer {self.fingerprint} and this one is "
                f"{fingerprint}: calibrate with this scorer, or give the other one"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file; an older one is replaced whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        content = {"format": FORMAT, **self.model_dump()}
        save_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read what ``save`` wrote.

        Raises:
            CalibrationUnreadable: the file is damaged, something else, or of another version.
            OSError: there is no such file, or it cannot be read.
        """
        data = Path(path).read_bytes()
        try:
            content = json.loads(data)
            version = content.pop("format")
            if version == FORMAT:
                return cls.model_validate(content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CalibrationUnreadable(
                f"{os.fspath(path)} is no calibration, or a damaged one: make it with lara calibrate"
            ) from error
        raise CalibrationUnreadable(
            f"{os.fspath(path)} is a calibration of format {version!r} and this version reads {FORMAT}: "
            "calibrate again"
        )


@dataclass(frozen=True, slots=True)
class NotCalibrated:
    """Why there is no theta that means something.

    Args:
        verdict: ``not attainable``: too few questions for what was asked. ``no clean separation``:
            unrelated passages score about as high as relevant ones.
        tier: what was tried.
        n: how many questions there were.
        reason: one sentence with the numbers, and the remedy.
    """

    verdict: Literal["not attainable", "no clean separation"]
    tier: Tier
    n: int
    reason: str


def from_evidence(
    relevant: Sequence[Sequence[float]],
    unrelated: Sequence[float],
    *,
    recall: float,
    tier: Literal["labelled", "pseudo"],
    fingerprint: str,
    source: str = "",
) -> Calibration | NotCalibrated:
    """The theta that keeps the evidence, if that leaves unrelated passages out.

    Args:
        relevant: for each question the values of its relevant passages, at least one.
        unrelated: values of mismatched pairs, at least one.
        recall: the share of the evidence to keep, within 0..1, both excluded.
        tier: whose questions they are.
        fingerprint: that of the scorer.
        source: what questions and passages they are.
    """
    theta = recall_threshold(relevant, recall)
    n = len(relevant)
    if theta is None:
        least = least_sample(complement(recall))
        reason = f"a recall of {recall:g} needs {least} questions with known evidence and there are {n}"
        best = f"; {n} allow a recall of {1000 * n // (n + 1) / 1000:g}" if n else ""
        return NotCalibrated("not attainable", tier, n, f"{reason}{best}: give more, or ask for less")
    passing = share_reaching(unrelated, theta)
    if passing > MOST_UNRELATED:
        return NotCalibrated(
            "no clean separation",
            tier,
            n,
            f"a recall of {recall:g} takes a theta of {theta:.3g}, which {passing:.1%} of {len(unrelated)} "
            f"unrelated pairs reach too (at most {MOST_UNRELATED:.0%} may): ask for less recall, or take "
            "another scorer",
        )
    return Calibration(
        theta=theta,
        tier=tier,
        fingerprint=fingerprint,
        n=n,
        recall=recall,
        kept=fmean(share_reaching(scores, theta) for scores in relevant),
        unrelated=len(unrelated),
        unrelated_kept=passing,
        source=source,
    )


def from_unrelated(
    unrelated: Sequence[float], nearest: Sequence[float], *, fingerprint: str, source: str = ""
) -> Calibration | NotCalibrated:
    """The theta that leaves unrelated passages out, if what lies nearest to the questions reaches it.

    Args:
        unrelated: values of mismatched pairs.
        nearest: for each question the value of the passage that a retriever finds first.
        fingerprint: that of the scorer.
        source: what questions and passages they are.
    """
    theta = exceedance_threshold(unrelated, UNRELATED_KEPT)
    n = len(nearest)
    if len(unrelated) < least_sample(UNRELATED_KEPT):
        return NotCalibrated(
            "not attainable",
            "unlabelled",
            n,
            f"leaving out {1 - UNRELATED_KEPT:.0%} of what is unrelated needs "
            f"{least_sample(UNRELATED_KEPT)} unrelated pairs and there are {len(unrelated)}: "
            "give more questions or more passages",
        )
    kept = 0.0 if theta is None else share_reaching(nearest, theta)
    if theta is None or kept < LEAST_NEAREST:
        return NotCalibrated(
            "no clean separation",
            "unlabelled",
            n,
            f"{1 - UNRELATED_KEPT:.0%} of {len(unrelated)} unrelated pairs score below "
            f"{1.0 if theta is None else theta:.3g}, and only {kept:.1%} of the passages nearest to the "
            f"{n} questions reach it (at least {LEAST_NEAREST:.0%} must): take another scorer",
        )
    return Calibration(
        theta=theta,
        tier="unlabelled",
        fingerprint=fingerprint,
        n=n,
        kept=kept,
        unrelated=len(unrelated),
        unrelated_kept=share_reaching(unrelated, theta),
        source=source,
    )


def theta_of(theta: float | Calibration | Mapping[str, object]) -> float | Calibration:
    """Theta itself, or the calibration whose plain values it was saved as.

    Raises:
        InvalidArgument: the values are not those of a calibration.
    """
    if not isinstance(theta, Mapping):
        return theta
    try:
        return Calibration.model_validate(theta)
    except ValidationError as error:
        raise InvalidArgument("theta", theta, "give a number from 0 to 1 or a Calibration") from error
