"""What travels through every phase: a passage, its score, and a span of its text."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lara_plugins.errors import ScoreError

MetadataValue: TypeAlias = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that can be retrieved, scored, shown to an LLM and quoted.

    Args:
        id: stable identity, unique in its index.
        text: the text itself; spans and quotes refer to it.
        heading: what stands above the text when it is scored or shown (a title,
            metadata); no quote is taken from it.
        source: where it came from (a path, a URL), for people.
        metadata: whatever else is known; never changed, never scored.
    """

    id: str
    text: str
    heading: str = ""
    source: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """Heading and text, as they are embedded, scored and counted."""
        return f"{self.heading}\n{self.text}" if self.heading else self.text


@dataclass(frozen=True, slots=True)
class Score:
    """How relevant a passage is to a question.

    ``rank`` orders (the logit where there is one, so that saturated probabilities still
    differ), ``value`` is gated: a probability in 0..1.
    """

    rank: float
    value: float

    @classmethod
    def from_logit(cls, logit: float) -> Score:
        """A score whose value is the float64 sigmoid of a logit.

        Raises:
            ScoreError: the logit is NaN, infinite or no number.
        """
        logit = as_float(logit)
        if not math.isfinite(logit):
            raise ScoreError(f"a logit of {logit} is no score: check the scorer's model and input")
        # Written so that exp() only ever sees a number <= 0 and cannot overflow.
        decay = math.exp(-abs(logit))
        return cls(logit, 1.0 / (1.0 + decay) if logit >= 0 else decay / (1.0 + decay))

    @classmethod
    def from_probability(cls, probability: float) -> Score:
        """A score whose rank and value are the probability itself.

        Raises:
            ScoreError: the probability is not within 0..1.
        """
        probability = as_float(probability)
        if not 0.0 <= probability <= 1.0:  # also refuses NaN
            raise ScoreError(
                f"a probability of {probability} is outside 0..1: "
                'a scorer that returns logits must declare score_kind="logit"'
            )
        return cls(probability, probability)


_TEXTS = (str, bytes)


def as_float(raw: float | str | bytes) -> float:
    """A number of whatever type, numpy's and torch's included, as a float.

    Raises:
        ScoreError: it is none, a text that looks like one included.
    """
    try:
        if not isinstance(raw, _TEXTS):
            return float(raw)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ScoreError(f"{reprlib.repr(raw)} is no score: a scorer returns one number a passage")


@dataclass(frozen=True, slots=True)
class Span:
    """A verbatim piece of a passage: ``passage.text[start:end] == quote``."""

    passage_id: str
    start: int
    end: int
    quote: str
