"""A simulated LLM with a heavy tail and a drift, and the policies that budget its calls."""

from __future__ import annotations

import math
import random
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lara_plugins import CalibratedLatency, Call, LatencyGovernor, Observation, PerChunkLatency

WINDOW = 250
RISK = 0.05
OVERHEAD = 400
WARM_UP = 30
PRIOR = PerChunkLatency(0.1)


@dataclass(frozen=True)
class Query:
    """A query and its luck: what came before the call, and what the LLM will make of it."""

    tokens: tuple[int, ...]
    before: float
    slower: float
    throttled: float
    first: float
    per_token: float
    written: int

    def call(self, sent: int) -> tuple[float, float]:
        """Seconds to the first token and to the last of a call over the ``sent`` best passages."""
        prompt = OVERHEAD + sum(self.tokens[:sent])
        first = self.slower * (0.25 + 0.0006 * prompt) * self.first + self.throttled
        return first, first + self.slower * self.per_token * self.written


def queries(count: int, seed: int) -> list[Query]:
    """The queries, in the order in which they come."""
    rng, made, throttled = random.Random(seed), [], 0
    for number in range(count):
        throttled = throttled - 1 if throttled else rng.randint(5, 25) * (rng.random() < 1 / 400)
        passages = min(40, 1 + int(rng.expovariate(1 / 11)))
        t = rng.gauss(0, 1) / math.sqrt(rng.gammavariate(2, 1 / 2))  # Student's, 4 degrees of freedom
        made.append(
            Query(
                tokens=tuple(max(20, int(rng.lognormvariate(math.log(180), 0.4))) for _ in range(passages)),
                before=rng.lognormvariate(math.log(0.5), 0.3),
                slower=1.0 if number < count // 2 else 1.6,
                throttled=2.0 if throttled else 0.0,
                first=rng.lognormvariate(0, 0.35),
                per_token=0.006 * rng.lognormvariate(0, 0.12),
                written=min(2000, max(5, int(math.exp(math.log(110) + 0.45 * t)))),
            )
        )
    return made


class Policy(Protocol):
    """Chooses how many passages a call reads, and sees afterwards what it took."""

    def choose(self, tokens: Sequence[int], left: float) -> int: ...

    def saw(self, query: Query, sent: int, left: float) -> None: ...


@dataclass
class Fixed:
    """The k best, whatever the time; no governor where k is unlimited."""

    k: float

    def choose(self, tokens: Sequence[int], left: float) -> int:
        return int(min(len(tokens), self.k)) if left > 0 else 0

    def saw(self, query: Query, sent: int, left: float) -> None:
        """Learns nothing."""


@dataclass
class Constant:
    """The paper's: so many seconds a passage."""

    governor: LatencyGovernor = field(default_factory=lambda: LatencyGovernor(PRIOR))

    def choose(self, tokens: Sequence[int], left: float) -> int:
        return self.governor.plan(tokens, left).sent

    def saw(self, query: Query, sent: int, left: float) -> None:
        """Learns nothing."""


@dataclass
class Mean:
    """Least squares of seconds on tokens over all calls so far, times a margin or a running quantile.

    Nobody calls where it always refuses, so every tenth refusal makes it forget its oldest call.
    """

    margin: float = 1.0
    level: float | None = None
    window: int = WINDOW
    sums: list[float] = field(default_factory=lambda: [0.0] * 5)
    ratios: deque[float] = field(default_factory=deque)
    ordered: list[float] = field(default_factory=list)
    refusals: int = 0

    def choose(self, tokens: Sequence[int], left: float) -> int:
        n, *_ = self.sums
        if n < WARM_UP:
            return Constant().choose(tokens, left)
        start, slope = self._line()
        factor = self.margin
        if self.level is not None and self.ordered:
            factor = self.ordered[min(len(self.ordered), math.ceil(self.level * (len(self.ordered) + 1))) - 1]
        sent, total = 0, 0
        for count in tokens:
            total += count
            if (start + slope * total) * factor > left:
                break
            sent += 1
        self.refusals += not sent
        if not sent and self.ratios and not self.refusals % 10:
            self._forget()
        return sent

    def saw(self, query: Query, sent: int, left: float) -> None:
        x, (_, y) = sum(query.tokens[:sent]), query.call(sent)
        if self.level is not None and self.sums[0] >= WARM_UP:
            start, slope = self._line()
            self.ratios.append(y / (start + slope * x))
            insort(self.ordered, self.ratios[-1])
            if len(self.ratios) > self.window:
                self._forget()
        for place, value in enumerate((1.0, x, y, x * x, x * y)):
            self.sums[place] += value

    def _line(self) -> tuple[float, float]:
        n, x, y, xx, xy = self.sums
        slope = max(0.0, (n * xy - x * y) / (n * xx - x * x)) if n * xx > x * x else 0.0
        return (y - slope * x) / n, slope

    def _forget(self) -> None:
        oldest = self.ratios.popleft()
        del self.ordered[bisect_right(self.ordered, oldest) - 1]


@dataclass
class Ours:
    """``CalibratedLatency`` and the governor; with a deadline a late call is seen as a cut one."""

    deadline: bool
    streamed: bool = True
    caps: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.latency = CalibratedLatency(risk=RISK, prior=PRIOR, warm_up=WARM_UP, overhead=OVERHEAD)
        self.governor = LatencyGovernor(self.latency)

    def choose(self, tokens: Sequence[int], left: float) -> int:
        sent = self.governor.plan(tokens, left).sent
        if sent:
            self.caps.append(self.latency.output_cap(Call(sent, sum(tokens[:sent])), left) or 2000)
        else:
            self.latency.refused()
        return sent

    def saw(self, query: Query, sent: int, left: float) -> None:
        prompt = OVERHEAD + sum(query.tokens[:sent])
        first, seconds = query.call(sent)
        if self.deadline and seconds > left:
            self.latency.observe(Observation(prompt, left, None, None, cut=True))
        else:
            shown = first if self.streamed else None
            self.latency.observe(Observation(prompt, seconds, shown, query.written))


@dataclass(frozen=True)
class Outcome:
    """What became of every query: whether it was over the budget, and the passages that were read."""

    late: list[bool]
    read: int
    refused: int

    @property
    def share(self) -> float:
        return sum(self.late) / len(self.late)

    def windows(self, start: int = 0, end: int | None = None) -> list[int]:
        """Late queries in every window of 250."""
        late = self.late[start:end]
        counts = [sum(late[:WINDOW])]
        for leaving, entering in zip(late, late[WINDOW:], strict=False):
            counts.append(counts[-1] + entering - leaving)
        return counts


def run(made: Iterable[Query], budget: float, policy: Policy) -> Outcome:
    """Play the queries through."""
    late, read, refused = [], 0, 0
    for query in made:
        left = budget - query.before
        sent = policy.choose(query.tokens, left)
        over = bool(sent) and query.call(sent)[1] > left
        late.append(over)
        read += 0 if over else sent
        refused += not sent
        if sent:
            policy.saw(query, sent, left)
    return Outcome(late, read, refused)
