"""``lara ingest``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from lara_plugins.cli.render import console, print_report, shown_source
from lara_plugins.cli.where import Hosted, pinecone_errors
from lara_plugins.ingestion import IngestReport, Progress, existing_path, ingest
from lara_plugins.retrieval import EmbeddedIndex


def run(paths: list[str], where: Path | Hosted) -> None:
    """Bring the index up to date; the summary goes to stdout, the progress to stderr."""
    for path in paths:  # before the index's folder is made
        if "://" not in path:
            existing_path(path)
    if isinstance(where, Hosted):
        with pinecone_errors():
            _fill(paths, where)
        return
    with EmbeddedIndex(where) as index:
        report = ingest_with_progress(paths, index, console(sys.stderr))
        print_report(console(), report, Path.cwd())


def _fill(paths: list[str], hosted: Hosted) -> None:
    """Bring an index at Pinecone up to date, and then the statistics that questions are weighed by."""
    index = hosted.fill()
    with file_progress(console(sys.stderr)) as show:
        report = ingest(paths, index, progress=show)
    if report.passages or report.removed or hosted.counted() != index.count():
        hosted.save_statistics(index)
    print_report(console(), report, Path.cwd())
    console().print(
        f"BM25's statistics, which lara ask --pinecone {hosted.name} needs: {hosted.bm25}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )


def ingest_with_progress(paths: list[str], index: EmbeddedIndex, out: Console) -> IngestReport:
    """``ingest``, with a bar on ``out`` if somebody is looking."""
    with file_progress(out) as show:
        return ingest(paths, index, exclude=[index.path], progress=show)


@contextmanager
def file_progress(out: Console) -> Iterator[Progress]:
    """What an ingestion tells of each file, as a bar on ``out`` if somebody is looking."""
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("reading")

        def show(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=shown_source(name, Path.cwd()))

        yield show
