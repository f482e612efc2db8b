"""Print the embedded scorer's figures on the questions that nothing was fitted on.

    python report.py DATA [--minilm]

Reranking BM25's ten best of each question: for NQ among all passages of the set, and among a
thousand of them as the first model was measured; for SQuAD 2.0 within the article; for CLAPNQ and
the technical documents all questions, since neither set is in the training. The weights of the
rows without the cross-encoder are fitted on the choosing questions, like the shipped ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from candidates import Task, evidence_of, pooled, task, tasks
from figures import measure
from fuse import fit_weights, with_lexical
from questions import SETS, Collection, Floats, load_collection
from technical_documents import load_technical_documents

from lara_plugins.gate.engines.embedded import FOLDER, EmbeddedScorer, Fusion
from lara_plugins.gate.engines.model_folder import open_folder

THETA_LOGIT = float(np.log(0.3 / 0.7))
SMALL_CORPUS = 1000


def among_fewer(nq: Collection) -> Collection:
    """NQ with the passages of the report's questions, and others by chance, up to a thousand."""
    asked = nq.part("report")
    kept = sorted({position for question in asked for position in question.relevant})
    others = sorted(set(range(len(nq.passages))) - set(kept))
    kept += random.Random(0).sample(others, SMALL_CORPUS - len(kept))  # noqa: S311
    place = {position: new for new, position in enumerate(kept)}
    questions = tuple(
        dataclasses.replace(question, relevant=frozenset(place[p] for p in question.relevant))
        for question in asked
    )
    return Collection(
        "nq, 1,000", tuple(nq.titles[p] for p in kept), tuple(nq.passages[p] for p in kept), questions
    )


def all_reported(collection: Collection) -> Collection:
    """A set that is not in the training: every question is of the report."""
    questions = tuple(dataclasses.replace(question, part="report") for question in collection.questions)
    return dataclasses.replace(collection, questions=questions)


def minilm_cosines(asked: Task) -> list[Floats]:
    """Cosines of the whole MiniLM, the teacher."""
    from prepare import encode  # noqa: PLC0415 (torch is only needed for this row)

    wanted = sorted({position for candidates in asked.candidates for position in candidates})
    passages = encode([asked.passages[position] for position in wanted], 256).texts.numpy()
    questions = encode([question.text for question in asked.questions], 48).texts.numpy()
    place = {position: row for row, position in enumerate(wanted)}
    return [
        passages[[place[position] for position in candidates]] @ question
        for question, candidates in zip(questions, asked.candidates, strict=True)
    ]


def shares_kept(asked: Task, scores: Sequence[Floats]) -> str:
    """Shares of the relevant and of the other candidates that score at least theta = 0.3."""
    relevant, others = [], []
    for question, candidates, values in zip(asked.questions, asked.candidates, scores, strict=True):
        hits = np.array([position in question.relevant for position in candidates])
        relevant += values[hits].tolist()
        others += values[~hits].tolist()
    return " | ".join(f"{np.mean(np.array(values) >= THETA_LOGIT):.1%}" for values in (relevant, others))


def speed(scorer: EmbeddedScorer, words: int = 145) -> float:
    """Pairs of about 180 tokens that one thread scores in a second of its core's time; the best of five."""
    rng = random.Random(0)  # noqa: S311
    texts = [
        " ".join(rng.choices(("river", "city", "band", "year", "music", "the", "of"), k=words))
        for _ in range(64)
    ]
    question = "when did the band from the city by the river release its first album of music " * 2
    times = []
    for _ in range(5):
        began = time.process_time()
        scorer.score(question, texts)
        times.append(time.process_time() - began)
    return len(texts) / min(times)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description="Report the embedded scorer's figures.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--minilm", action="store_true", help="also the whole MiniLM's cosine (needs torch)")
    arguments = parser.parse_args()
    scorer = EmbeddedScorer(threads=1)
    fusion = Fusion.model_validate(open_folder(FOLDER).config["lara"]["fusion"])  # type: ignore[index]

    chosen = tasks(arguments.data, "choose")
    found = {each.name: with_lexical(each, evidence_of(FOLDER, each)) for each in chosen}
    evidence, labels = pooled(chosen, found)
    without = fit_weights(evidence[:, 1:], labels)

    nq = load_collection(arguments.data / "nq")
    reported = [task(nq, "report"), task(among_fewer(nq), "report")]
    reported += [task(load_collection(arguments.data / name), "report") for name in SETS[1:]]
    unseen = (
        load_collection(arguments.data / "clapnq"),
        load_technical_documents(arguments.data / "techdocs"),
    )
    reported += [task(all_reported(each), "report") for each in unseen]
    for asked in reported:
        found = evidence_of(FOLDER, asked)
        fused = [fusion.logit(columns[:, 0], columns[:, 1]) for columns in found]
        rows = {
            "BM25": asked.lexical,
            "wordllama cosine": [columns[:, 1] for columns in found],
            "BM25 + wordllama cosine": [e[:, 1:] @ without[:-1] for e in with_lexical(asked, found)],
            "cross-encoder": [columns[:, 0] for columns in found],
            "**embedded scorer**: cross-encoder + cosine": fused,
        }
        if arguments.minilm:
            rows["whole MiniLM, cosine"] = minilm_cosines(asked)
        print(f"\n{asked.name}: {len(asked.questions)} questions, {len(asked.passages)} passages\n")
        print("| score | R@1 | MRR | AUC | non-gold kept where 95 % of the gold is |\n|---|---|---|---|---|")
        for name, scores in rows.items():
            print(f"| {name} | {measure(asked.questions, asked.candidates, scores)} |")
        print(f"\nat theta = 0.3, gold | non-gold kept: {shares_kept(asked, fused)}", flush=True)
    print(f"\n{speed(scorer):.0f} pairs of 180 tokens a second of one core")


if __name__ == "__main__":
    main()
