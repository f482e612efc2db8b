"""How fast the gate scores, against the frameworks' own rerankers with the same weights.

    python benchmarks/gate_speed.py --model ../shared/models/first-cross-encoder

Needs, beside the package with its extras embedded and cross-encoder: onnx, llama-index-core,
langchain-classic and langchain-community. Everything runs on one thread. A time is the process's
CPU time for 200 passages of mixed length (the best by BM25 among those of NQ, CLAPNQ and SQuAD2)
against one NQ question; all engines take turns on every question, in an order that rotates, and a
ratio is the median of the ratios within the turns. The rerankers score and sort, the gate's engines
score, and what a gate does besides takes under a millisecond.

Agreement is the Jaccard index of what is kept at theta, by the int8 file and by sentence-transformers
in float32, over the first NQ questions of which some but not all of the 200 passages are kept.

Memory is the peak of a fresh process that loads a model and scores 300 passages of 512 tokens.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

# The libraries read these when they are imported.
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

import torch
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_community.cross_encoders import HuggingFaceCrossEncoder
from langchain_core.documents import Document
from llama_index.core.postprocessor import SentenceTransformerRerank
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import AutoModelForSequenceClassification

from lara_plugins import CachingScorer, Scorer, ThresholdGate, load_scorer
from lara_plugins.evaluation import load_dataset
from lara_plugins.evaluation.datasets import Question
from lara_plugins.gate import DEFAULT_THETA, to_scores
from lara_plugins.retrieval import Bm25Encoder

POOL = ("nq", "clapnq", "squad2")
CANDIDATES = 200
PEAK = """
import sys
from lara_plugins import load_scorer

words = [f"word{number % 1000}" for number in range(900)]
texts = [" ".join(words[start : start + 600]) for start in range(300)]
load_scorer(sys.argv[1]).score("how much memory does it take", texts)
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""
"""Scores 300 passages that each fill a window of 512 tokens, and prints the peak in megabytes (Linux)."""

Rerank = Callable[[str, Sequence[str]], object]


@dataclass(frozen=True)
class Pool:
    """Passages, and BM25 to find candidates among them."""

    texts: list[str]
    encoder: Bm25Encoder
    vectors: list[dict[int, float]]

    @classmethod
    def read(cls, data: Path) -> Pool:
        """The passages of the data sets."""
        sets = [load_dataset(data / name) for name in POOL]
        texts = [passage.content for one in sets for passage in one.passages.values()]
        encoder = Bm25Encoder.fit(texts)
        vectors = [dict(zip(v.indices, v.values, strict=True)) for v in encoder.encode_documents(texts)]
        return cls(texts, encoder, vectors)

    def candidates(self, question: Question) -> list[str]:
        """The best passages for a question, best first."""
        query = self.encoder.encode_query(question.text)
        weights = list(zip(query.indices, query.values, strict=True))
        totals = [sum(weight * vector.get(term, 0.0) for term, weight in weights) for vector in self.vectors]
        order = sorted(range(len(totals)), key=lambda position: -totals[position])
        return [self.texts[position] for position in order[:CANDIDATES]]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True, help="folder of a BERT cross-encoder, one label")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LARA_DATA", beside)))
    parser.add_argument("--timed", type=int, default=10, help="questions that are timed")
    parser.add_argument("--rounds", type=int, default=3, help="turns on each of them")
    parser.add_argument("--questions", type=int, default=200, help="questions for the agreement")
    parser.add_argument("--theta", type=float, default=DEFAULT_THETA)
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pool = Pool.read(arguments.data)
    questions = load_dataset(arguments.data / "nq").questions
    with tempfile.TemporaryDirectory() as folder:
        float32, int8 = export(arguments.model, Path(folder))
        ours = {
            "sentence-transformers": load_scorer(str(arguments.model)),
            "onnx float32": load_scorer(f"onnx:{float32}"),
            "onnx int8": load_scorer(f"onnx:{int8}"),
        }
        asked = [(question.text, pool.candidates(question)) for question in questions[: arguments.timed]]
        report_speed(frameworks(arguments.model), ours, asked, arguments.rounds)
        report_agreement(
            ours["sentence-transformers"],
            ours["onnx int8"],
            ((question.text, pool.candidates(question)) for question in questions),
            arguments.questions,
            ThresholdGate(arguments.theta, on_empty="abstain"),
        )
        for name, scorer in ours.items():
            command = [sys.executable, "-W", "ignore", "-c", PEAK, str(scorer.name)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            print(f"{name:24} 300 passages of 512 tokens: {done.stdout.strip()} MB at the peak")


def export(source: Path, target: Path) -> tuple[Path, Path]:
    """Write the model as ONNX, in float32 and with dynamic int8, each in a folder of its own."""
    folders = (target / "float32", target / "int8")
    for folder in folders:
        folder.mkdir()
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(source / file, folder / file)
    model = AutoModelForSequenceClassification.from_pretrained(source, attn_implementation="eager").eval()
    ids = torch.arange(1000, 1018).reshape(2, 9)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        model,
        (ids, torch.ones_like(ids), torch.zeros_like(ids)),
        str(folders[0] / "model.onnx"),
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "batch", 1: "sequence"} for name in names} | {"logits": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )
    quantize_dynamic(
        folders[0] / "model.onnx",
        folders[1] / "model.onnx",
        per_channel=True,
        weight_type=QuantType.QInt8,
    )
    return folders


