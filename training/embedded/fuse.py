"""Fit the fusion's weights and its scale on the questions set apart for choosing.

    python fuse.py DATA TARGET

TARGET is what ``export.py`` wrote; its ``config.json`` receives the weights. They are those of a
logistic regression over BM25's ten best passages of each choosing question. Scale and bias then
put sigmoid 0.3 where 95 % of the relevant passages of NQ and SQuAD 2.0 score at least that, with
the likeliest scale under this constraint (Platt, "Probabilistic outputs for support vector
machines", 1999).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from candidates import Task, evidence_of, pooled, tasks
from figures import KEEP, measure
from numpy.typing import NDArray
from questions import Floats
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

THETA_LOGIT = float(np.log(0.3 / 0.7))
REGULARISATION = 10.0
SCALED_ON = ("nq", "squad2")


def fit_weights(evidence: Floats, labels: NDArray[np.int64]) -> Floats:
    """Weights and bias of the logistic regression; its inputs are standardised for the penalty's sake."""
    mean, deviation = evidence.mean(0), evidence.std(0)
    model = LogisticRegression(C=REGULARISATION).fit((evidence - mean) / deviation, labels)
    weights = model.coef_[0] / deviation
    return np.append(weights, model.intercept_[0] - weights @ mean)


def fit_scale(scores: Floats, labels: NDArray[np.int64], point: float) -> float:
    """The scale of the likeliest sigmoid that is 0.3 at the operating point."""
    signs = np.where(labels == 1, 1.0, -1.0)

    def loss(log_scale: float) -> float:
        logits = np.exp(log_scale) * (scores - point) + THETA_LOGIT
        return float(np.logaddexp(0.0, -signs * logits).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def with_lexical(task: Task, evidence: Sequence[Floats]) -> list[Floats]:
    """The evidence with BM25 as a third column."""
    return [np.column_stack(columns) for columns in zip(evidence, task.lexical, strict=True)]


def show(name: str, nq: Task, evidence: Sequence[Floats], weights: Floats) -> None:
    """One line of figures on NQ's choosing questions."""
    print(f"| {name} | {measure(nq.questions, nq.candidates, [e @ weights for e in evidence])} |")


def main() -> None:
    """Fit on the choosing questions of DATA, and write into TARGET's config.json."""
    parser = argparse.ArgumentParser(description="Fit the embedded scorer's fusion and scale.")
    parser.add_argument("data", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    chosen = tasks(arguments.data, "choose")
    found = {task.name: evidence_of(arguments.target, task) for task in chosen}
    evidence, labels = pooled(chosen, found)
    weights = fit_weights(evidence, labels)

    nq = next(task for task in chosen if task.name == "nq")
    print("| NQ, choosing questions | R@1 | MRR | AUC | kept |\n|---|---|---|---|---|")
    show("BM25", nq, [row[:, None] for row in nq.lexical], np.ones(1))
    show("wordllama cosine", nq, found["nq"], np.array([0.0, 1.0]))
    show("cross-encoder", nq, found["nq"], np.array([1.0, 0.0]))
    show("cross-encoder + cosine", nq, found["nq"], weights[:-1])
    lexical = {task.name: with_lexical(task, found[task.name]) for task in chosen}
    all_three = fit_weights(*pooled(chosen, lexical))
    show(f"cross-encoder + cosine + BM25 (weight {all_three[2]:.2f})", nq, lexical["nq"], all_three[:-1])

    scaled_on = [task for task in chosen if task.name in SCALED_ON]
    scaled_evidence, scaled_labels = pooled(scaled_on, found)
    point = float(np.quantile((scaled_evidence @ weights[:-1])[scaled_labels == 1], 1 - KEEP))
    scores = evidence @ weights[:-1]
    scale = fit_scale(scores, labels, point)
    fused = [*(scale * weights[:-1]), THETA_LOGIT - scale * point]
    names = ("cross_encoder", "similarity", "bias")
    config_file = arguments.target / "config.json"
    config = json.loads(config_file.read_text("utf-8"))
    config["lara"]["fusion"] = {
        name: round(float(value), 4) for name, value in zip(names, fused, strict=True)
    }
    config_file.write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    print(config["lara"]["fusion"])


if __name__ == "__main__":
    main()
