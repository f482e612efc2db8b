"""Train the embedded cross-encoder on what ``prepare.py`` wrote.

    python train.py DATA TARGET PREPARED... [--start model.pt] [--layers 2] [--steps 1300] [--seed 0]

Each step takes ``GROUPS`` questions with ``PAIRS`` passages each. The loss is the cross-entropy to
labels softened by the teacher, the divergence from the teacher's ranking of a question's passages,
and the distance of the last layer's token vectors from those of the whole MiniLM. Word embeddings
stay as they are: the training's vocabulary is a small part of the language's.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from figures import first_stage, measure
from model import SEP, VOCABULARY, CrossEncoder, Size, load, save
from prepare import MINILM
from questions import bm25, load_collection
from torch import distributed
from torch.multiprocessing import spawn
from torch.nn import functional as F  # noqa: N812 (torch's own name)
from transformers import AutoTokenizer

WINDOW = 160
GROUPS, PAIRS, BATCH = 4, 8, 16
SAVE_EVERY = 325
RATE, HEAD_RATE, WARMUP = 2e-4, 1e-3, 0.05
RANKING, TOKENS = 0.4, 2.0
"""Weights of the ranking's and of the token vectors' loss; the latter falls to a fifth at the end."""

NEAR_MISS = 0.3
"""Weight of a passage that seems to answer an unanswerable question: a small model cannot tell."""

Pair = tuple[torch.Tensor, torch.Tensor]
"""Question and passage: their token ids, or their token vectors."""


class Group(TypedDict):
    """A question's candidates, as ``prepare.py`` wrote them."""

    set: str
    passages: list[int]
    labels: torch.Tensor
    near: torch.Tensor
    teacher: torch.Tensor


@dataclass(frozen=True)
class Prepared:
    """What ``prepare.py`` wrote; a question's position is its group's."""

    groups: list[Group]
    passage_ids: list[torch.Tensor]
    passage_tokens: list[torch.Tensor]
    question_ids: list[torch.Tensor]
    question_tokens: list[torch.Tensor]

    def extend(self, other: Prepared) -> None:
        """Append another file's questions and passages."""
        offset = len(self.passage_ids)
        self.groups.extend(
            {**group, "passages": [offset + passage for passage in group["passages"]]}
            for group in other.groups
        )
        self.passage_ids.extend(other.passage_ids)
        self.passage_tokens.extend(other.passage_tokens)
        self.question_ids.extend(other.question_ids)
        self.question_tokens.extend(other.question_tokens)


def load_prepared(files: list[Path]) -> Prepared:
    """What ``prepare.py`` wrote into the files."""
    data, *others = (Prepared(**torch.load(file, weights_only=False, mmap=True)) for file in files)
    for other in others:
        data.extend(other)
    return data


@dataclass
class Losses:
    """The three parts of a step's loss."""

    pointwise: torch.Tensor
    ranking: torch.Tensor
    distance: torch.Tensor

    def total(self, share: float) -> torch.Tensor:
        """The loss when this share of the training is done."""
        return self.pointwise + RANKING * self.ranking + TOKENS * (1 - 0.8 * share) * self.distance


