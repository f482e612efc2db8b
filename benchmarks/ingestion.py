"""How much memory an ingestion takes, and how long, as the corpus grows.

    python benchmarks/ingestion.py

Generates files of distinct paragraphs, about a hundred chunks in each, and brings them, in a process
of its own for each size, into a sink that only counts, into Parquet import files and into an
`EmbeddedIndex`, with its embedded encoders. The peak is the largest resident set that the process
had. The first two hold nothing of what they wrote; the embedded index remembers a row a passage, so
its own memory grows with the corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lara_plugins import EmbeddedIndex, ParquetExport, Passage, ingest
from lara_plugins.retrieval import Bm25Encoder, WordLlamaEncoder

SIZES = (20_000, 100_000)
TARGETS = ("sink", "parquet", "embedded")
CHUNKS_A_FILE = 100


class Sink:
    """Encodes like an index and keeps nothing."""

    atomic = True

    def __init__(self) -> None:
        self._dense = WordLlamaEncoder()
        self._sparse = Bm25Encoder()

    def sources(self) -> Mapping[str, str]:
        return {}

    def delete_source(self, source: str) -> None:
        """Nothing is kept."""

    def upsert(self, passages: Sequence[Passage]) -> None:
        texts = [passage.content for passage in passages]
        self._dense.encode_documents(texts)
        self._sparse.encode_documents(texts)


def main() -> None:
    """Print a line for each target and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=TARGETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="chunks")
    parser.add_argument("--one", nargs=2, metavar=("TARGET", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.one[0], Path(arguments.one[1]))))
        return
    for target in arguments.targets:
        for size in arguments.sizes:
            with tempfile.TemporaryDirectory() as made:
                generate(Path(made) / "docs", size)
                command = [sys.executable, "-W", "ignore", __file__, "--one", target, made]
                figures = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603
            print(
                f"{target:9} {figures['passages']:8,} passages: peak {figures['peak']:6.1f} MB, "
                f"{figures['seconds']:6.1f} s, {figures['passages'] / figures['seconds']:6,.0f} a second",
                flush=True,
            )


def measured(target: str, folder: Path) -> dict[str, float]:
    """One ingestion and the peak of this process."""
    began = time.perf_counter()
    if target == "sink":
        report = ingest([folder / "docs"], Sink())
    elif target == "parquet":
        with ParquetExport(str(folder / "import"), WordLlamaEncoder(), Bm25Encoder()) as exported:
            report = ingest([folder / "docs"], exported)
    else:
        with EmbeddedIndex(folder / "index") as index:
            report = ingest([folder / "docs"], index)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"passages": report.passages, "peak": peak, "seconds": seconds}


def generate(folder: Path, chunks: int) -> None:
    """Files of about so many chunks, no two of which are alike."""
    folder.mkdir()
    for number in range(-(-chunks // CHUNKS_A_FILE)):
        paragraphs = (
            paragraph(number * CHUNKS_A_FILE + place)
            for place in range(min(CHUNKS_A_FILE, chunks - number * CHUNKS_A_FILE))
        )
        sections = (f"## Part {place}\n\n{text}\n\n" for place, text in enumerate(paragraphs))
        (folder / f"{number:05}.md").write_text(f"# File {number}\n\n" + "".join(sections))


def paragraph(seed: int) -> str:
    """About 900 characters of words out of 65,536, in sentences; another seed gives another one."""
    digits = "".join(hashlib.sha256(f"{seed} {part}".encode()).hexdigest() for part in range(9))
    words = [f"w{digits[place : place + 4]}" for place in range(0, len(digits), 4)]
    sentences = (" ".join(words[place : place + 12]).capitalize() for place in range(0, len(words), 12))
    return ". ".join(sentences) + "."


if __name__ == "__main__":
    main()
