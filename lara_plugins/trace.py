"""What was decided at each phase of a query, why, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

Fact: TypeAlias = str | int | float | bool | list["Fact"] | dict[str, "Fact"] | None
"""A plain value that JSON can hold."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One decision.

    Args:
        name: the phase: ``hyde``, ``retrieval``, ``gate``, ``budget``, ``route`` or ``answer``.
        reason: one sentence that says what was decided and why.
        seconds: what it cost, in seconds of the query's clock.
        facts: the numbers behind it.
    """

    name: str
    reason: str
    seconds: float
    facts: Mapping[str, Fact]


@dataclass(slots=True)
class Trace:
    """The decisions of one query, in the order in which they were made.

    Attributes:
        clock: which start counts as the query's beginning.
        phases: the decisions.
        notes: what else a reader must know: warnings, truncations, repairs.
        answer: the typed answer as plain values, once there is one.
    """

    clock: str = "own start"
    phases: list[Phase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    answer: Mapping[str, Fact] | None = None

    def record(self, name: str, reason: str, seconds: float, **facts: Fact) -> None:
        """Add a decision."""
        self.phases.append(Phase(name, reason, seconds, facts))

    def amend(self, name: str, **facts: Fact) -> None:
        """Add facts to the latest decision of a phase, or nothing where there is none."""
        for place in reversed(range(len(self.phases))):
            if self.phases[place].name == name:
                phase = self.phases[place]
                self.phases[place] = replace(phase, facts={**phase.facts, **facts})
                return

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def last(self, name: str) -> Phase | None:
        """The latest decision of a phase, or None."""
        return next((phase for phase in reversed(self.phases) if phase.name == name), None)

    def to_dict(self) -> dict[str, Fact]:
        """The trace as plain values, ready for JSON."""
        return {
            "clock": self.clock,
            "phases": [
                {"phase": phase.name, "reason": phase.reason, "seconds": phase.seconds, **phase.facts}
                for phase in self.phases
            ],
            "notes": list(self.notes),
            "answer": None if self.answer is None else dict(self.answer),
        }


def finite(seconds: float) -> float | None:
    """The seconds, or None where they are infinite, which JSON does not know."""
    return seconds if math.isfinite(seconds) else None
