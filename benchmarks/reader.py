"""Measures the extractive reader: how often its answer holds the right one, and how it abstains.

    python benchmarks/reader.py --data ../shared/data

Answers on NQ, with the gold passage alone and with the ten best of an embedded index, beside the
first sentence, and the first two, of the passage that the scorer likes best. Abstention on SQuAD
2.0 and CLAPNQ, with one passage: the gold one, or the near one that does not answer; and on NQ
with the ten best passages, with and without those that answer. "Held out" are the questions that
the reader's weights were not fitted on. (What the scorer was trained on is another matter.)
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lara_plugins.answering.extractive import MIN_CONFIDENCE, ExtractiveReader
from lara_plugins.answering.sentences import split_sentences
from lara_plugins.evaluation import abstention, contains_answer, load_dataset
from lara_plugins.evaluation.reading import Reading, held_out, one_passage, retrieved, without_answers
from lara_plugins.gate import Scorer, load_scorer
from lara_plugins.retrieval import EmbeddedIndex


@dataclass(frozen=True)
class Outcome:
    """What the reader made of a reading when it may not abstain.

    Args:
        reading: question and passages.
        value: its answer without the citations.
        confidence: how sure it was that this answers.
        seconds: how long it took.
    """

    reading: Reading
    value: str
    confidence: float
    seconds: float


def read_all(reader: ExtractiveReader, readings: Iterable[Reading]) -> list[Outcome]:
    """Let the reader answer."""
    outcomes = []
    for reading in readings:
        started = time.perf_counter()
        answer = reader.read(reading.question.text, reading.passages)
        seconds = time.perf_counter() - started
        value = " ".join(span.quote for span in answer.evidence)
        outcomes.append(Outcome(reading, value, answer.confidence, seconds))
    return outcomes


def opening(scorer: Scorer, reading: Reading, sentences: int) -> str:
    """The baseline: the first sentences of the passage that the scorer likes best."""
    scores = scorer.score(reading.question.text, [passage.content for passage in reading.passages])
    best = reading.passages[scores.index(max(scores))]
    return " ".join(sentence.quote for sentence in split_sentences(best.text)[:sentences])


def report_answers(name: str, pairs: Sequence[tuple[Reading, str]]) -> None:
    """Print how often the answer is in the value, for all questions and the held-out ones."""
    held = [(reading, value) for reading, value in pairs if held_out(reading.question)]
    for part, chosen in (("all", pairs), ("held out", held)):
        right = fmean(contains_answer(value, reading.question.answers) for reading, value in chosen)
        length = fmean(len(value) for _, value in chosen)
        show(f"{name:42} {part:8} {len(chosen):5} answer in value {right:.3f}   characters {length:4.0f}")


def report_abstention(name: str, outcomes: Sequence[Outcome], least: float) -> None:
    """Print precision and recall of abstention, for all questions and the held-out ones."""
    held = [outcome for outcome in outcomes if held_out(outcome.reading.question)]
    for part, chosen in (("all", outcomes), ("held out", held)):
        counts = abstention((outcome.reading.answerable, outcome.confidence >= least) for outcome in chosen)
        show(
            f"{name:42} {part:8} {len(chosen):5} precision {counts.precision:.3f}"
            f"   recall {counts.recall:.3f}   answerable ones abstained on {counts.wrongly_abstained:.3f}"
        )


def report_seconds(name: str, outcomes: Sequence[Outcome]) -> None:
    """Print how long the reader took."""
    seconds = sorted(outcome.seconds for outcome in outcomes)
    median, p95 = seconds[len(seconds) // 2], seconds[len(seconds) * 95 // 100]
    show(f"{name:42} seconds: median {median:.3f}, p95 {p95:.3f}")


show: Callable[[str], None] = print


def main() -> None:
    """Read everything and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with nq, squad2 and clapnq")
    parser.add_argument("--scorer", default="embedded", help="name of the scorer")
    parser.add_argument("--min-confidence", type=float, default=MIN_CONFIDENCE)
    arguments = parser.parse_args()

    least = arguments.min_confidence
    scorer = load_scorer(arguments.scorer)
    scorer.load()
    reader = ExtractiveReader(scorer, min_confidence=0.0)
    nq = load_dataset(arguments.data / "nq")
    with tempfile.TemporaryDirectory() as folder, EmbeddedIndex(Path(folder) / "index") as index:
        index.upsert(list(nq.passages.values()))
        top_ten = list(retrieved(nq, index, 10))

    outcomes: list[Outcome] = []
    for name, readings in (("NQ, gold passage", list(one_passage(nq))), ("NQ, ten passages", top_ten)):
        for count in (1, 2):
            pairs = [(reading, opening(scorer, reading, count)) for reading in readings]
            report_answers(f"{name}, first {count} of the best", pairs)
        outcomes = read_all(reader, readings)
        report_answers(f"{name}, reader, never abstaining", [(o.reading, o.value) for o in outcomes])
        answered = [(o.reading, o.value if o.confidence >= least else "") for o in outcomes]
        report_answers(f"{name}, reader", answered)
        report_seconds(f"{name}, reader", outcomes)
    outcomes += read_all(reader, without_answers(top_ten))
    report_abstention("NQ, ten passages", outcomes, least)
    for folder_name in ("squad2", "clapnq"):
        outcomes = read_all(reader, one_passage(load_dataset(arguments.data / folder_name)))
        report_abstention(f"{folder_name}, one passage", outcomes, least)
        report_seconds(f"{folder_name}, one passage", outcomes)


if __name__ == "__main__":
    main()
