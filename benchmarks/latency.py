"""Whether a latency budget holds: 10,000 queries on a virtual clock, budget by budget and policy by policy.

    python benchmarks/latency.py [--queries 10000] [--seed 1]

A simulated LLM: log-normal time to first token that grows with the prompt, output lengths of a log-t
law, seconds a token; in the second half everything takes 1.6 times as long, and now and then some
queries in a row are throttled by two seconds. Every policy meets the same queries with the same luck,
sees a call's duration only afterwards, and reads the best k passages in one call. A query whose call
outlives the budget is over it, or cancelled where a deadline is enforced; what it would have read is
lost. Last, the time that the plug-ins themselves take.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from statistics import median

from latency_world import RISK, WINDOW, Constant, Fixed, Mean, Ours, Outcome, Policy, Query, queries, run

from lara_plugins import (
    CalibratedLatency,
    CallableScorer,
    LatencyGovernor,
    Observation,
    Passage,
    QueryClock,
    QueryState,
    Reply,
    ThresholdGate,
    drive,
)
from lara_plugins.phases import answer_loop, record_answer, run_budget, run_gate

BUDGETS = (4.0, 6.0, 10.0)


def share_table(made: Sequence[Query], budget: float) -> Outcome:
    """Print who holds the budget; returns ours with the deadline."""
    half = len(made) // 2
    print(f"\nBudget {budget:g} s: share over budget, and in the worst window of {WINDOW}")
    print(f"{'':32}  overall before  after | worst before  after | windows within 5 %   read refused")
    rows: list[tuple[str, Policy]] = [
        ("no governor", Fixed(math.inf)),
        ("the paper's constant, 0.1 s", Constant()),
        *[(f"mean, margin {margin:g}", Mean(margin)) for margin in (1.0, 1.3, 2.0)],
        ("ours, whole replies", Ours(deadline=False, streamed=False)),
        ("ours, streamed replies", Ours(deadline=False)),
        ("ours, with the deadline: cancelled", Ours(deadline=True)),
    ]
    for name, policy in rows:
        outcome = run(made, budget, policy)
        late, counts = outcome.late, outcome.windows()
        shares = outcome.share, sum(late[:half]) / half, sum(late[half:]) / (len(late) - half)
        worst = (max(counts), max(outcome.windows(0, half)), max(outcome.windows(half)))
        held = sum(count <= RISK * WINDOW for count in counts) / len(counts)
        print(
            f"{name:34}"
            + " ".join(f"{share:6.2%}" for share in shares)
            + " | "
            + " ".join(f"{count / WINDOW:6.1%}" for count in worst)
            + f" | {held:18.1%} {outcome.read:6} {outcome.refused:7}"
        )
    return outcome


def ending_table(made: Sequence[Query], budget: float) -> None:
    """Print how the late calls of ours with the deadline end: truncated and cancelled apart."""
    policy, ended = Ours(deadline=True), Counter[str]()
    for query in made:
        left = budget - query.before
        sent = policy.choose(query.tokens, left)
        if not sent:
            continue
        first, seconds = query.call(sent)
        cap = policy.caps[-1]
        if seconds > left:
            ended["cancelled" if first > left else "truncated"] += 1
            ended["late, and capped before the deadline"] += (
                first + (seconds - first) * cap / query.written <= left
            )
        else:
            ended["in time, and capped"] += query.written > cap
        policy.saw(query, sent, left)
    print(
        "  With the deadline no query is over budget. Of all queries, where replies are shown as they come: "
        f"{ended['truncated'] / len(made):.2%} truncated (text already shown was cut), "
        f"{ended['cancelled'] / len(made):.2%} cancelled (nothing was shown yet). The cap on output "
        f"tokens would end {ended['late, and capped before the deadline']} of the late calls by itself, and "
        f"{ended['in time, and capped']} that would have been in time."
    )


def quality_table(made: Sequence[Query], budget: float, ours: Outcome) -> None:
    """Print the passages that ours reads against the best policy that cancels no more calls."""
    grid: dict[str, Policy] = {f"fixed k = {k}": Fixed(k) for k in range(1, 41)}
    grid |= {f"mean x {margin / 20:g}": Mean(margin / 20) for margin in range(20, 81)}
    grid |= {
        f"running quantile {level:g} of {window}": Mean(level=level, window=window)
        for window in (50, 100, 250, 1000)
        for level in (0.5, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)
    }
    outcomes = {name: run(made, budget, policy) for name, policy in grid.items()}
    print(f"\nBudget {budget:g} s: passages read (cancelled calls), every policy of the search")
    cells = [f"{name}: {one.read} ({one.share:.2%})" for name, one in outcomes.items()]
    for start in range(0, len(cells), 4):
        print("  " + "; ".join(cells[start : start + 4]))
    rivals = {name: one for name, one in outcomes.items() if one.share <= ours.share}
    best = max(rivals, key=lambda name: rivals[name].read)
    print(
        f"  ours, with the deadline: {ours.read} ({ours.share:.2%}), {ours.read / rivals[best].read:.1%} of "
        f"the best of those that cancel no more: {best}, {rivals[best].read} ({rivals[best].share:.2%})"
    )


def overhead(repeats: int = 200) -> None:
    """Print the time of gate, budget, route, plan and loop, the models taking none."""
    latency = CalibratedLatency()
    rng = random.Random(1)
    for _ in range(300):
        latency.observe(Observation(rng.randint(500, 3000), rng.lognormvariate(0, 0.4), 0.2, 100))
    passages = [Passage(f"p{n}", f"Fact {n} is written here. " * 30) for n in range(200)]
    scores = [0.9 - n / 30 if n < 15 else 0.01 for n in range(200)]
    scorer = CallableScorer(lambda question, texts: scores[: len(texts)], "probability", scale_known=True)
    found = {"answer_found": True, "complete_answer_found": True, "value": "Fact 0 [1]"}
    said = {**found, "evidence": [{"passage": 1, "quote": "Fact 0 is"}]}
    reply = Reply(json.dumps(said | {"changed": True, "answer": "Fact 0 [1]", "complete": True}), 5.0)
    shapes = {"a lookup": "How tall is the tower?", "a listing": "Which towers were completed?"}
    print(
        "\nProcessor time of all plug-ins of a query, models excluded, 200 candidates, 15 kept, "
        f"median of {repeats}:"
    )
    for shape, question in shapes.items():
        seconds = []
        for _ in range(repeats):
            began = time.process_time()
            state = QueryState(clock=QueryClock(6.0), latency=latency)
            gated = run_gate(state, question, passages, scorer, ThresholdGate())
            kept = [passages[place] for place in gated.decision.kept]
            sent = kept[: run_budget(state, kept, LatencyGovernor(latency)).sent]
            record_answer(state, drive(answer_loop(state, question, sent), lambda ask: reply))
            seconds.append(time.process_time() - began)
        print(f"  {shape:10} {1000 * median(seconds):.3f} ms")
    began = time.process_time()
    for _ in range(repeats):
        latency.observe(Observation(1500, 1.0, 0.2, 100))
    print(f"  learning from a call {1000 * (time.process_time() - began) / repeats:.3f} ms")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    made = queries(arguments.queries, arguments.seed)
    ours = {}
    for budget in BUDGETS:
        ours[budget] = share_table(made, budget)
        ending_table(made, budget)
    for budget in BUDGETS:
        quality_table(made, budget, ours[budget])
    overhead()


if __name__ == "__main__":
    main()
