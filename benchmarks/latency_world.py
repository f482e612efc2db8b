"""A simulated LLM with a heavy tail and a drift, and the policies that budget its calls."""

from __future__ import annotations

import math
import random
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lara_plugins import ONE_CALL, CalibratedLatency, Call, LatencyGovernor, Observation, PerChunkLatency
from lara_plugins.budget import ONE_BY_ONE, Calls

WINDOW = 250
RISK = 0.05
OVERHEAD = 400
WARM_UP = 30
PRIOR = PerChunkLatency(0.1)


@dataclass(frozen=True)
class Luck:
    """What an LLM makes of one call: a factor on the seconds of reading, seconds a token, output tokens."""

    first: float
    per_token: float
    written: int


@dataclass(frozen=True)
class Timed:
    """A call that was made, in seconds from its start."""

    prompt: int
    first: float
    seconds: float
    written: int


@dataclass(frozen=True)
class Query:
    """A query and its luck: what came before its calls, what the LLM makes of each, where the answer is."""

    tokens: tuple[int, ...]
    before: float
    slower: float
    throttled: float
    lucks: tuple[Luck, ...]
    answered_at: int

    def call(self, tokens: int, place: int = 0) -> Timed:
        """The call number ``place`` of the query, over passages of so many tokens."""
        luck, prompt = self.lucks[place], OVERHEAD + tokens
        first = self.slower * (0.25 + 0.0006 * prompt) * luck.first + self.throttled
        return Timed(prompt, first, first + self.slower * luck.per_token * luck.written, luck.written)


def queries(count: int, seed: int) -> list[Query]:
    """The queries, in the order in which they come."""
    rng, made, throttled = random.Random(seed), [], 0
    for number in range(count):
        throttled = throttled - 1 if throttled else rng.randint(5, 25) * (rng.random() < 1 / 400)
        passages = min(40, 1 + int(rng.expovariate(1 / 11)))
        made.append(
            Query(
                tokens=tuple(max(20, int(rng.lognormvariate(math.log(180), 0.4))) for _ in range(passages)),
                before=rng.lognormvariate(math.log(0.5), 0.3),
                slower=1.0 if number < count // 2 else 1.6,
                throttled=2.0 if throttled else 0.0,
                lucks=tuple(_luck(rng) for _ in range(passages)),
                answered_at=1 + int(rng.expovariate(0.7)),
            )
        )
    return made


def _luck(rng: random.Random) -> Luck:
    t = rng.gauss(0, 1) / math.sqrt(rng.gammavariate(2, 1 / 2))  # Student's, 4 degrees of freedom
    return Luck(
        first=rng.lognormvariate(0, 0.35),
        per_token=0.006 * rng.lognormvariate(0, 0.12),
        written=min(2000, max(5, int(math.exp(math.log(110) + 0.45 * t)))),
    )


class Policy(Protocol):
    """Chooses how many passages a query's calls read, and sees after each what it took."""

    def choose(self, tokens: Sequence[int], left: float, calls: Calls = ONE_CALL) -> int:
        """How many of the best passages are sent."""

    def fits(self, call: Call, left: float) -> bool:
        """Whether a later call of the query is still made."""

    def saw(self, call: Timed, left: float) -> None:
        """A call that had so many seconds."""


@dataclass
class Fixed:
    """The k best, whatever the time; no governor where k is unlimited."""

    k: float

    def choose(self, tokens: Sequence[int], left: float, calls: Calls = ONE_CALL) -> int:
        return int(min(len(tokens), self.k)) if left > 0 else 0

    def fits(self, call: Call, left: float) -> bool:
        return True

    def saw(self, call: Timed, left: float) -> None:
        """Learns nothing."""


@dataclass
class Constant:
    """The paper's: so many seconds a passage."""

    governor: LatencyGovernor = field(default_factory=lambda: LatencyGovernor(PRIOR))

    def choose(self, tokens: Sequence[int], left: float, calls: Calls = ONE_CALL) -> int:
        return self.governor.plan(tokens, left, calls).sent

    def fits(self, call: Call, left: float) -> bool:
        return PRIOR.predict([call]) <= left

    def saw(self, call: Timed, left: float) -> None:
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

    def choose(self, tokens: Sequence[int], left: float, calls: Calls = ONE_CALL) -> int:
        if self.sums[0] < WARM_UP:
            return Constant().choose(tokens, left, calls)
        fitting = range(1, len(tokens) + 1)
        sent = bisect_right(fitting, left, key=lambda count: self._predict(calls(tokens[:count])))
        self.refusals += not sent
        if not sent and self.ratios and not self.refusals % 10:
            self._forget()
        return sent

    def fits(self, call: Call, left: float) -> bool:
        return (PRIOR.predict([call]) if self.sums[0] < WARM_UP else self._predict([call])) <= left

    def saw(self, call: Timed, left: float) -> None:
        x, y = call.prompt - OVERHEAD, call.seconds
        if self.level is not None and self.sums[0] >= WARM_UP:
            start, slope = self._line()
            self.ratios.append(y / (start + slope * x))
            insort(self.ordered, self.ratios[-1])
            if len(self.ratios) > self.window:
                self._forget()
        for place, value in enumerate((1.0, x, y, x * x, x * y)):
            self.sums[place] += value

    def _predict(self, calls: Sequence[Call]) -> float:
        start, slope = self._line()
        factor = self.margin
        if self.level is not None and self.ordered:
            factor = self.ordered[min(len(self.ordered), math.ceil(self.level * (len(self.ordered) + 1))) - 1]
        return factor * sum(start + slope * call.input_tokens for call in calls)

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

    def __post_init__(self) -> None:
        self.latency = CalibratedLatency(risk=RISK, prior=PRIOR, warm_up=WARM_UP, overhead=OVERHEAD)
        self.governor = LatencyGovernor(self.latency)

    def choose(self, tokens: Sequence[int], left: float, calls: Calls = ONE_CALL) -> int:
        sent = self.governor.plan(tokens, left, calls).sent
        if not sent:
            self.latency.refused()
        return sent

    def fits(self, call: Call, left: float) -> bool:
        return self.latency.predict([call]) <= left

    def saw(self, call: Timed, left: float) -> None:
        if self.deadline and call.seconds > left:
            self.latency.observe(Observation(call.prompt, left, None, None, cut=True))
        else:
            shown = call.first if self.streamed else None
            self.latency.observe(Observation(call.prompt, call.seconds, shown, call.written))


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


def run(made: Iterable[Query], budget: float, policy: Policy, calls: Calls = ONE_CALL) -> Outcome:
    """Play the queries through; passage by passage, a query ends where its answer is."""
    late, read, refused = [], 0, 0
    for query in made:
        left, over = budget - query.before, False
        sent = policy.choose(query.tokens, left, calls)
        refused += not sent
        for place, call in enumerate(calls(query.tokens[:sent])):
            answered = calls is ONE_BY_ONE and place >= query.answered_at
            if over or answered or (place and not policy.fits(call, left)):
                break
            timed = query.call(call.input_tokens, place)
            policy.saw(timed, left)
            over = timed.seconds > left
            left -= timed.seconds
            read += 0 if over else call.passages
        late.append(over)
    return Outcome(late, read, refused)
