"""``lara demo``: questions over SQLite's documentation, which ships with the package."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from rich.text import Text

from lara_plugins.cli.ask import pipeline_over
from lara_plugins.cli.ingest import ingest_with_progress
from lara_plugins.cli.render import console, print_answer, print_rule, print_trace
from lara_plugins.gate import ThresholdGate
from lara_plugins.retrieval import Bm25Encoder, EmbeddedIndex, WordLlamaEncoder

CORPUS = Path(__file__).parent / "demo_corpus" / "pages"

QUESTIONS = (
    ("a lookup", "Which version of SQLite added support for STRICT tables?"),
    ("a yes or no", "Can a WITHOUT ROWID table have an AUTOINCREMENT column?"),
    ("a list", "What are the limitations of generated columns?"),
    ("a comparison", "What is the difference between a stored and a virtual generated column?"),
    ("one that the pages do not answer", "How do I set up replication between two servers?"),
)


def run(question: str | None, afford: float) -> None:
    """Ask the five questions above, or one of the user's own."""
    out = console()
    with EmbeddedIndex(index_folder()) as index:
        report = ingest_with_progress([str(CORPUS)], index, console(sys.stderr))
        pages = len(index.sources())
        built = f", indexed in {report.seconds:.1f} s" if report.passages else ""
        out.print(f"SQLite's documentation: {pages} pages, {index.count()} passages{built}.")
        pipeline = pipeline_over(index, afford, ThresholdGate())
        for kind, asked in QUESTIONS if question is None else [("your question", question)]:
            out.print()
            print_rule(out, kind)
            out.print(Text(asked, style="bold cyan"))
            outcome = pipeline.ask(asked)
            print_answer(out, outcome, CORPUS)
            out.print()
            print_trace(out, outcome)
    out.print()
    if question is None:
        next_step = 'Ask your own: lara demo "What is the difference between json_each and json_tree?"'
    else:
        next_step = 'Ask your own files: lara ingest PATH --index DIR, then lara ask "..." --index DIR'
    out.print(next_step, soft_wrap=True)  # a command to copy is not broken over two lines


def index_folder() -> Path:
    """Where the demo's index is kept: one folder for each place of the package and its encoders."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    encoders = f"{WordLlamaEncoder().fingerprint}+{Bm25Encoder().fingerprint}"
    stamp = hashlib.sha256(f"{CORPUS}\n{encoders}".encode()).hexdigest()[:12]
    return cache / "lara-plugins" / f"demo-{stamp}"
