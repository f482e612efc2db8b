"""What is known of an LLM's latency: an immutable value, and the value after one more call.

A call over x tokens that writes w tokens takes, at the usual load,

    start + per_input * x + per_output * w    seconds,

times the load, which follows the latest calls. How a call differed from that is kept as its
residual, measured *before* coefficients and load have seen the call, so that it says by how much
the next prediction will be off. Carried over to the call that is asked about, the upper quantile
of the residuals in a sliding window is the prediction (split conformal, normalised residuals).

The quantile leaves a share ``aim`` of the residuals above itself and is multiplied by exp(margin).
The margin is set by online quantile tracking (Gibbs and Candes, 2021, arXiv 2106.00193; on the
logarithm of the seconds as in Angelopoulos, Candes and Tibshirani, 2023, arXiv 2307.16895):
margin += step * (missed - aim) after every call. Whatever the latencies do, T calls with no refusal
between them hold at most aim * T + d / step misses, d being how far the margin rises until the
prediction passes the longest call. To move a factor, not the share that the quantile leaves above
itself, keeps a few late calls in a row from making the prediction longer than any call was.

A query that is refused for want of time teaches nothing, so evidence ages instead: a positive margin
fades, and lower quantiles, at last a lower load, are tried until a query fits again. A call that is
in time halves what the refusals before it have loosened, so that the next trial comes sooner; one that
misses ends it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lara_plugins.budget.fitting import LinearFit, Row
from lara_plugins.budget.latency import Call, LatencyModel
from lara_plugins.budget.observations import Observation

RISK = 0.05
"""Share of calls that may take longer than predicted."""

AIM = 0.65
"""Share of the risk that is aimed at: with 3.25 % on average, and since every miss widens the margin,
250 calls hold at most 12 misses, which is 5 %, in more than 95 of 100 cases."""

STEP = 0.1
WINDOW = 250
LOOSEN = 0.002
"""By how much a refusal raises the share that the next quantile leaves above itself."""

LOOSEST = 0.25
FADE = 0.9
"""What a refusal leaves of a positive margin."""

_LOAD_STEP = 0.08
_WIDEST_SURPRISE = math.log(3.0)
_BEYOND = 1.5
_TYPICAL_STEP = 0.05
_RELIEF = 0.98
_LEAST_SECONDS = 1e-3
_LARGEST_RATIO = 1e6
_WIDEST_MARGIN = math.log(_LARGEST_RATIO)


@dataclass(frozen=True, slots=True)
class Residual:
    """How one call differed from what was expected of it.

    Args:
        reading: actual over expected seconds until the first token.
        writing: actual over expected seconds of an output token.
        tokens: output tokens.
    """

    reading: float
    writing: float
    tokens: float


@dataclass(frozen=True, slots=True)
class Learned(LatencyModel):
    """What the calls so far say about the next one.

    Args:
        overhead: tokens of a prompt besides its passages.
        aim: share of calls that may miss their prediction, in the long run.
        margin: the logarithm of the factor on the quantile.
        load: present seconds over the usual ones.
        fit: the coefficients.
        typical_tokens: output tokens of a call, on average.
        residuals: those of the latest calls.
        observed: calls that were seen.
        missed: calls that took longer than predicted, or were cut after that.
        refusals: queries that were refused for want of time, as far as they still count.
    """

    overhead: int = 600
    aim: float = AIM * RISK
    margin: float = 0.0
    load: float = 1.0
    fit: LinearFit = field(default_factory=LinearFit)
    typical_tokens: float = 150.0
    residuals: tuple[Residual, ...] = ()
    observed: int = 0
    missed: int = 0
    refusals: int = 0

    def predict(self, calls: Sequence[Call]) -> float:
        """The upper quantile of the seconds of ``calls`` together.

        The calls of one query are taken to be late together. Of calls made at once the slowest
        counts, so the aim is shared among them.
        """
        if not calls:
            return 0.0
        reading = sum(self.fit.reading(call.input_tokens + self.overhead) for call in calls)
        return self._upper(reading, [call.max_output_tokens for call in calls], self.shared_aim(calls))

    def shared_aim(self, calls: Sequence[Call]) -> float:
        """The present aim of calls of which some are made at once."""
        return self.present_aim / max(call.at_once for call in calls)

    @property
    def present_aim(self) -> float:
        """Share that the present quantile leaves above itself."""
        return max(self.aim, min(LOOSEST, self.aim + LOOSEN * self.refusals))

    def place(self, aim: float) -> tuple[int, float]:
        """Which of the largest totals is the quantile, 1 being the largest, and what it is times."""
        count = len(self.residuals)
        place = count + 1 - math.ceil((1 - aim) * (count + 1))
        factor = math.exp(self.margin)
        return (place, factor) if place > 0 else (1, factor * _BEYOND)

    def after(self, observation: Observation) -> Learned:
        """What is known after one more call.

        A call that was cut before its predicted end says nothing about how long calls take, and
        one that was cut after it is a miss.
        """
        prompt = observation.input_tokens
        if self.residuals:
            predicted = self._upper(self.fit.reading(prompt), [None], self.present_aim)
            if observation.cut and observation.seconds < predicted:
                return self
            missed = observation.cut or observation.seconds > predicted
            margin = self.margin + STEP * (missed - self.aim)
            margin = max(-_WIDEST_MARGIN, min(_WIDEST_MARGIN, margin))
        else:
            missed, margin = False, self.margin
        written = observation.output_tokens
        tokens = self.typical_tokens if observation.cut or written is None else float(written)
        expected = self.load * (self.fit.reading(prompt) + self.fit.per_output * tokens)
        ratio = _ratio(observation.seconds, expected)
        surprise = min(_WIDEST_SURPRISE, max(-_WIDEST_SURPRISE, math.log(ratio)))
        return replace(
            self,
            margin=margin,
            load=self.load * math.exp(_LOAD_STEP * surprise),
            fit=self.fit if observation.cut else self.fit.after(self._rows(observation, tokens)),
            typical_tokens=self.typical_tokens + _TYPICAL_STEP * (tokens - self.typical_tokens),
            residuals=(*self.residuals, self._residual(observation, tokens, ratio))[-WINDOW:],
            observed=self.observed + 1,
            missed=self.missed + missed,
            refusals=0 if missed else self.refusals // 2,
        )

    def after_refusal(self) -> Learned:
        """What is known after a query for which no call was made, for want of time."""
        # Where lower quantiles do not help, the load is taken to have gone down.
        load = self.load * _RELIEF if self.present_aim >= LOOSEST else self.load
        return replace(
            self,
            margin=self.margin * (FADE if self.margin > 0 else 1.0),
            load=load,
            refusals=self.refusals + 1,
        )

    def together(self, other: Learned) -> Learned:
        """What two workers know together; of margins the more careful one counts."""
        seen = self.observed + other.observed
        if not seen:
            return self
        share = self.observed / seen
        return replace(
            self,
            margin=max(self.margin, other.margin),
            load=self.load**share * other.load ** (1 - share),
            fit=self.fit.together(other.fit),
            typical_tokens=share * self.typical_tokens + (1 - share) * other.typical_tokens,
            residuals=_interleaved(self.residuals, other.residuals),
            observed=seen,
            missed=self.missed + other.missed,
        )

    def _upper(self, reading: float, caps: Sequence[int | None], aim: float) -> float:
        """The conformal quantile of the residuals, carried over to calls with so much to read."""
        reading *= self.load
        per_output = self.load * self.fit.per_output
        uncapped = caps.count(None)
        capped = [cap for cap in caps if cap is not None]
        written = [
            residual.writing
            * (
                uncapped * residual.tokens
                + (sum(min(cap, residual.tokens) for cap in capped) if capped else 0)
            )
            for residual in self.residuals
        ]
        seconds = sorted(
            [
                reading * residual.reading + per_output * tokens
                for residual, tokens in zip(self.residuals, written, strict=True)
            ]
        )
        place, beyond = self.place(aim)
        return seconds[-place] * beyond

    def _rows(self, observation: Observation, tokens: float) -> list[Row]:
        prompt, first = float(observation.input_tokens), observation.first_token
        if first is None:
            return [Row((1.0, prompt, tokens), observation.seconds)]
        return [Row((1.0, prompt, 0.0), first), Row((0.0, 0.0, tokens), observation.seconds - first)]

    def _residual(self, observation: Observation, tokens: float, ratio: float) -> Residual:
        if observation.first_token is None or observation.cut:
            return Residual(ratio, ratio, tokens)
        rest = observation.seconds - observation.first_token
        reading = _ratio(observation.first_token, self.load * self.fit.reading(observation.input_tokens))
        return Residual(reading, _ratio(rest, self.load * self.fit.per_output * tokens), tokens)


def _ratio(seconds: float, expected: float) -> float:
    """Actual over expected seconds; times too short to measure are a millisecond."""
    return min(_LARGEST_RATIO, max(seconds, _LEAST_SECONDS) / max(expected, _LEAST_SECONDS))


def _interleaved(mine: Sequence[Residual], others: Sequence[Residual]) -> tuple[Residual, ...]:
    """The latest of both, in turn."""
    if mine == others:
        return tuple(mine)
    half = WINDOW // 2
    kept = max(half, WINDOW - len(others)), max(half, WINDOW - len(mine))
    return (*mine[-kept[0] :], *others[-kept[1] :])
