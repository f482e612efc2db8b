"""``lara export``."""

from __future__ import annotations

import sys
from pathlib import Path

from lara_plugins.cli.ingest import file_progress
from lara_plugins.cli.render import console, print_report
from lara_plugins.ingestion import export_parquet
from lara_plugins.retrieval import WordLlamaEncoder


def run(paths: list[str], folder: str, namespace: str) -> None:
    """Write the import files; the summary goes to stdout, the progress to stderr."""
    with file_progress(console(sys.stderr)) as show:
        report = export_parquet(paths, folder, WordLlamaEncoder(), namespace=namespace, progress=show)
    print_report(console(), report, Path.cwd())
