"""Whether a latency budget holds: 10,000 queries on a virtual clock, budget by budget and policy by policy.

    python benchmarks/latency.py [--queries 10000] [--seed 1] [--grid]

A simulated LLM: log-normal time to first token that grows with the prompt, output lengths of a log-t
law, seconds a token; in the second half everything takes 1.6 times as long, and now and then some
queries in a row are throttled by two seconds. Every policy meets the same queries with the same luck,
sees a call's duration only afterwards, and reads the best k passages: in one call, in windows of three,
or passage by passage until the answer is found. A query whose calls outlive the budget is over it, or
cancelled where a deadline is enforced; what the late call would have read is lost. Last, the time that
the plug-ins themselves take.
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
    IN_THREES,
    ONE_CALL,
    CalibratedLatency,
    Call,
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
from lara_plugins.budget import ONE_BY_ONE, Calls
from lara_plugins.phases import answer_loop, record_answer, run_budget, run_gate

BUDGETS = (4.0, 6.0, 10.0)
WAYS: dict[str, Calls] = {"one call": ONE_CALL, "windows of three": IN_THREES, "one by one": ONE_BY_ONE}
LEVELS = (0.5, 0.8, 0.85, *[level / 200 for level in range(180, 200)])


def share_table(made: Sequence[Query], budget: float, way: str) -> Outcome:
    """Print who holds the budget; returns ours with the deadline."""
    half = len(made) // 2
    print(f"\nBudget {budget:g} s, {way}: share over budget, and in the worst window of {WINDOW}")
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
        outcome = run(made, budget, policy, WAYS[way])
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
        tokens = sum(query.tokens[:sent])
        call, cap = query.call(tokens), policy.latency.output_cap(Call(sent, tokens), left) or math.inf
        if call.seconds > left:
            ended["cancelled" if call.first > left else "truncated"] += 1
            ended["late, and capped before the deadline"] += (
                call.first + (call.seconds - call.first) * cap / call.written <= left
            )
        else:
            ended["in time, and capped"] += call.written > cap
        policy.saw(call, left)
    print(
        "  With the deadline no query is over budget. Of all queries, where replies are shown as they come: "
        f"{ended['truncated'] / len(made):.2%} truncated (text already shown was cut), "
        f"{ended['cancelled'] / len(made):.2%} cancelled (nothing was shown yet). The cap on output "
        f"tokens would end {ended['late, and capped before the deadline']} of the late calls by itself, and "
        f"{ended['in time, and capped']} that would have been in time."
    )


def quality_table(made: Sequence[Query], budget: float, ours: Outcome, *, whole_grid: bool) -> None:
    """Print the passages that ours reads against the best policy that cancels no more queries."""
    grid: dict[str, Policy] = {f"fixed k = {k}": Fixed(k) for k in range(1, 41)}
    grid |= {f"mean x {margin / 20:g}": Mean(margin / 20) for margin in range(20, 81)}
    grid |= {
        f"running quantile {level:g} of {window}": Mean(level=level, window=window)
        for window in (50, 100, 250, 1000)
        for level in LEVELS
    }
    outcomes = {name: run(made, budget, policy) for name, policy in grid.items()}
    if whole_grid:
        print(f"\nBudget {budget:g} s: passages read (cancelled queries), every policy of the search")
        cells = [f"{name}: {one.read} ({one.share:.2%})" for name, one in outcomes.items()]
        for start in range(0, len(cells), 4):
            print("  " + "; ".join(cells[start : start + 4]))
    rivals = {name: one for name, one in outcomes.items() if one.share <= ours.share}
    best = max(rivals, key=lambda name: rivals[name].read)
    mixed = _mixed(list(outcomes.values()), ours.share)
    print(
        f"  Ours, with the deadline, reads {ours.read} ({ours.share:.2%}): "
        f"{ours.read / rivals[best].read:.1%} of the best of those that cancel no more "
        f"({best}, {rivals[best].read}, {rivals[best].share:.2%}), "
        f"{ours.read / mixed:.1%} of what two of them, mixed by chance to cancel as many, would read."
    )


def _mixed(outcomes: Sequence[Outcome], share: float) -> float:
    """The most that is read where each query is left by chance to one of two policies."""
    most = 0.0
    for careful in [Outcome([False], 0, 0), *outcomes]:
        if careful.share > share:
            continue
        most = max(most, careful.read)
        for bold in outcomes:
            if bold.share > share:
                weight = (share - careful.share) / (bold.share - careful.share)
                most = max(most, careful.read + weight * (bold.read - careful.read))
    return most


def overhead(repeats: int = 200) -> None:
    """Print the time of gate, budget, route, plan and loop, the models taking none."""
    latency = CalibratedLatency()
    rng = random.Random(1)
    for _ in range(300):
        seconds_in_all = rng.lognormvariate(0, 0.4)
        latency.observe(Observation(rng.randint(500, 3000), seconds_in_all, seconds_in_all / 5, 100))
    passages = [Passage(f"p{n}", f"Fact {n} is written here. " * 30) for n in range(200)]
    scores = {passage.content: 0.9 - n / 30 if n < 15 else 0.01 for n, passage in enumerate(passages)}
    scorer = CallableScorer(
        lambda _, texts: [scores[text] for text in texts], "probability", scale_known=True
    )
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
            latency.observe(Observation(2000, 1.0, 0.2, 100))
            seconds.append(time.process_time() - began)
        print(f"  {shape:10} {1000 * median(seconds):.3f} ms, learning from its call included")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grid", action="store_true", help="print every policy of the search")
    arguments = parser.parse_args()
    made = queries(arguments.queries, arguments.seed)
    for budget in BUDGETS:
        ours = share_table(made, budget, "one call")
        ending_table(made, budget)
        quality_table(made, budget, ours, whole_grid=arguments.grid)
    for way in ("windows of three", "one by one"):
        for budget in BUDGETS:
            share_table(made, budget, way)
    overhead()


if __name__ == "__main__":
    main()
