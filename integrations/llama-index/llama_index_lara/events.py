"""What LARA decided, on LlamaIndex's own instrumentation."""

from __future__ import annotations

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events import BaseEvent

from lara_plugins import QueryState

_dispatcher = get_dispatcher(__name__)


class LaraDecisionEvent(BaseEvent):
    """A phase of LARA has decided.

    Args:
        phase: ``gate``, ``budget``, ``route`` or ``answer``.
        reason: one sentence that says what was decided and why.
        facts: the numbers behind it.
    """

    phase: str
    reason: str
    facts: dict[str, object]

    @classmethod
    def class_name(cls) -> str:
        return "LaraDecisionEvent"


def announce(state: QueryState, phase: str) -> None:
    """Fire the event of a phase's latest decision."""
    decided = state.trace.last(phase)
    if decided is not None:
        _dispatcher.event(LaraDecisionEvent(phase=phase, reason=decided.reason, facts=dict(decided.facts)))
