"""The contract of a cross-encoder: raw scores, block by block, with a declared scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

ScoreKind = Literal["logit", "probability"]

BLOCK_SIZE = 64
"""Passages scored between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Block:
    """The raw scores of consecutive passages, in retrieval order.

    Args:
        scores: one a passage; logits or probabilities, as the scorer declares.
        truncated: positions within the block of passages that were longer than the model's
            window and were scored on as much as fits.
    """

    scores: list[float]
    truncated: tuple[int, ...] = ()


@runtime_checkable
class Scorer(Protocol):
    """Scores passages against a question.

    Attributes:
        name: what ``load_scorer`` makes it again from; None where it cannot be named, and
            then whatever holds it cannot be serialised.
        score_kind: whether the raw scores are logits or probabilities.
        scale_known: whether a threshold of 0.3 is known to mean something on this scale.
        fingerprint: model, revision, engine, precision and maximum length; two scorers with
            one fingerprint give the same scores.
    """

    @property
    def name(self) -> str | None: ...
    @property
    def score_kind(self) -> ScoreKind: ...
    @property
    def scale_known(self) -> bool: ...
    @property
    def fingerprint(self) -> str: ...

    def load(self) -> None:
        """Load the weights now rather than at first use; safe to call again and from threads."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the scores of successive blocks of ``texts``, so that scoring can stop in time."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The raw scores of all ``texts``, in order."""
