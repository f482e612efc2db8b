"""Which query a part belongs to, where several run under one start.

The one inside of which it runs; else, among those nearest in the tree of runs, the one that waits
for this part, where the same question comes first. A part that no query waits for begins one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args
from uuid import UUID

from lara_plugins import QueryClock, QueryState, Trace

Part = Literal["retrieval", "gate", "budget", "route", "answer"]
"""The parts of a query, in their order; the names are those of the trace's phases."""

MOST_QUERIES = 200
"""Queries that are remembered under one start."""

RANK: dict[Part, int] = {part: rank for rank, part in enumerate(get_args(Part))}
_ANSWERED = RANK["answer"]


@dataclass(slots=True, eq=False)
class Query:
    """A query under some start.

    Attributes:
        state: what its parts share.
        questions: as its parts were given it; a chat rephrases it for the retriever alone.
        reached: rank of the furthest part that has asked for the state.
        seen: runs that its parts ran in.
        running: its parts that have not ended; only what runs inside of them can belong to them.
    """

    state: QueryState
    questions: set[str]
    reached: int
    seen: set[UUID] = field(default_factory=set)
    running: set[UUID] = field(default_factory=set)

    def waits_for(self, rank: int, question: str, around: set[UUID]) -> bool:
        """Whether a part may join it: a later one, or the same part once more for the same question.

        Several may answer over the same passages, also at once; otherwise what still runs must be
        around the part.
        """
        if self.reached == rank == _ANSWERED:
            return question in self.questions
        if not self.running <= around:
            return False
        return self.reached < rank or (self.reached == rank and question in self.questions)

    def take_part(self, path: Sequence[UUID]) -> None:
        """Remember a part that runs at the end of this path."""
        self.running.add(path[0])
        self.seen.update(path)


def queries_of(clock: QueryClock) -> list[Query]:
    """Those that are remembered, in the order in which they began."""
    return [query for query in clock.queries if isinstance(query, Query)]


def remembered(query: Query) -> Query:
    """The query, from now on among those of its clock."""
    under = query.state.clock.queries
    under.append(query)
    del under[:-MOST_QUERIES]
    return query


def waiting_query(clock: QueryClock, path: Sequence[UUID], part: Part, question: str) -> Query | None:
    """The query that waits for a part, or None.

    Args:
        clock: the clock that counts for the part.
        path: the part's run and those around it, innermost first.
        part: which part it is.
        question: the question as the part was given it.
    """
    rank, around = RANK[part], set(path)
    near = _nearest(path, queries_of(clock))
    ready = [query for query in near if query.waits_for(rank, question, around)]

    def suits(query: Query) -> tuple[bool, bool, bool, int]:
        same = question in query.questions
        return same and query.reached < _ANSWERED, query.reached < rank, same, query.reached

    # Of several that suit alike the furthest, and of these the latest: max() returns the first.
    query = max(reversed(ready), key=suits, default=None)
    return _answered_again(query) if query is not None and query.reached == _ANSWERED else query


def _nearest(path: Sequence[UUID], queries: list[Query]) -> list[Query]:
    """The queries that share the innermost run; all of them where parts are called by hand."""
    for run in path:
        near = [query for query in queries if run in query.seen]
        if near:
            return near
    return queries


def _answered_again(earlier: Query) -> Query:
    """The same passages answered once more: a trace of its own from there on."""
    before = earlier.state
    phases = [phase for phase in before.trace.phases if phase.name not in {"route", "answer"}]
    trace = Trace(before.trace.clock, phases, list(before.trace.notes))
    return remembered(
        Query(replace(before, trace=trace), set(earlier.questions), earlier.reached, set(earlier.seen))
    )
