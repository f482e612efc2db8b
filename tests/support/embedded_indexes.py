"""Passages of few words, what an embedded index makes of them, and scripts in processes of their own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lara_plugins.passages import Passage
from lara_plugins.retrieval import Bm25Encoder, Match, WordLlamaEncoder

ROOT = Path(__file__).parents[2]
TEXT = """river bank loan interest water bridge steel engine train station ticket price market fruit apple
orchard tree forest fire smoke alarm clock tower bell church music piano concert hall door key lock
safe money coin silver mine coal energy sun moon planet orbit rocket fuel tank army general peace"""
WORDS = TEXT.split()
QUESTIONS = (
    "river bank loan",
    "what is the price of a ticket",
    "moon rocket fuel",
    "zebra",
    "bell bell tower",
)


def passage(number: int, text: str, **fields: object) -> Passage:
    return Passage(id=f"p{number}", text=text, **fields)  # type: ignore[arg-type]


def corpus(size: int, seed: int = 0) -> list[Passage]:
    chance = random.Random(seed)
    return [
        passage(
            number,
            " ".join(chance.choices(WORDS, k=chance.randint(5, 60))),
            heading=chance.choice(WORDS),
            source=f"s{number // 3}",
        )
        for number in range(size)
    ]


def summed(folder: Path, passages: Sequence[Passage], question: str, alpha: float) -> dict[str, float]:
    """The hybrid score of every passage, without the index: encoders and one matrix product."""
    import numpy as np

    contents = [item.content for item in passages]
    average = json.loads((folder / "manifest.json").read_text())["average_length"]
    sparse = Bm25Encoder(average, frequencies=Bm25Encoder.fit(contents).frequencies)
    dense = WordLlamaEncoder()
    query = dict(zip(*_entries(sparse, question), strict=True))
    lexical = [
        sum(value * query.get(index, 0.0) for index, value in zip(vector.indices, vector.values, strict=True))
        for vector in sparse.encode_documents(contents)
    ]
    similar = np.array(dense.encode_documents(contents)) @ np.array(dense.encode_query(question))
    totals = alpha * similar + (1 - alpha) * np.array(lexical)
    return dict(zip((item.id for item in passages), totals.tolist(), strict=True))


def _entries(sparse: Bm25Encoder, question: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    vector = sparse.encode_query(question)
    return vector.indices, vector.values


def assert_exact(matches: Sequence[Match], totals: dict[str, float], limit: int) -> None:
    """The matches are the best by ``totals``, in order; scores closer than 1e-6 may change places."""
    best = sorted(totals.values(), reverse=True)[:limit]
    assert len(matches) == len(best)
    assert len({match.passage.id for match in matches}) == len(matches)
    for match, expected in zip(matches, best, strict=True):
        assert match.score == pytest.approx(expected, abs=1e-6)
        assert totals[match.passage.id] == pytest.approx(expected, abs=1e-6)


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
