"""Tokens sent by dispatch against one call over everything, at what answer accuracy.

    python benchmarks/dispatch.py --data ../shared/data --questions 400

NQ over an embedded index: the candidates are gated once a question, the best ten that are kept
are answered twice, by the extractive reader: in one call, and as the shape of the question asks
for. An answer is right where it holds an accepted one. Tokens are a third of the characters, of
the passages alone and of the whole prompt with its template and contract.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lara_plugins import (
    Answer,
    Ask,
    EmbeddedIndex,
    ExtractiveModel,
    ExtractiveReader,
    Passage,
    QueryState,
    Reply,
    ThresholdGate,
    answer_in_one_call,
    drive,
    load_scorer,
)
from lara_plugins.answering import ANSWER_TEMPLATE, Loop, prompt_parts, prompt_suffix
from lara_plugins.budget import conservative_tokens
from lara_plugins.evaluation import contains_answer, load_dataset
from lara_plugins.evaluation.datasets import Question
from lara_plugins.phases import answer_loop, run_gate, run_retrieval

BATCH = 256
ONE_CALL_HOLDS = 10


@dataclass(frozen=True)
class Answered:
    """What one way of answering a question came to.

    Args:
        right: whether the answer holds an accepted one.
        answer: the answer and how its loop ended.
        passage_tokens: tokens of the passages that were sent, over all calls.
        prompt_tokens: tokens of the whole prompts.
    """

    right: bool
    answer: Answer
    passage_tokens: int
    prompt_tokens: int


def main() -> None:
    """Answer the questions both ways and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LARA_DATA", beside)))
    parser.add_argument("--questions", type=int, default=400, help="so many, the first by id")
    parser.add_argument("--candidates", type=int, default=30, help="how many the gate sees")
    arguments = parser.parse_args()
    data = load_dataset(arguments.data / "nq")
    questions = sorted(data.questions, key=lambda question: question.id)[: arguments.questions]
    scorer = load_scorer("embedded")
    model = ExtractiveModel(ExtractiveReader(scorer))
    ways: dict[str, list[Answered]] = {"always in one call": [], "dispatch": [], "dispatch, escalating": []}
    regimes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, EmbeddedIndex(Path(folder) / "index") as index:
        passages = list(data.passages.values())
        for start in range(0, len(passages), BATCH):
            index.upsert(passages[start : start + BATCH])
        for question in questions:
            state = QueryState()
            found = run_retrieval(state, question.text, index, arguments.candidates)
            candidates = [match.passage for match in found]
            gate = ThresholdGate(max_k=ONE_CALL_HOLDS)
            decision = run_gate(state, question.text, candidates, scorer, gate).decision
            kept = [candidates[i] for i in decision.kept]
            if not kept:
                regimes["nothing kept"] += 1
                continue
            loops = (
                answer_in_one_call(question.text, kept),
                answer_loop(state, question.text, kept),
                answer_loop(state, question.text, kept, escalate=True),
            )
            for outcomes, loop in zip(ways.values(), loops, strict=True):
                outcomes.append(answered(question, loop, model))
            route = state.trace.last("route")
            regimes[str(route.facts["regime"]) if route else "none"] += 1
    report(len(questions), regimes, ways)


def answered(question: Question, loop: Loop, model: ExtractiveModel) -> Answered:
    """Drive a loop and count what it sends."""
    asks: list[Ask] = []

    def call(ask: Ask) -> Reply:
        asks.append(ask)
        return Reply(model.ask(ask).raw)

    answer = drive(loop, call)
    right = answer.evidence.answer_found and contains_answer(answer.evidence.value, question.answers)
    return Answered(right, answer, total(asks, of_passages), total(asks, of_prompt))


def total(asks: Sequence[Ask], tokens_of: Callable[[Ask], int]) -> int:
    """Tokens over all asks."""
    return sum(tokens_of(ask) for ask in asks)


def of_passages(ask: Ask) -> int:
    """Tokens of the passages that an ask shows."""
    shown: list[Passage] = [item.passage for item in ask.passages]
    return sum(conservative_tokens(passage.content) for passage in shown)


def of_prompt(ask: Ask) -> int:
    """Tokens of the prompt that a text model is sent."""
    parts = prompt_parts(ask)
    prompt = ANSWER_TEMPLATE.format(context=parts.context, question=parts.question)
    return conservative_tokens(prompt + prompt_suffix(ask, as_tool=False))


def report(asked: int, regimes: Counter[str], ways: dict[str, list[Answered]]) -> None:
    """Print accuracy, calls and tokens of each way, a question."""
    print(f"{asked} questions: " + ", ".join(f"{name} {count}" for name, count in regimes.most_common()))
    base = ways["always in one call"]
    for name, outcomes in ways.items():
        right = fmean(outcome.right for outcome in outcomes)
        calls = fmean(outcome.answer.calls for outcome in outcomes)
        tokens = fmean(outcome.passage_tokens for outcome in outcomes)
        prompt = fmean(outcome.prompt_tokens for outcome in outcomes)
        of_tokens = tokens / fmean(outcome.passage_tokens for outcome in base)
        of_prompt_tokens = prompt / fmean(outcome.prompt_tokens for outcome in base)
        print(
            f"{name:21} right {right:.3f}   calls {calls:.2f}  passage tokens {tokens:5.0f} ({of_tokens:.0%})"
            f"   prompt tokens {prompt:5.0f} ({of_prompt_tokens:.0%})"
        )
    exits = Counter(o.answer.outcome for o in ways["dispatch"])
    print("exits of dispatch: " + ", ".join(f"{name} {count}" for name, count in exits.most_common()))


if __name__ == "__main__":
    main()
