"""How often the evidence of a question is retrieved, by how its documents were split.

    python benchmarks/chunking.py --data ../shared/data

The documents of techdocs are split by AdaptiveChunker, by LlamaIndex's SentenceSplitter and by
LangChain's RecursiveCharacterTextSplitter, each at most 1,000 characters with an overlap of at most
300 (the SentenceSplitter counts characters, not tokens), and each set of chunks is searched by
`EmbeddedIndex` at its plan's alpha. A quote counts as retrieved where all its characters lie in the
spans of the first k chunks, or of the chunks that fit into so many characters. A question's recall is
the share of its quotes, or whether there is one where one is enough; the figure is the mean over the
questions that have an answer.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode

from lara_plugins import AdaptiveChunker, EmbeddedIndex, Match, Passage, retrieval_plan

SIZE, OVERLAP = 1000, 300
FIRST = (1, 3, 5, 10, 20)
CHARACTERS = (2_500, 5_000, 10_000)

Split = Callable[[str, str], list[Passage]]
"""A document's name and text to passages with ``start`` and ``end`` in their metadata."""


@dataclass(frozen=True)
class Question:
    """A question, its evidence as (document, start, end), and whether one piece of it is enough."""

    text: str
    evidence: tuple[tuple[str, int, int], ...]
    one_is_enough: bool

    def recall(self, matches: Sequence[Match]) -> float:
        """The share of the evidence that these matches hold."""
        found = [_covered(quote, matches) for quote in self.evidence]
        return float(any(found)) if self.one_is_enough else fmean(found)


def main() -> None:
    """Print a line a splitter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LARA_DATA", beside)))
    folder: Path = parser.parse_args().data / "techdocs"
    documents = {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / "docs").iterdir())}
    asked = questions(folder / "queries.jsonl", documents)
    columns = [f"first {k}" for k in FIRST] + [f"{limit:,} ch." for limit in CHARACTERS]
    print(f"{len(asked)} questions, {len(documents)} documents")
    print(f"{'':34}chunks  mean " + "".join(f"{name:>11}" for name in columns))
    for name, split in SPLITTERS.items():
        passages = [passage for title, text in documents.items() for passage in split(title, text)]
        length = fmean(len(passage.text) for passage in passages)
        figures = "".join(f"{figure:11.3f}" for figure in recalls(passages, asked))
        print(f"{name:34}{len(passages):6} {length:5.0f} {figures}", flush=True)


def recalls(passages: Sequence[Passage], asked: Sequence[Question]) -> list[float]:
    """The mean recall among the first matches, then among those that fit into so many characters."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedIndex(Path(folder) / "index") as index:
        index.upsert(passages)
        alpha = retrieval_plan(index.count(), alpha_ceiling=index.alpha_ceiling).alpha
        found = [index.search(question.text, limit=100, alpha=alpha) for question in asked]
    cuts: list[Callable[[list[Match]], list[Match]]] = [lambda matches, k=k: matches[:k] for k in FIRST]  # type: ignore[misc]
    cuts += [lambda matches, limit=limit: fitting(matches, limit) for limit in CHARACTERS]  # type: ignore[misc]
    return [
        fmean(question.recall(cut(matches)) for question, matches in zip(asked, found, strict=True))
        for cut in cuts
    ]


def fitting(matches: Sequence[Match], limit: int) -> list[Match]:
    """The first matches whose contents together have at most ``limit`` characters."""
    total, kept = 0, []
    for match in matches:
        total += len(match.passage.content)
        if total > limit:
            break
        kept.append(match)
    return kept


def questions(path: Path, documents: dict[str, str]) -> list[Question]:
    """The questions that the documents answer; a quote counts where it first stands."""
    asked = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        evidence = tuple(
            (quote["doc"], start, start + len(quote["quote"]))
            for quote in row["evidence"]
            for start in [documents[quote["doc"]].index(quote["quote"])]
        )
        if evidence:
            asked.append(Question(row["text"], evidence, row["evidence_mode"] == "any"))
    return asked


def adaptive(name: str, text: str) -> list[Passage]:
    """This project's splitter; a table's file is split as one."""
    chunker = AdaptiveChunker(SIZE, OVERLAP)
    chunks = chunker.split_rows(text) if name.endswith(".csv") else chunker.split(text)
    return [_passage(name, chunk.text, chunk.start, chunk.end, chunk.heading) for chunk in chunks]


def adaptive_without_headings(name: str, text: str) -> list[Passage]:
    """The same without what the chunks do not say themselves, to see what that is worth."""
    return [Passage(one.id, one.text, metadata=one.metadata) for one in adaptive(name, text)]


def llama_index(name: str, text: str) -> list[Passage]:
    """LlamaIndex's default splitter."""
    splitter = SentenceSplitter(
        chunk_size=SIZE, chunk_overlap=OVERLAP, tokenizer=list, include_metadata=False
    )
    nodes = splitter.get_nodes_from_documents([Document(text=text)])
    return [
        _passage(name, node.text, node.start_char_idx or 0, node.end_char_idx or 0)
        for node in nodes
        if isinstance(node, TextNode) and node.text.strip()
    ]


def langchain(name: str, text: str) -> list[Passage]:
    """LangChain's default splitter."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=OVERLAP, add_start_index=True)
    return [
        _passage(name, document.page_content, start, start + len(document.page_content))
        for document in splitter.create_documents([text])
        for start in [int(document.metadata["start_index"])]
    ]


SPLITTERS: dict[str, Split] = {
    "AdaptiveChunker": adaptive,
    "AdaptiveChunker, without headings": adaptive_without_headings,
    "SentenceSplitter": llama_index,
    "RecursiveCharacterTextSplitter": langchain,
}


def _passage(name: str, text: str, start: int, end: int, heading: str = "") -> Passage:
    return Passage(
        f"{name}#{start}-{end}", text, heading, metadata={"document": name, "start": start, "end": end}
    )


def _covered(quote: tuple[str, int, int], matches: Sequence[Match]) -> bool:
    """Whether every character of a quote lies in the span of a match."""
    document, position, end = quote
    spans = sorted(
        (int(str(found["start"])), int(str(found["end"])))
        for found in (match.passage.metadata for match in matches)
        if found["document"] == document
    )
    for start, stop in spans:
        if start <= position < stop:
            position = stop
    return position >= end


if __name__ == "__main__":
    main()
