"""Find the scaling that puts an exported cross-encoder's operating point at 0.3.

    python calibrate.py DATA TARGET

DATA is the folder of the benchmark sets, TARGET a folder that ``export.py`` wrote. A raw logit
x becomes ``scale * x + shift``. The operating point t is the raw logit that keeps ``KEEP`` of
the relevant NQ passages among BM25's candidates, and ``scale * t + shift = logit(0.3)`` fixes
the shift. The scale is the most likely one under that constraint (Platt, "Probabilistic
outputs for support vector machines", 1999) on labelled pairs of four sets. Both are written
into TARGET's ``config.json``, and the figures of the model card to the standard output.

A candidate without a label that contains an answer is neither relevant nor irrelevant here.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from lara_plugins.gate.engines.onnx import OnnxCrossEncoder

KEEP = 0.985
THETA_LOGIT = float(np.log(0.3 / 0.7))
CANDIDATES = 50
SETS = {"nq": 400, "squad2": 200, "hotpotqa": 200, "clapnq": 150}
"""Questions sampled of each set that the scale is fitted on; all were in the model's training."""

CHUNK = 1000
"""Characters of a chunk of the technical documents, the set that was not."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A question, the positions of its relevant passages, and its short answers."""

    text: str
    relevant: frozenset[int]
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """Scores of the candidates of each question, best BM25 first; labels 1, 0, or -1 for unclear."""

    scores: Floats
    labels: NDArray[np.int64]

    def share_kept(self, label: int, threshold: float) -> float:
        """Share of the candidates with a label that score at least the threshold."""
        return float(np.mean(self.scores[self.labels == label] >= threshold))

    def ranking(self, scores: Floats) -> tuple[float, float]:
        """R@1 and MRR of BM25's top ten, reordered by the scores."""
        order = np.argsort(-scores[:, :10], axis=1, kind="stable")
        hits = np.take_along_axis(self.labels[:, :10], order, axis=1) == 1
        reciprocal = np.where(hits.any(axis=1), 1 / (hits.argmax(axis=1) + 1), 0.0)
        return float(hits[:, 0].mean()), float(reciprocal.mean())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def load_beir(folder: Path) -> tuple[list[str], list[Question]]:
    """Passages (title above text, as they are scored in use) and questions with labels."""
    corpus = read_lines(folder / "corpus.jsonl")
    texts = [f"{row['title']}\n{row['text']}" if row.get("title") else str(row["text"]) for row in corpus]
    position = {row["_id"]: index for index, row in enumerate(corpus)}
    relevant: dict[str, set[int]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        query, passage, grade = line.split("\t")
        if int(grade) > 0:
            relevant.setdefault(query, set()).add(position[passage])
    questions = []
    for row in read_lines(folder / "queries.jsonl"):
        answers = row.get("answers") or []
        short = tuple(answer.lower() for answer in answers if len(answer) < 60)
        if row["_id"] in relevant:
            questions.append(Question(row["text"], frozenset(relevant[row["_id"]]), short))
    return texts, questions


def load_documents(folder: Path) -> tuple[list[str], list[Question]]:
    """Paragraphs packed into chunks; a chunk is relevant that holds a quote's beginning."""
    chunks: list[tuple[str, str]] = []
    for path in sorted((folder / "docs").iterdir()):
        chunk = ""
        for line in path.read_text("utf-8").splitlines(keepends=True):
            if chunk and len(chunk) + len(line) > CHUNK:
                chunks.append((path.name, chunk))
                chunk = ""
            chunk += line
        chunks.append((path.name, chunk))
    questions = []
    for row in read_lines(folder / "queries.jsonl"):
        found = {
            index
            for index, (name, chunk) in enumerate(chunks)
            for quote in row["evidence"]
            if quote["doc"] == name and quote["quote"].splitlines()[0][:60] in chunk
        }
        if found:
            questions.append(Question(row["text"], frozenset(found), ()))
    return [chunk for _, chunk in chunks], questions


def bm25(texts: list[str], queries: list[str]) -> Floats:
    """BM25 (k1 1.2, b 0.75) of every text for every query, shape (queries, texts)."""
    words = CountVectorizer(token_pattern=r"(?u)\w+")  # noqa: S106
    counts = words.fit_transform(texts).astype(float).tocoo()
    lengths = np.bincount(counts.row, counts.data, len(texts))
    frequency = np.bincount(counts.col, minlength=counts.shape[1])
    idf = np.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
    norm = 1.2 * (0.25 + 0.75 * lengths[counts.row] / lengths.mean())
    weights = counts.data * 2.2 / (counts.data + norm) * idf[counts.col]
    weighted = csr_matrix((weights, (counts.row, counts.col)), shape=counts.shape)
    scores: Floats = (words.transform(queries) @ weighted.T).toarray()
    return scores


def judge(model: OnnxCrossEncoder, texts: list[str], questions: list[Question]) -> Judged:
    """Score BM25's best candidates of each question."""
    first = bm25(texts, [question.text for question in questions])
    scores, labels = [], []
    for question, row in zip(questions, first, strict=True):
        candidates = np.argsort(-row, kind="stable")[:CANDIDATES]
        scores.append(model.score(question.text, [texts[index] for index in candidates]))
        labels.append([_label(question, index, texts[index]) for index in candidates])
    return Judged(np.array(scores), np.array(labels))


def _label(question: Question, index: int, text: str) -> int:
    if index in question.relevant:
        return 1
    return -1 if any(answer in text.lower() for answer in question.answers) else 0


def fit_scale(scores: Floats, labels: NDArray[np.int64], threshold: float) -> float:
    """The scale of the likeliest sigmoid that is 0.3 at the threshold."""
    signs = np.where(labels == 1, 1.0, -1.0)

    def loss(log_scale: float) -> float:
        logits = np.exp(log_scale) * (scores - threshold) + THETA_LOGIT
        return float(np.logaddexp(0.0, -signs * logits).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def report(name: str, judged: Judged, threshold: float) -> str:
    """A row of the model card's table."""
    bm25_order = -np.tile(np.arange(judged.scores.shape[1], dtype=float), (len(judged.scores), 1))
    before, after = judged.ranking(bm25_order), judged.ranking(judged.scores)
    kept = [judged.share_kept(label, threshold) for label in (1, 0)]
    passages = (judged.scores >= threshold).sum(axis=1)
    return (
        f"| {name} | {len(judged.scores)} "
        f"| {before[0]:.3f} / {before[1]:.3f} | {after[0]:.3f} / {after[1]:.3f} "
        f"| {kept[0]:.1%} | {kept[1]:.1%} | {np.median(passages):.0f} | {np.mean(passages == 0):.1%} |\n"
    )


def reliability(probabilities: Floats, labels: NDArray[np.int64]) -> str:
    """Mean probability and share of relevant candidates, bin by bin."""
    rows = ["\n| value | candidates | mean value | relevant |\n|---|---|---|---|\n"]
    edges = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0]
    for low, high in pairwise(edges):
        inside = (probabilities >= low) & (probabilities < high)
        if inside.any():
            mean, share = probabilities[inside].mean(), (labels[inside] == 1).mean()
            rows.append(f"| {low} to {high} | {inside.sum()} | {mean:.3f} | {share:.3f} |\n")
    return "".join(rows)


def main() -> None:
    """Calibrate TARGET on DATA."""
    parser = argparse.ArgumentParser(description="Put an exported cross-encoder's operating point at 0.3.")
    parser.add_argument("data", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    model = OnnxCrossEncoder(arguments.target)
    judged = {}
    for name, count in SETS.items():
        texts, questions = load_beir(arguments.data / name)
        sample = random.Random(0).sample(questions, min(count, len(questions)))  # noqa: S311
        judged[name] = judge(model, texts, sample)
    unseen = judge(model, *load_documents(arguments.data / "techdocs"))

    nq = judged["nq"]
    threshold = float(np.quantile(nq.scores[nq.labels == 1], 1 - KEEP))
    scores = np.concatenate([each.scores.ravel() for each in judged.values()])
    labels = np.concatenate([each.labels.ravel() for each in judged.values()])
    scores, labels = scores[labels >= 0], labels[labels >= 0]
    scale = round(fit_scale(scores, labels, threshold), 4)
    shift = round(THETA_LOGIT - scale * threshold, 4)

    config_file = arguments.target / "config.json"
    config = json.loads(config_file.read_text("utf-8"))
    config["lara"]["scaling"] = {"scale": scale, "shift": shift}
    config_file.write_text(json.dumps(config, indent=2) + "\n", "utf-8")

    rows = [report(name, each, threshold) for name, each in judged.items()]
    rows.append(report("techdocs (unseen)", unseen, threshold))
    sys.stdout.write(f"raw logit at 0.3: {threshold:.3f}; scale {scale}, shift {shift}\n\n")
    sys.stdout.write(
        "| set | questions | BM25 R@1 / MRR | reranked R@1 / MRR | relevant kept | irrelevant kept "
        "| median kept | nothing kept |\n|---|---|---|---|---|---|---|---|\n" + "".join(rows)
    )
    sys.stdout.write(reliability(1 / (1 + np.exp(-(scale * scores + shift))), labels))


if __name__ == "__main__":
    main()
