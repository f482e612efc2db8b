"""The budget: cut the passages to what the time left pays for."""

from __future__ import annotations

from collections.abc import Sequence

from lara_plugins.budget import (
    IN_ONE_CALL,
    WINDOW_BY_WINDOW,
    Calls,
    LatencyGovernor,
    SendPlan,
    conservative_tokens,
    plan_jointly,
)
from lara_plugins.passages import Passage
from lara_plugins.phases.gate import BEST_SHOWN
from lara_plugins.query import QueryState
from lara_plugins.trace import finite


def run_budget(
    state: QueryState, passages: Sequence[Passage], governor: LatencyGovernor, calls: Calls | None = None
) -> SendPlan:
    """Cut the passages, best first, to what the time left pays for.

    Args:
        state: the query's state with its deadline.
        passages: what the gate kept, best first.
        governor: the latency model and the policy.
        calls: which calls would read the passages; None plans them jointly with their number,
            since the question may yet be answered in one call or in several.

    Raises:
        BudgetExhausted: not one passage fits and the policy is to raise.
    """
    clock = state.clock
    began = clock.now()
    tokens = [conservative_tokens(passage.content) for passage in passages]
    state.latency = governor.latency
    if calls is None:
        plan = plan_jointly(governor, tokens, clock.time_left(), (IN_ONE_CALL, WINDOW_BY_WINDOW)).send
    else:
        plan = governor.plan(tokens, clock.time_left(), calls)
    if not state.best:
        state.best = tuple(passages[:BEST_SHOWN])
    if plan.over_budget:
        state.over_budget = frozenset({passages[0].id})
    state.trace.record(
        "budget",
        plan.reason,
        clock.now() - began,
        sent=plan.sent,
        reduced=plan.reduced,
        calls=len(plan.calls),
        predicted=plan.predicted,
        time_left=finite(plan.time_left),
        afford=clock.afford,
        over_budget=plan.over_budget,
    )
    if passages and not plan.sent:
        governor.latency.refused()
        state.leave_empty(plan.reason, "afford more time, or let the budget send the best one")
    return plan
