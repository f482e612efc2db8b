"""The joint plan: how many passages, in how many calls, with which cap on what is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from lara_plugins.budget.governor import LatencyGovernor, SendPlan
from lara_plugins.budget.latency import IN_THREES, ONE_BY_ONE, ONE_CALL, Call, Calls
from lara_plugins.errors import InvalidArgument

Way: TypeAlias = Literal["one_call", "in_threes", "one_by_one", "at_once"]
"""How an LLM reads passages: all in one call, in windows of three one after the other, passage by
passage, or in windows of three at once and a call that merges their answers."""

PASSAGES_PER_CALL = 10
TOKENS_PER_CALL = 6_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A way in which an LLM may read passages.

    Args:
        way: how.
        most_passages: so many at most, whatever the time; None for no limit.
        most_tokens: so many tokens of passages at most; None for no limit.
        at_once: calls that the LLM takes at once, for the way of that name.
    """

    way: Way
    most_passages: int | None = None
    most_tokens: int | None = None
    at_once: int = 1

    @property
    def calls(self) -> Calls:
        """The calls that read passages in this way."""
        match self.way:
            case "one_call":
                return ONE_CALL
            case "in_threes":
                return IN_THREES
            case "one_by_one":
                return ONE_BY_ONE
            case "at_once":
                return self._windows_at_once

    def readable(self, tokens: Sequence[int]) -> int:
        """How many of the best passages may be read in this way, whatever the time."""
        most = len(tokens) if self.most_passages is None else min(len(tokens), self.most_passages)
        if self.most_tokens is None:
            return most
        total = 0
        for position, count in enumerate(tokens[:most]):
            total += count
            if total > self.most_tokens:
                return position
        return most

    def _windows_at_once(self, tokens: Sequence[int]) -> list[Call]:
        """Rounds of windows, as long as the largest, and the call that merges their answers."""
        windows = IN_THREES(tokens)
        if len(windows) < 2:
            return windows
        largest = max(window.input_tokens for window in windows)
        rounds = math.ceil(len(windows) / self.at_once)
        window = Call(3, largest, at_once=min(self.at_once, len(windows)))
        # The merging call shows each window's cited passages; three a window are the most.
        return [window] * rounds + [Call(len(tokens), sum(tokens))]


IN_ONE_CALL = Reading("one_call", PASSAGES_PER_CALL, TOKENS_PER_CALL)
WINDOW_BY_WINDOW = Reading("in_threes")
PASSAGE_BY_PASSAGE = Reading("one_by_one")


@dataclass(frozen=True, slots=True)
class JointPlan:
    """How the passages that are sent are read.

    Args:
        reading: the way that was chosen.
        send: how many passages that way reads in the time left.
        output_cap: output tokens that are worth writing in the last call, or None for no cap.
        reason: one sentence with the numbers.
    """

    reading: Reading
    send: SendPlan
    output_cap: int | None
    reason: str


def plan_jointly(
    governor: LatencyGovernor, tokens: Sequence[int], time_left: float, readings: Sequence[Reading]
) -> JointPlan:
    """Choose the way that reads the most passages in the time left; of equal ones the first.

    Ways after the first that reads them all are not looked at.

    With a latency that does not tell calls apart, such as ``PerChunkLatency``, that is the first
    way that may read them all, and the Send_List is the published one.

    Args:
        governor: the latency model and the policy where nothing fits.
        tokens: token counts of the passages, best first.
        time_left: seconds until the deadline, infinite without one.
        readings: the ways that the question allows, the preferred one first.

    Raises:
        InvalidArgument: there is no way, or ``time_left`` is NaN.
        BudgetExhausted: not one passage fits and the governor is told to raise.
    """
    if not readings:
        raise InvalidArgument("readings", readings, "give a way of reading the passages, or several")
    settled = replace(governor, latency=governor.latency.settled())
    quiet = LatencyGovernor(settled.latency)
    plans: list[SendPlan] = []
    for reading in readings:
        plans.append(quiet.plan(tokens[: reading.readable(tokens)], time_left, reading.calls))
        if plans[-1].sent == len(tokens):
            break
    best = max(range(len(plans)), key=lambda place: plans[place].sent)
    chosen, send = readings[best], plans[best]
    if tokens and not send.sent:
        some = tokens if chosen.readable(tokens) else tokens[:1]
        send = settled.plan(some, time_left, chosen.calls)
    send = replace(send, reduced=len(tokens) - send.sent)
    others = ", ".join(
        f"{plan.sent} {other.way}" for other, plan in zip(readings, plans, strict=False) if other != chosen
    )
    reason = f"{send.reason}, read {chosen.way}" + (f" (else {others})" if others else "")
    return JointPlan(chosen, send, _cap(settled, send), reason)


def _cap(governor: LatencyGovernor, send: SendPlan) -> int | None:
    if not send.calls or send.over_budget:
        return None
    *earlier, last = send.calls
    return governor.latency.output_cap(last, send.time_left - governor.latency.predict(earlier))
