"""How often the question parser is right: regimes, shapes and answer types.

Run ``python benchmarks/questions.py``; the data folder is LARA_DATA, else ../shared/data.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, TypedDict

from lara_plugins.question import SINGLE_VALUES, QuestionShape, parse_question

DATA = Path(os.environ.get("LARA_DATA", Path(__file__).parents[2] / "shared" / "data"))

TREC_COARSE = {
    "NUM": "amount",
    "DESC": "summary",
    "ENTY": "entity",
    "HUM": "entity",
    "LOC": "entity",
    "ABBR": "entity",
}
TREC_FINE = {
    "NUM:count": "count",
    "NUM:date": "date",
    "NUM:period": "duration",
    "DESC:def": "definition",
    "DESC:manner": "procedure",
    "ABBR:exp": "definition",
}


class Row(TypedDict, total=False):
    """A line of one of the three sets."""

    text: str
    lang: str
    shape: str
    regime: str
    label: str
    answer_type: str
    flags: list[str]
    n_answers: int


def main(out: TextIO = sys.stdout) -> None:
    """Print one table a data set."""
    shapes(out)
    agreement("TREC answer types", trec(), out)
    agreement("QALD-9 answer types", qald(), out)


def shapes(out: TextIO) -> None:
    """Regime by language, and the shapes that were taken for others."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for row in rows("shapes/shapes.jsonl"):
        found = parse_question(row["text"])
        total[row["lang"]] += 1
        right[row["lang"]] += regime(found) == row["regime"]
        wanted = "aggregate" if (row["shape"], row["regime"]) == ("count", "batch") else row["shape"]
        pairs[wanted, label(found)] += 1
    print("shapes: right regime, by language", file=out)
    for language in sorted(total, key=lambda name: -total[name]):
        share = right[language] / total[language]
        print(f"  {language}  {right[language]:4d} of {total[language]:4d}  {share:.1%}", file=out)
    confusion(pairs, out)


def trec() -> Iterator[tuple[str, QuestionShape]]:
    """TREC questions with the answer shape that their label stands for."""
    for row in rows("questions/trec.jsonl"):
        wanted = TREC_FINE.get(row["label"]) or TREC_COARSE[row["label"].split(":")[0]]
        yield wanted, parse_question(row["text"])


def qald() -> Iterator[tuple[str, QuestionShape]]:
    """QALD-9 questions with what their answers and query flags say."""
    for row in rows("questions/qald9.jsonl"):
        if row["answer_type"] in ("BOOLEAN", "DATE"):
            wanted = row["answer_type"].lower()
        elif "MostValue" in row["flags"]:
            wanted = "superlative"
        elif row["n_answers"] > 1:
            wanted = "list"
        else:
            wanted = "amount" if row["answer_type"] == "NUM" else "entity"
        yield wanted, parse_question(row["text"])


def agreement(title: str, answered: Iterator[tuple[str, QuestionShape]], out: TextIO) -> None:
    """Share of questions whose shape is the one wanted, and the confusion matrix."""
    began = time.perf_counter()
    pairs = Counter((wanted, label(found)) for wanted, found in answered)
    total = sum(pairs.values())
    right = sum(n for (wanted, found), n in pairs.items() if wanted == found)
    each = (time.perf_counter() - began) / total * 1e3
    print(f"\n{title}: {right} of {total} ({right / total:.1%}), {each:.2f} ms a question", file=out)
    confusion(pairs, out)


def confusion(pairs: Counter[tuple[str, str]], out: TextIO) -> None:
    """What was wanted, a line each, and what was found for it."""
    for wanted in sorted({wanted for wanted, _ in pairs}):
        found = {shape: n for (other, shape), n in pairs.most_common() if other == wanted}
        print(
            f"  {wanted:12} {sum(found.values()):5d}  " + ", ".join(f"{s} {n}" for s, n in found.items()),
            file=out,
        )


def rows(name: str) -> Iterator[Row]:
    """The lines of a JSON Lines file under the data folder."""
    with (DATA / name).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def regime(found: QuestionShape) -> str:
    """What the routing table says where the passages fit one call."""
    single = found.decomposition == "single" and found.answer_shape in SINGLE_VALUES
    return "sequential" if single else "batch"


def label(found: QuestionShape) -> str:
    """Shape and decomposition in the words of the data set."""
    return {"several_asks": "multi_part", "multi_hop": "multi_hop"}.get(
        found.decomposition, found.answer_shape
    )


if __name__ == "__main__":
    main()
