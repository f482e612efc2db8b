"""What HybridRetriever adds to an index's own time, over 10,000 made-up passages.

    python benchmarks/retriever_overhead.py [--passages 10000] [--questions 200]

The index is wrapped in a stopwatch; what a retrieval takes beyond it is the retriever's: the
plan, the trace, and the nodes. For PineconeIndex the SDK's calls are the service's time, and the
rest is ours; it talks to the stand-in of the tests, which ranks slowly and is not counted.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from llama_index_lara import HybridRetriever

from lara_plugins import Bm25Encoder, EmbeddedIndex, Passage, PineconeIndex
from lara_plugins.retrieval import Filter, HybridIndex, Match

VOCABULARY = [f"word{number}" for number in range(20_000)]


class Stopwatch:
    """A hybrid index that notes how long the one inside takes."""

    def __init__(self, index: HybridIndex) -> None:
        self.index = index
        self.seconds = 0.0
        self.fingerprint = index.fingerprint
        self.alpha_ceiling = index.alpha_ceiling
        self.alpha_floor = index.alpha_floor

    def load(self) -> None:
        self.index.load()

    def count(self) -> int:
        began = time.perf_counter()
        number = self.index.count()
        self.seconds += time.perf_counter() - began
        return number

    def search(
        self,
        text: str,
        *,
        limit: int,
        alpha: float,
        dense_text: str | None = None,
        filter: Filter | None = None,
    ) -> list[Match]:
        began = time.perf_counter()
        found = self.index.search(text, limit=limit, alpha=alpha, dense_text=dense_text, filter=filter)
        self.seconds += time.perf_counter() - began
        return found

    async def asearch(
        self,
        text: str,
        *,
        limit: int,
        alpha: float,
        dense_text: str | None = None,
        filter: Filter | None = None,
    ) -> list[Match]:
        return self.search(text, limit=limit, alpha=alpha, dense_text=dense_text, filter=filter)

    def upsert(self, passages: Sequence[Passage]) -> None:
        self.index.upsert(passages)


def corpus(size: int) -> list[Passage]:
    chance = random.Random(0)
    weights = [1 / (rank + 10) for rank in range(len(VOCABULARY))]
    return [
        Passage(f"p{n}", " ".join(chance.choices(VOCABULARY, weights, k=120)), source=f"s{n // 20}")
        for n in range(size)
    ]


def report(name: str, total: list[float], own: list[float]) -> None:
    added = [1000 * (all_ - index) for all_, index in zip(total, own, strict=True)]
    print(
        f"{name:34} index {1000 * statistics.median(own):7.2f} ms   "
        f"added {statistics.median(added):5.2f} ms (95 %: {statistics.quantiles(added, n=20)[-1]:.2f} ms)"
    )


def measure(name: str, index: HybridIndex, questions: Sequence[str]) -> None:
    watch = Stopwatch(index)
    retriever = HybridRetriever(watch)
    retriever.retrieve(questions[0])
    total, own = [], []
    for question in questions:
        watch.seconds = 0.0
        began = time.perf_counter()
        retriever.retrieve(question)
        total.append(time.perf_counter() - began)
        own.append(watch.seconds)
    report(name, total, own)


def timed(method: Callable[..., object], spent: list[float]) -> Callable[..., object]:
    def call(**arguments: object) -> object:
        began = time.perf_counter()
        reply = method(**arguments)
        spent[0] += time.perf_counter() - began
        return reply

    return call


def measure_pinecone(passages: Sequence[Passage], questions: Sequence[str]) -> None:
    """How much of a search at Pinecone is ours, and what the retriever adds to that."""
    from hashed_words import HashedWords  # noqa: PLC0415
    from pinecone_clients import client_of  # noqa: PLC0415
    from pinecone_server import PineconeServer  # noqa: PLC0415

    bm25 = Bm25Encoder.fit(passage.content for passage in passages)
    with PineconeServer() as server:
        client = client_of(server)
        index = PineconeIndex.create(client, "passages", dense=HashedWords(32), sparse=bm25)
        index.upsert(passages)
        handle = client.Index(host=server.indexes["passages"].url)
        spent = [0.0]
        handle.query = timed(handle.query, spent)
        client.Index = lambda host: handle
        index = PineconeIndex(client, "passages", dense=HashedWords(32), sparse=bm25)
        measure("HybridRetriever on PineconeIndex", index, questions)
        total, own = [], []
        for question in questions:
            spent[0] = 0.0
            began = time.perf_counter()
            index.search(question, limit=200, alpha=0.5)
            total.append(time.perf_counter() - began)
            own.append(spent[0])
        report("PineconeIndex on the SDK's query", total, own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    arguments = parser.parse_args()
    passages = corpus(arguments.passages)
    chance = random.Random(1)
    questions = [" ".join(chance.choices(VOCABULARY[:2000], k=8)) for _ in range(arguments.questions)]
    with tempfile.TemporaryDirectory() as folder, EmbeddedIndex(Path(folder) / "index") as index:
        index.upsert(passages)
        measure("HybridRetriever on EmbeddedIndex", index, questions)
    measure_pinecone(passages, questions[:20])


if __name__ == "__main__":
    main()
