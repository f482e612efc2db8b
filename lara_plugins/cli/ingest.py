"""``lara ingest``."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from lara_plugins.cli.render import console, print_report, shown_source
from lara_plugins.ingestion import IngestReport, existing_path, ingest
from lara_plugins.retrieval import EmbeddedIndex


def run(paths: list[Path], folder: Path) -> None:
    """Bring the index up to date; the summary goes to stdout, the progress to stderr."""
    roots = [existing_path(path) for path in paths]  # before the index's folder is made
    with EmbeddedIndex(folder) as index:
        report = ingest_with_progress(roots, index, console(sys.stderr))
        print_report(console(), report, Path.cwd())


def ingest_with_progress(paths: list[Path], index: EmbeddedIndex, out: Console) -> IngestReport:
    """``ingest``, with a bar on ``out`` if somebody is looking."""
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("reading")

        def show(done: int, total: int, file: Path) -> None:
            bar.update(task, completed=done, total=total, description=shown_source(str(file), Path.cwd()))

        return ingest(paths, index, exclude=[index.path], progress=show)