def frameworks(model: Path) -> dict[str, Rerank]:
    """The rerankers that users of the frameworks have."""
    llama_index = SentenceTransformerRerank(model=str(model), top_n=CANDIDATES, device="cpu")
    settings = {"device": "cpu", "max_length": 512}
    encoder = HuggingFaceCrossEncoder(model_name=str(model), model_kwargs=settings)
    langchain = CrossEncoderReranker(model=encoder, top_n=CANDIDATES)

    def by_llama_index(query: str, texts: Sequence[str]) -> object:
        nodes = [NodeWithScore(node=TextNode(text=text)) for text in texts]
        return llama_index.postprocess_nodes(nodes, query_bundle=QueryBundle(query))

    def by_langchain(query: str, texts: Sequence[str]) -> object:
        return langchain.compress_documents([Document(text) for text in texts], query)

    return {"llama-index": by_llama_index, "langchain-classic": by_langchain}


def report_speed(
    theirs: dict[str, Rerank],
    ours: dict[str, Scorer],
    asked: Sequence[tuple[str, Sequence[str]]],
    rounds: int,
) -> None:
    """Print each engine's median time, and how many times as fast as each framework it is."""
    engines: dict[str, Rerank] = theirs | {name: scorer.score for name, scorer in ours.items()}
    for rerank in engines.values():
        rerank(*asked[0])
    turns: list[dict[str, float]] = []
    for number in range(rounds * len(asked)):
        shift = number % len(engines)
        names = [*engines][shift:] + [*engines][:shift]
        turns.append({name: seconds(engines[name], *asked[number % len(asked)]) for name in names})
    lengths = sorted(len(text) for _, texts in asked for text in texts)
    spread = f"{lengths[0]} to {lengths[-1]} characters, median {median(lengths):.0f}"
    print(f"{len(turns)} turns; passages of {spread}")
    for name in engines:
        against = (f"{median(turn[other] / turn[name] for turn in turns):.2f} x {other}" for other in theirs)
        print(f"{name:24} {median(turn[name] for turn in turns):.3f} s   " + "   ".join(against))
    cached = CachingScorer(ours["onnx int8"])
    cached.score(*asked[0])
    print(f"{'cached':24} {seconds(cached.score, *asked[0]):.4f} s")


def seconds(rerank: Rerank, query: str, texts: Sequence[str]) -> float:
    """CPU time of one call."""
    began = time.process_time()
    rerank(query, texts)
    return time.process_time() - began


def report_agreement(
    reference: Scorer, other: Scorer, asked: Iterator[tuple[str, list[str]]], count: int, gate: ThresholdGate
) -> None:
    """Print how alike the sets are that two scorers keep."""
    alike: list[float] = []
    sizes: list[int] = []
    for query, texts in asked:
        kept, others = (
            set(gate.admit(to_scores(scorer.score(query, texts), "logit")).kept)
            for scorer in (reference, other)
        )
        if 0 < len(kept) < len(texts):
            alike.append(len(kept & others) / len(kept | others))
            sizes.append(len(kept))
        if len(alike) == count:
            break
    agreement = f"Jaccard mean {fmean(alike):.4f}, least {min(alike):.2f}, over {len(alike)} questions"
    print(f"at theta {gate.theta}: {agreement}; kept: median {median(sizes):.0f}, most {max(sizes)}")


if __name__ == "__main__":
    main()
