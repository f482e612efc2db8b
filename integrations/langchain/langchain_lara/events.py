"""What LARA decided, as a custom event of the run that decided it."""

from __future__ import annotations

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableConfig

from lara_plugins import QueryState

DECISION = "lara_decision"
"""The event's name; its data holds ``phase``, ``reason`` (a sentence), ``facts`` (numbers) and ``notes``."""

DRAFT = "lara_draft"
"""The event of an answer that later windows may change; its data holds ``window`` and ``answer``."""


def announce(state: QueryState, phase: str, config: RunnableConfig) -> None:
    """Dispatch a phase's latest decision.

    Args:
        state: the query's state.
        phase: ``retrieval``, ``gate``, ``budget``, ``route`` or ``answer``.
        config: the config of the run that decided, with its child callbacks.
    """
    data = _decision(state, phase)
    if data is not None:
        dispatch_custom_event(DECISION, data, config=config)


async def aannounce(state: QueryState, phase: str, config: RunnableConfig) -> None:
    """As ``announce``."""
    data = _decision(state, phase)
    if data is not None:
        await adispatch_custom_event(DECISION, data, config=config)


def _decision(state: QueryState, phase: str) -> dict[str, object] | None:
    decided = state.trace.last(phase)
    if decided is None:
        return None
    return {
        "phase": phase,
        "reason": decided.reason,
        "facts": dict(decided.facts),
        "notes": list(state.trace.notes),
    }
