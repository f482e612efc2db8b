"""How long calls to an LLM take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lara_plugins.arguments import check_seconds


@dataclass(frozen=True, slots=True)
class Call:
    """One call to an LLM that would be made.

    Args:
        passages: how many passages it reads.
        input_tokens: how many tokens of passages it reads.
        max_output_tokens: the cap on what it writes, or None for the LLM's own.
    """

    passages: int
    input_tokens: int
    max_output_tokens: int | None = None


class LatencyModel(ABC):
    """Predicts the seconds of calls made one after the other; never less for more passages."""

    @abstractmethod
    def predict(self, calls: Sequence[Call]) -> float:
        """Seconds that ``calls`` take together."""

    def predict_exactly(self, calls: Sequence[Call]) -> Fraction:
        """As ``predict``, as the decimal number that its float prints as."""
        return Fraction(str(self.predict(calls)))


@dataclass(frozen=True, slots=True)
class PerChunkLatency(LatencyModel):
    """Each passage costs the same: Total = n * Lat_chunk.

    Args:
        seconds: Lat_chunk, the seconds of one passage; 0.1 until it has been measured.

    Raises:
        InvalidArgument: ``seconds`` is not a positive, finite number.
    """

    seconds: float = 0.1

    def __post_init__(self) -> None:
        check_seconds("seconds", self.seconds, "give the seconds of one passage, such as 0.1")

    def predict(self, calls: Sequence[Call]) -> float:
        """Seconds of ``calls``: the number of their passages times ``seconds``."""
        return float(self.predict_exactly(calls))

    def predict_exactly(self, calls: Sequence[Call]) -> Fraction:
        """As ``predict``, without rounding, so that 3 passages of 0.1 s fit 0.3 s."""
        return sum(call.passages for call in calls) * Fraction(str(self.seconds))


Calls = Callable[[Sequence[int]], list[Call]]
"""From the token counts of the passages that are sent to the calls that read them."""


def ONE_CALL(tokens: Sequence[int]) -> list[Call]:  # noqa: N802 - a constant to its users
    """All passages in one call."""
    return [Call(len(tokens), sum(tokens))] if tokens else []


def IN_THREES(tokens: Sequence[int]) -> list[Call]:  # noqa: N802 - a constant to its users
    """A call for every window of three passages: ceil(n / 3) calls."""
    windows = [tokens[start : start + 3] for start in range(0, len(tokens), 3)]
    return [Call(len(window), sum(window)) for window in windows]
