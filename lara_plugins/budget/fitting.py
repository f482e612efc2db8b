"""Least squares with coefficients that are not negative, one call after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DECAY = 0.99
"""What an earlier call weighs against the next one."""

_SWEEPS = 12
_STEADY = 30
_OUTLYING = 4.0
_RIDGE = 1.001
_LEAST_SECONDS = 1e-3

Triple = tuple[float, float, float]
Sixfold = tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of some seconds: that they are a sum of the coefficients, so weighed."""

    weights: Triple
    seconds: float


@dataclass(frozen=True, slots=True)
class LinearFit:
    """seconds = start + per_input * input tokens + per_output * output tokens.

    Every row weighs by its relative error, so that a long call counts no more than a short one,
    and an earlier one weighs less.

    Args:
        start: seconds before anything is read.
        per_input: seconds of a token that is read.
        per_output: seconds of a token that is written.
        gram: the normal equations' matrix, its upper triangle by rows.
        moments: their right side.
        rows: how many rows it has seen.
    """

    start: float = 0.3
    per_input: float = 0.0002
    per_output: float = 0.01
    gram: Sixfold = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    moments: Triple = (0.0, 0.0, 0.0)
    rows: int = 0

    def reading(self, input_tokens: float) -> float:
        """Seconds until the first token; never less for more tokens."""
        return self.start + self.per_input * input_tokens

    def after(self, rows: Sequence[Row]) -> LinearFit:
        """The fit that has also seen some rows."""
        gram = [DECAY * value for value in self.gram]
        moments = [DECAY * value for value in self.moments]
        for row in rows:
            seconds, weight = self._weighed(row)
            a, b, c = row.weights
            for place, product in enumerate((a * a, a * b, a * c, b * b, b * c, c * c)):
                gram[place] += weight * product
            for place, value in enumerate(row.weights):
                moments[place] += weight * value * seconds
        return self._fitted(gram, moments, self.rows + len(rows))

    def together(self, other: LinearFit) -> LinearFit:
        """The fit over the rows of both."""
        gram = [mine + others for mine, others in zip(self.gram, other.gram, strict=True)]
        moments = [mine + others for mine, others in zip(self.moments, other.moments, strict=True)]
        return self._fitted(gram, moments, self.rows + other.rows)

    def _fitted(self, gram: list[float], moments: list[float], rows: int) -> LinearFit:
        start, per_input, per_output = self._descended(gram, moments)
        return LinearFit(
            start=start,
            per_input=per_input,
            per_output=per_output,
            gram=(gram[0], gram[1], gram[2], gram[3], gram[4], gram[5]),
            moments=(moments[0], moments[1], moments[2]),
            rows=rows,
        )

    def _weighed(self, row: Row) -> tuple[float, float]:
        """The row's seconds, an outlier's drawn in, and its weight."""
        expected = sum(
            coefficient * weight
            for coefficient, weight in zip(
                (self.start, self.per_input, self.per_output), row.weights, strict=True
            )
        )
        if self.rows < _STEADY or expected <= 0:
            return row.seconds, 1 / max(row.seconds, _LEAST_SECONDS) ** 2
        seconds = min(max(row.seconds, expected / _OUTLYING), expected * _OUTLYING)
        return seconds, 1 / max(expected, _LEAST_SECONDS) ** 2

    def _descended(self, gram: Sequence[float], moments: Sequence[float]) -> Triple:
        """Coordinate descent from where the coefficients stand."""
        full = (
            (gram[0], gram[1], gram[2]),
            (gram[1], gram[3], gram[4]),
            (gram[2], gram[4], gram[5]),
        )
        at = [self.start, self.per_input, self.per_output]
        for _ in range(_SWEEPS):
            for i, line in enumerate(full):
                if line[i] > 0:
                    others = sum(line[j] * at[j] for j in range(3) if j != i)
                    at[i] = max(0.0, (moments[i] - others) / (line[i] * _RIDGE))
        return at[0], at[1], at[2]
