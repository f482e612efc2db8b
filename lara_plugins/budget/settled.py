"""What is known of an LLM's latency, made ready for the many predictions of one plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappush, heapreplace
from statistics import median

from lara_plugins.budget.latency import Call, LatencyModel
from lara_plugins.budget.learned import Learned

Pair = tuple[float, float]

_LEAST_PER_TOKEN = 1e-6


@dataclass(frozen=True, slots=True)
class Settled(LatencyModel):
    """Predicts as ``Learned`` does, from the few residuals that can be the quantile.

    Args:
        learned: what is known.
        pairs: for each such residual its factor on the seconds of reading, and the seconds that
            its call wrote.
        typical: the median factor on the seconds of reading, and the median seconds of a token
            that is written.
    """

    learned: Learned
    pairs: tuple[Pair, ...]
    typical: Pair

    @classmethod
    def of(cls, learned: Learned) -> Settled:
        """Make ready what is known."""
        load, per_output = learned.load, learned.load * learned.fit.per_output
        pairs = [
            (load * residual.reading, per_output * residual.writing * residual.tokens)
            for residual in learned.residuals
        ]
        most, _ = learned.place(learned.present_aim)
        reading = median([residual.reading for residual in learned.residuals] or [1.0])
        writing = median([residual.writing for residual in learned.residuals] or [1.0])
        typical = load * reading, max(per_output * writing, _LEAST_PER_TOKEN)
        return cls(learned, tuple(_largest(pairs, most)), typical)

    def predict(self, calls: Sequence[Call]) -> float:
        if any(call.max_output_tokens is not None for call in calls):
            return self.learned.predict(calls)
        if not calls:
            return 0.0
        known, count = self.learned, len(calls)
        reading = sum(known.fit.reading(call.input_tokens + known.overhead) for call in calls)
        place, beyond = known.place(known.shared_aim(calls))
        seconds = sorted([reading * factor + count * written for factor, written in self.pairs])
        return seconds[-place] * beyond

    def predict_exactly(self, calls: Sequence[Call]) -> Fraction:
        """As ``predict``, as it is in binary: an estimate has no decimals that a person wrote."""
        return Fraction(self.predict(calls))

    def output_cap(self, call: Call, seconds: float) -> int | None:
        """The output tokens with which a typical call just ends within ``seconds``.

        A call that would write more is more likely late than not, and what it writes is lost.
        """
        if not math.isfinite(seconds):
            return None
        factor, per_token = self.typical
        reading = factor * self.learned.fit.reading(call.input_tokens + self.learned.overhead)
        return max(1, int((seconds - reading) / per_token))


def _largest(pairs: Iterable[Pair], most: int) -> Iterable[Pair]:
    """The pairs that are among the ``most`` largest for some weights of their two halves.

    One to which ``most`` others are at least equal in both halves never is.
    """
    longest: list[float] = []  # a heap
    for pair in sorted(pairs, reverse=True):
        if len(longest) < most:
            heappush(longest, pair[1])
            yield pair
        elif pair[1] > longest[0]:
            heapreplace(longest, pair[1])
            yield pair
