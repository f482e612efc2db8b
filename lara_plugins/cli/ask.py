"""``lara ask``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

from lara_plugins.answering import ExtractiveModel, ExtractiveReader
from lara_plugins.cli.render import console, print_answer, print_trace
from lara_plugins.cli.where import Hosted, opened
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate import DEFAULT_THETA, Calibration, OnEmpty, ThresholdGate, load_scorer
from lara_plugins.pipeline import Outcome, Pipeline
from lara_plugins.question import load_parser
from lara_plugins.retrieval import HybridIndex


def run(question: str, where: Path | Hosted, afford: float, gate: ThresholdGate, *, as_json: bool) -> None:
    """Answer one question from an index, for a person or, as JSON, for a program."""
    with opened(where) as index:
        outcome = pipeline_over(index, afford, gate).ask(question)
    if as_json:
        json.dump(as_plain_values(question, outcome), sys.stdout, allow_nan=False)
        sys.stdout.write("\n")
        return
    out = console()
    print_answer(out, outcome, Path.cwd())
    out.print()
    print_trace(out, outcome)


def gate_of(theta: float | None, calibration: Path | None, on_empty: str | None) -> ThresholdGate:
    """The gate that the options ask for."""
    if theta is not None and calibration is not None:
        raise InvalidArgument("--theta", theta, "give it or --calibration, not both")
    policy = cast(OnEmpty | None, on_empty)  # the gate refuses what is none
    if calibration is not None:
        return ThresholdGate(Calibration.load(calibration), on_empty=policy)
    return ThresholdGate(DEFAULT_THETA if theta is None else theta, on_empty=policy)


def pipeline_over(index: HybridIndex, afford: float, gate: ThresholdGate) -> Pipeline:
    """The embedded parts, weights loaded, so that no question pays for that."""
    scorer = load_scorer("embedded")
    scorer.load()
    load_parser()
    index.load()
    model = ExtractiveModel(ExtractiveReader(scorer))
    return Pipeline(index, scorer, model, gate=gate, afford=afford)


def as_plain_values(question: str, outcome: Outcome) -> dict[str, object]:
    """The outcome as JSON holds it; a number n of ``citations`` means the n-th of ``sources``."""
    evidence = outcome.answer.evidence
    return {
        "question": question,
        "answer": outcome.text,
        "answer_found": evidence.answer_found,
        "complete_answer_found": evidence.complete_answer_found,
        "confidence": evidence.confidence,
        "caveats": list(evidence.caveats),
        "outcome": outcome.answer.outcome,
        "calls": outcome.answer.calls,
        "seconds": outcome.seconds,
        "citations": {
            str(number): [{"start": span.start, "end": span.end, "quote": span.quote} for span in spans]
            for number, spans in outcome.answer.citations.items()
        },
        "sources": [
            {
                "id": passage.id,
                "source": passage.source,
                "heading": passage.heading,
                "text": passage.text,
                "metadata": dict(passage.metadata),
            }
            for passage in outcome.sources
        ],
        "trace": outcome.trace.to_dict(),
    }