def batch_of(pairs: list[Pair]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids, mask and types of [CLS] question [SEP] passage [SEP]; both come with [CLS] and [SEP]."""
    end = torch.tensor([SEP])
    rows = [
        torch.cat([question, passage[1:-1][: WINDOW - len(question) - 1], end]) for question, passage in pairs
    ]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])[:, None]
    first = torch.tensor([len(question) for question, _ in pairs])[:, None]
    places = torch.arange(ids.shape[1])[None]
    mask = (places < lengths).long()
    return ids, mask, mask * (places >= first)


def token_distance(states: torch.Tensor, lengths: list[int], teacher: list[Pair]) -> torch.Tensor:
    """1 - cosine between student's and teacher's vectors of the same tokens, [CLS] and [SEP] left out."""
    ours, theirs = [], []
    for row, length, (question, passage) in zip(states, lengths, teacher, strict=True):
        asked = len(question)
        ours += [row[1 : asked - 1], row[asked : length - 1]]
        theirs += [question[1:-1], passage[1 : length - asked]]
    return 1 - F.cosine_similarity(torch.cat(ours), torch.cat(theirs).float(), dim=-1).mean()


def sample(group: Group, rng: random.Random) -> list[int]:
    """Up to two relevant passages (and the near miss), and of the rest the teacher's best more often."""
    labels, near = group["labels"], group["near"]
    sure = [i for i in range(len(labels)) if labels[i] == 1 or near[i]]
    rest = [i for i in torch.argsort(group["teacher"], descending=True).tolist() if i not in set(sure)]
    hard, easy = rest[:12], rest[12:]
    for each in (sure, hard, easy):
        rng.shuffle(each)
    sure = sure[:2]
    first = PAIRS - len(sure) - 2
    return (sure + hard[:first] + easy + hard[first:])[:PAIRS]


def starting_importance(passages: list[torch.Tensor], vocabulary: int) -> torch.Tensor:
    """The logarithm of each word piece's inverse document frequency."""
    counts = Counter(token for ids in passages for token in set(ids.tolist()))
    idf = torch.full((vocabulary,), math.log(1 + 2 * len(passages)))
    for token, count in counts.items():
        idf[token] = math.log(1 + (len(passages) - count + 0.5) / (count + 0.5))
    return idf.clamp(min=0.05).log()


def losses(model: CrossEncoder, data: Prepared, chosen: list[int], rng: random.Random) -> Losses:
    """The losses on a few passages of each chosen question, in batches of similar length."""
    picked = [sample(data.groups[index], rng) for index in chosen]
    pairs = [
        (index, data.groups[index]["passages"][i])
        for index, own in zip(chosen, picked, strict=True)
        for i in own
    ]
    order = sorted(range(len(pairs)), key=lambda k: len(data.passage_ids[pairs[k][1]]))
    logits = [torch.zeros(())] * len(pairs)
    distance = torch.zeros(())
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        numbers = [pairs[k] for k in rows]
        ids, mask, types = batch_of([(data.question_ids[q], data.passage_ids[p]) for q, p in numbers])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states = model.states(ids, mask, types)
        states = states.float()
        for k, logit in zip(rows, model.logits(states, ids, mask, types), strict=True):
            logits[k] = logit
        teacher = [(data.question_tokens[q], data.passage_tokens[p]) for q, p in numbers]
        distance = distance + token_distance(states, mask.sum(1).tolist(), teacher) * len(rows) / len(pairs)
    pointwise, ranking, taken = torch.zeros(()), torch.zeros(()), 0
    for index, own in zip(chosen, picked, strict=True):
        logit = torch.stack(logits[taken : taken + len(own)])
        taken += len(own)
        entropy, divergence = label_losses(logit, data.groups[index], torch.tensor(own))
        pointwise, ranking = pointwise + entropy / len(pairs), ranking + divergence / len(chosen)
    return Losses(pointwise, ranking, distance)


def label_losses(logit: torch.Tensor, group: Group, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy to softened labels, summed, and divergence from the teacher's ranking."""
    label, view = group["labels"][at], group["teacher"][at]
    belief = torch.sigmoid(view)
    target = torch.where(label == 1, 0.9 + 0.1 * belief, torch.where(label == 0, 0.2 * belief, belief))
    weight = torch.where(group["near"][at] & (label == 0), NEAR_MISS, 1.0)
    entropy = F.binary_cross_entropy_with_logits(logit, target, weight, reduction="sum")
    ranked = (view + 3.0 * (label == 1)).log_softmax(0)
    return entropy, F.kl_div(logit.log_softmax(0), ranked, log_target=True, reduction="sum")


class Validation:
    """BM25's top ten of the NQ questions that the model is chosen on."""

    def __init__(self, data: Path) -> None:
        nq = load_collection(data / "nq")
        self.questions = nq.part("choose")
        tokenizer = AutoTokenizer.from_pretrained(MINILM)
        self.candidates = first_stage(bm25(list(nq.passages), [q.text for q in self.questions]))
        self.pairs = [
            (
                torch.tensor(tokenizer(q.text)["input_ids"]),
                torch.tensor(tokenizer(nq.passages[i])["input_ids"]),
            )
            for q, found in zip(self.questions, self.candidates, strict=True)
            for i in found
        ]

    def figures(self, model: CrossEncoder) -> str:
        """R@1, MRR, AUC and what is kept at the operating point."""
        model.eval()
        order = sorted(range(len(self.pairs)), key=lambda i: len(self.pairs[i][1]))
        scores = np.zeros(len(order))
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            for start in range(0, len(order), 32):
                rows = order[start : start + 32]
                scores[rows] = model(*batch_of([self.pairs[i] for i in rows]))[:, 0].float().numpy()
        model.train()
        sizes = np.cumsum([len(found) for found in self.candidates])[:-1]
        return str(measure(self.questions, self.candidates, np.split(scores, sizes)))


def optimiser(model: CrossEncoder) -> torch.optim.Optimizer:
    """AdamW, faster for what starts from nothing; word embeddings stay as they are."""
    model.body.embeddings.word_embeddings.weight.requires_grad_(False)
    head = [
        *model.importance.parameters(),
        *model.attend.parameters(),
        *model.read.parameters(),
        model.evidence,
    ]
    body = [each for each in model.body.parameters() if each.requires_grad]
    return torch.optim.AdamW(
        [
            {"params": body, "lr": RATE, "weight_decay": 0.01},
            {"params": head, "lr": HEAD_RATE, "weight_decay": 0.0},
        ]
    )


def average_gradients(model: CrossEncoder) -> None:
    """The mean of the workers' gradients, in each of them."""
    trained = [each for each in model.parameters() if each.requires_grad]
    flat = torch.cat([each.grad.flatten() for each in trained])
    distributed.all_reduce(flat)
    parts = (flat / distributed.get_world_size()).split([each.numel() for each in trained])
    for each, part in zip(trained, parts, strict=True):
        each.grad.copy_(part.view_as(each))


def work(rank: int, arguments: argparse.Namespace, meeting: str) -> None:
    """One worker: a core of its own, and its share of each step's questions."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=arguments.workers)
    torch.manual_seed(arguments.seed)
    order = random.Random(arguments.seed)  # noqa: S311
    rng = random.Random(f"{arguments.seed}, worker {rank}")  # noqa: S311
    data = load_prepared(arguments.prepared)
    if arguments.start:
        model = load(MINILM, arguments.start)
    else:
        model = CrossEncoder(
            MINILM, Size(arguments.layers), starting_importance(data.passage_ids, VOCABULARY)
        )
    optimizer = optimiser(model)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / (WARMUP * arguments.steps), 1.02 - step / arguments.steps)
    )
    model.train()
    began, average, queue = time.monotonic(), np.zeros(3), []
    for step in range(arguments.steps):
        if len(queue) < GROUPS:
            queue = order.sample(range(len(data.groups)), len(data.groups))
        chosen = [queue.pop() for _ in range(GROUPS)]
        found = losses(model, data, chosen[rank :: arguments.workers], rng)
        optimizer.zero_grad()
        found.total(step / arguments.steps).backward()
        average_gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        values = np.array([found.pointwise.item(), found.ranking.item(), found.distance.item()])
        average += (values - average) / min(step + 1, 50)
        if rank == 0 and (step + 1) % 50 == 0:
            print(step + 1, f"{time.monotonic() - began:.0f} s", average.round(4), flush=True)
        if rank == 0 and ((step + 1) % SAVE_EVERY == 0 or step + 1 == arguments.steps):
            save(model, arguments.target / "model.pt")
    if rank == 0:
        print("choosing questions:", Validation(arguments.data).figures(model), flush=True)
    distributed.destroy_process_group()


def main() -> None:
    """Train, printing the losses, and at the end the figures of the choosing questions."""
    parser = argparse.ArgumentParser(description="Train the embedded cross-encoder.")
    parser.add_argument("data", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("prepared", type=Path, nargs="+", help="files that prepare.py wrote")
    parser.add_argument("--start", type=Path, help="a model to train further; by default MiniLM's layers")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1300)
    parser.add_argument("--workers", type=int, default=2, help="processes, one core each; part of the recipe")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        spawn(work, (arguments, f"{folder}/meeting"), nprocs=arguments.workers)


if __name__ == "__main__":
    main()
