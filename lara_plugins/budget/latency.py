"""How long calls to an LLM take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from lara_plugins.arguments import check_seconds
from lara_plugins.budget.observations import Observation
from lara_plugins.errors import NotSerializable


@dataclass(frozen=True, slots=True)
class Call:
    """One call to an LLM that would be made.

    Args:
        passages: how many passages it reads.
        input_tokens: how many tokens of passages it reads.
        max_output_tokens: the cap on what it writes, or None for the LLM's own.
        at_once: how many such calls are made at once.
    """

    passages: int
    input_tokens: int
    max_output_tokens: int | None = None
    at_once: int = 1


class LatencyModel(ABC):
    """Predicts the seconds of calls made one after the other; never less for more passages.

    A model that learns overrides what does nothing here.
    """

    @abstractmethod
    def predict(self, calls: Sequence[Call]) -> float:
        """Seconds that ``calls`` take together."""

    def predict_exactly(self, calls: Sequence[Call]) -> Fraction:
        """As ``predict``, as the decimal number that its float prints as."""
        return Fraction(str(self.predict(calls)))

    def settled(self) -> LatencyModel:
        """What the model knows now, as a model that does not change while a plan is made."""
        return self

    def output_cap(self, call: Call, seconds: float) -> int | None:
        """The output tokens that are worth writing in ``seconds``; None where nobody knows."""
        return None

    def observe(self, observation: Observation) -> None:  # noqa: B027 - a fixed model learns nothing
        """Learn from a call that was made."""

    def refused(self) -> None:  # noqa: B027
        """Learn that a query was refused, since not even its best passage was predicted to fit."""


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


def ONE_BY_ONE(tokens: Sequence[int]) -> list[Call]:  # noqa: N802 - a constant to its users
    """A call for every passage."""
    return [Call(1, count) for count in tokens]


CallPlan = Literal["auto", "one_call", "in_threes"]
"""Which calls read the passages, by name; ``auto`` plans them jointly with their number."""

CALL_PLANS: Mapping[CallPlan, Calls | None] = {"auto": None, "one_call": ONE_CALL, "in_threes": IN_THREES}


def latency_model(latency: float | LatencyModel | None) -> LatencyModel:
    """A latency model from a model, the seconds of one passage, or nothing.

    Raises:
        InvalidArgument: it is none of these.
    """
    if latency is None:
        return PerChunkLatency()
    if isinstance(latency, LatencyModel):
        return latency
    check_seconds("latency", latency, "give a LatencyModel or the seconds of one passage, such as 0.1")
    return PerChunkLatency(latency)


def serializable_seconds(latency: float | LatencyModel | None) -> float | None:
    """The seconds of one passage, from which a latency model is made again.

    Raises:
        NotSerializable: the model is of another kind.
    """
    if isinstance(latency, LatencyModel) and not isinstance(latency, PerChunkLatency):
        raise NotSerializable(
            f"the latency model {type(latency).__name__} has no name and cannot be saved: "
            "give the seconds of one passage, or none"
        )
    return latency.seconds if isinstance(latency, PerChunkLatency) else latency
