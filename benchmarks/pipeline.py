"""The five phases, end to end, on the embedded default: how long a question takes, how good its answer is.

    python benchmarks/pipeline.py --data ../shared/data

Ingests the passages of NQ, then asks its questions in one process, in the order of their ids, 200
candidates each. The time is that of `Pipeline.ask`, weights loaded before. The baseline is the
first sentence of the passage that the gate likes best.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles

from lara_plugins import EmbeddedIndex, ExtractiveModel, ExtractiveReader, Pipeline, load_scorer
from lara_plugins.answering.sentences import split_sentences
from lara_plugins.evaluation import contains_answer, load_dataset
from lara_plugins.evaluation.datasets import Question
from lara_plugins.pipeline import Outcome

CANDIDATES = 200
BATCH = 256


@dataclass(frozen=True)
class Asked:
    """A question and what the pipeline made of it."""

    question: Question
    outcome: Outcome


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LARA_DATA", beside)))
    parser.add_argument("--questions", type=int, default=200, help="so many, the first by id")
    arguments = parser.parse_args()
    data = load_dataset(arguments.data / "nq")
    questions = sorted(data.questions, key=lambda question: question.id)[: arguments.questions]
    with tempfile.TemporaryDirectory() as folder, EmbeddedIndex(Path(folder) / "index") as index:
        passages = list(data.passages.values())
        began = time.perf_counter()
        for start in range(0, len(passages), BATCH):
            index.upsert(passages[start : start + BATCH])
        print(f"{len(passages)} passages ingested in {time.perf_counter() - began:.1f} s")
        scorer = load_scorer("embedded")
        scorer.load()
        pipeline = Pipeline(index, scorer, ExtractiveModel(ExtractiveReader(scorer)), limit=CANDIDATES)
        report([Asked(question, pipeline.ask(question.text)) for question in questions])


def report(asked: Sequence[Asked]) -> None:
    """Print durations, answers and how they came about."""
    seconds = [one.outcome.seconds for one in asked]
    print(f"{len(asked)} questions: median {median(seconds):.3f} s, p95 {quantiles(seconds, n=20)[-1]:.3f} s")
    for phase in ("retrieval", "gate", "budget", "route", "answer"):
        spent = [decided.seconds for one in asked if (decided := one.outcome.trace.last(phase))]
        print(f"  {phase:9} median {median(spent):.3f} s")
    right = fmean(contains_answer(one.outcome.answer.evidence.value, one.question.answers) for one in asked)
    found = fmean(one.outcome.answer.evidence.answer_found for one in asked)
    first = fmean(contains_answer(opening(one.outcome), one.question.answers) for one in asked)
    print(f"answer string in the value {right:.3f}; answered {found:.3f}")
    print(f"baseline, first sentence of the best passage {first:.3f}")
    kept = [gate.facts["kept"] for one in asked if (gate := one.outcome.trace.last("gate"))]
    calls = [one.outcome.answer.calls for one in asked]
    print(f"kept: median {median(int(str(k)) for k in kept)}; calls: mean {fmean(calls):.2f}")
    regimes = Counter(
        str(route.facts["regime"]) if (route := one.outcome.trace.last("route")) else "none sent"
        for one in asked
    )
    print(f"regimes: {dict(regimes.most_common())}")
    print(f"outcomes: {dict(Counter(one.outcome.answer.outcome for one in asked).most_common())}")


def opening(outcome: Outcome) -> str:
    """The first sentence of the best passage that the gate saw."""
    return split_sentences(outcome.sources[0].text)[0].quote if outcome.sources else ""


if __name__ == "__main__":
    main()
