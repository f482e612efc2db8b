"""How often the embedded index finds the gold passage, by the weight of its dense half.

    python benchmarks/retrieval.py --data ../shared/data

Every passage goes through `EmbeddedIndex`, and every answerable question through its `search`,
so that what is measured is what users get. A question counts as found where one of its gold
passages is among the first 10 or 50.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lara_plugins.passages import Passage
from lara_plugins.retrieval import EmbeddedIndex, retrieval_plan

POOLED = ("nq", "squad2", "hotpotqa", "musique", "clapnq")
ALPHAS = tuple(tenth / 10 for tenth in range(11))
DEPTH = 50
BATCH = 256


@dataclass(frozen=True)
class Question:
    """A question and the ids of the passages that answer it."""

    text: str
    gold: frozenset[str]


def main() -> None:
    """Print one table for NQ alone and one for all corpora pooled."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LARA_DATA", beside)))
    data: Path = parser.parse_args().data
    for names in (("nq",), POOLED):
        passages = {passage.id: passage for name in names for passage in corpus(data / name)}
        questions = [question for name in names for question in answerable(data / name)]
        measure(" + ".join(names), list(passages.values()), questions)


def measure(title: str, passages: Sequence[Passage], questions: Sequence[Question]) -> None:
    """Ingest, search at every alpha, print."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedIndex(Path(folder) / "index") as index:
        began = time.perf_counter()
        for start in range(0, len(passages), BATCH):
            index.upsert(passages[start : start + BATCH])
        seconds = time.perf_counter() - began
        plan = retrieval_plan(index.count(), alpha_ceiling=index.alpha_ceiling)
        show(f"\n{title}: {len(passages):,} passages, {len(questions):,} questions")
        show(f"ingested in {seconds:.1f} s; plan: {plan.reason}")
        show("alpha   first 1  first 10  first 50     MRR  ms/search")
        for alpha in ALPHAS:
            began = time.perf_counter()
            ranks = [rank(index, question, alpha) for question in questions]
            milliseconds = 1000 * (time.perf_counter() - began) / len(questions)
            shares = [sum(r <= k for r in ranks) / len(ranks) for k in (1, 10, 50)]
            mrr = sum(1 / r for r in ranks) / len(ranks)
            mark = " <- plan" if alpha == plan.alpha else ""
            show(
                f"{alpha:5.1f}   {shares[0]:7.4f}  {shares[1]:8.4f}  {shares[2]:8.4f}  {mrr:6.4f}  "
                f"{milliseconds:9.2f}{mark}"
            )


def rank(index: EmbeddedIndex, question: Question, alpha: float) -> float:
    """The rank of the best gold passage, counted from 1; infinite beyond the first 50."""
    matches = index.search(question.text, limit=DEPTH, alpha=alpha)
    ranks = (place for place, match in enumerate(matches, 1) if match.passage.id in question.gold)
    return next(ranks, float("inf"))


def corpus(folder: Path) -> Iterator[Passage]:
    """The passages of a data set in the BEIR layout."""
    for row in rows(folder / "corpus.jsonl"):
        yield Passage(id=row["_id"], text=row["text"], heading=row["title"], source=row["_id"])


def answerable(folder: Path) -> Iterator[Question]:
    """The questions that have a gold passage."""
    gold: dict[str, set[str]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file, delimiter="\t"):
            if int(line["score"]) > 0:
                gold.setdefault(line["query-id"], set()).add(line["corpus-id"])
    for row in rows(folder / "queries.jsonl"):
        if row["_id"] in gold:
            yield Question(row["text"], frozenset(gold[row["_id"]]))


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The objects of a JSON-lines file; only its string fields are looked at."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def show(line: str) -> None:
    """Print at once, since the next line may take a while."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
