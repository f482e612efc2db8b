"""The latency governor: how many of the best passages the time left can pay for."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Literal, get_args

from lara_plugins.arguments import check_choice
from lara_plugins.budget.latency import ONE_CALL, Call, Calls, LatencyModel, PerChunkLatency
from lara_plugins.errors import BudgetExhausted, InvalidArgument

OnExhausted = Literal["abstain", "send_best", "raise"]


@dataclass(frozen=True, slots=True)
class SendPlan:
    """How many of the best passages are sent.

    Args:
        sent: the length of the Send_List, a prefix of the passages in rank order.
        reduced: how many passages were dropped for want of time.
        predicted: seconds that the calls over the Send_List are predicted to take.
        time_left: seconds that there were.
        calls: the calls that would be made.
        over_budget: True where the one passage sent does not fit (``send_best``).
        reason: one sentence with the numbers.
    """

    sent: int
    reduced: int
    predicted: float
    time_left: float
    calls: tuple[Call, ...]
    over_budget: bool
    reason: str


@dataclass(frozen=True, slots=True)
class LatencyGovernor:
    """Sends the longest prefix of the passages whose predicted time fits the time left.

    With ``PerChunkLatency`` that is the published rule: Exceeded = max(0, n * Lat_chunk -
    L_budget), Reduce = min(n, ceil(Exceeded / Lat_chunk)), and the Send_List holds the
    n - Reduce best. It always fits a budget that is not negative, and one passage more would
    not. Computed exactly, in fractions.

    Args:
        latency: predicts the seconds of calls.
        on_exhausted: what to do where not even one passage fits: ``abstain`` sends none,
            ``send_best`` sends the best one and flags it, outside the guarantee, ``raise``
            raises.

    Raises:
        InvalidArgument: ``latency`` is no latency model, or an unknown policy.
    """

    latency: LatencyModel = field(default_factory=PerChunkLatency)
    on_exhausted: OnExhausted = "abstain"

    def __post_init__(self) -> None:
        if not isinstance(self.latency, LatencyModel):
            raise InvalidArgument(
                "latency", self.latency, "give a LatencyModel, such as PerChunkLatency(0.1)"
            )
        check_choice("on_exhausted", self.on_exhausted, get_args(OnExhausted))

    def plan(self, tokens: Sequence[int], time_left: float, calls: Calls = ONE_CALL) -> SendPlan:
        """Plan what is sent.

        Args:
            tokens: token counts of the passages, best passage first.
            time_left: L_budget in seconds; negative once the deadline has passed, infinite
                where there is none.
            calls: which calls would read a list of passages.

        Raises:
            InvalidArgument: ``time_left`` is NaN.
            BudgetExhausted: not one passage fits and ``on_exhausted`` is ``raise``.
        """
        if math.isnan(time_left):
            raise InvalidArgument("time_left", time_left, "give the seconds until the deadline")

        latency = self.latency.settled()

        @cache
        def cost(count: int) -> Fraction:
            return latency.predict_exactly(calls(tokens[:count]))

        sent = len(tokens)
        if math.isfinite(time_left):
            budget = max(Fraction(0), Fraction(str(time_left)))
            if cost(sent) > budget:
                sent = bisect_right(range(1, sent), budget, key=cost)
        elif time_left < 0:
            sent = 0
        over_budget = sent == 0 and bool(tokens) and self.on_exhausted == "send_best"
        if over_budget:
            sent = 1
        elif sent == 0 and tokens and self.on_exhausted == "raise":
            raise BudgetExhausted(
                f"the best passage needs {float(cost(1)):.3g} s and {time_left:.3g} s are left: "
                "afford more time, or set on_exhausted to abstain or send_best"
            )
        predicted = float(cost(sent))
        return SendPlan(
            sent=sent,
            reduced=len(tokens) - sent,
            predicted=predicted,
            time_left=time_left,
            calls=tuple(calls(tokens[:sent])),
            over_budget=over_budget,
            reason=_reason(len(tokens), sent, predicted, time_left, over_budget),
        )


def _reason(total: int, sent: int, predicted: float, time_left: float, over_budget: bool) -> str:
    if not total:
        return "there was no passage to send"
    time = "without a deadline" if time_left == math.inf else f"with {time_left:.3g} s left"
    if over_budget:
        return f"the best of {total} passages is sent over budget, {predicted:.3g} s {time}"
    if not sent:
        return f"none of {total} passages fits {time}"
    return f"{sent} of {total} passages fit, {predicted:.3g} s {time}"
