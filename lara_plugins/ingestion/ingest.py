"""Bringing an index up to date with files, folders and object storage."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from lara_plugins.errors import IngestError
from lara_plugins.ingestion.chunking import AdaptiveChunker
from lara_plugins.ingestion.passages import Situate, content_hash, passages
from lara_plugins.ingestion.readers import left_out, read_document
from lara_plugins.ingestion.sources import Source, place
from lara_plugins.ingestion.writing import EventualIndex, SourceIndex, Writing

Progress = Callable[[int, int, str], None]
"""Told before each file: how many are done, how many there are, and the file's path or URL."""

_BLOCK = 1 << 20


@dataclass(slots=True)
class IngestReport:
    """What became of the files.

    Attributes:
        added: files that the index did not hold.
        updated: files that have changed since.
        unchanged: files that the index holds as they are.
        removed: sources that the index holds no longer: their file is gone, or has no text now, or
            one that the index cannot store.
        skipped: what the index does not hold, whole files or lines of them, each with the reason; it
            is named each time, whether the file has changed or not.
        cleaned: lines that were removed as page headers and footers: path, line, on how many pages.
        passages: how many passages were written.
        seconds: how long it took.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    cleaned: list[tuple[str, str, int]] = field(default_factory=list)
    passages: int = 0
    seconds: float = 0.0

    def skip(self, path: str | os.PathLike[str], reason: str) -> None:
        """Note what is left out; a name that is not UTF-8 is put down as far as it can be shown."""
        self.skipped.append((os.fsencode(path).decode("utf-8", "replace"), reason))


def ingest(
    paths: Iterable[str | os.PathLike[str]],
    index: SourceIndex,
    *,
    chunker: AdaptiveChunker | None = None,
    exclude: Iterable[str | os.PathLike[str]] = (),
    progress: Progress | None = None,
    situate: Situate | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> IngestReport:
    """Read files, folders and object storage into an index; what has not changed is left alone.

    A file's source is its absolute path or URL, so that it is known again from any working
    directory. Files that are gone are forgotten where they lay below one of ``paths``. Names that
    begin with a dot are passed over, links to folders are not followed, and a file that two paths
    lead to is read once. A file that cannot be read does not stop the others: it stands in the
    report with its reason. So does one with a passage that the index cannot store; the index then
    holds nothing of it, and the next ingestion tries it again. Any other error of the index, or one
    of ``situate``, ends the ingestion; the next one goes on where it was, as after a crash: a source
    counts as held only once all of it is written.

    Files are read one at a time, those of records line by line; while some passages are written
    the next are read, never more than a few batches. Names and content hashes of all sources are
    held in memory, and the identities of one file's records. Files of records are read to their end
    even where they have not changed, since their faulty lines are named each time.

    Args:
        paths: files, folders and fsspec URLs (``s3://bucket/folder``); a folder is read with all
            that is below it.
        index: where the passages go.
        chunker: how long texts are split; the default chunker if not given. Files are read
            again when it differs from the one they were split with.
        exclude: folders that are passed over, such as the index's own.
        progress: told before each file.
        situate: gives each chunk a context that is embedded and read with it (`situated_by`).
        storage_options: what URLs are opened with, such as ``endpoint_url`` for MinIO.

    Raises:
        IngestError: a path does not exist; nothing has been written then.
        MissingExtra: there is a PDF and pypdf is not installed, or a URL and fsspec is not.
    """
    began = time.monotonic()
    reading = _Reading(index, chunker or AdaptiveChunker(), situate)
    report = reading.report
    places = [place(path, storage_options) for path in paths]
    excluded = {str(Path(folder).resolve()) for folder in exclude}
    found = {source.name: source for each in places for source in each.sources(excluded, report.skip)}
    known = index.sources()
    with Writing(index) as writing:
        for done, source in enumerate(found.values()):
            if progress is not None:
                progress(done, len(found), source.name)
            reading.bring_up_to_date(source, known.get(source.name), writing)
    reading.settle(known, writing.refused)
    for name in known.keys() - found.keys():
        if any(each.holds(name) and not each.exists(name) for each in places):
            index.delete_source(name)
            report.removed += 1
    if isinstance(index, EventualIndex):
        index.wait_until_visible()
    report.seconds = time.monotonic() - began
    return report


@dataclass(slots=True)
class _Reading:
    """What an ingestion needs at each of its sources."""

    index: SourceIndex
    chunker: AdaptiveChunker
    situate: Situate | None
    report: IngestReport = field(default_factory=IngestReport)
    written: dict[str, int] = field(default_factory=dict)

    def bring_up_to_date(self, source: Source, known: str | None, writing: Writing) -> None:
        """Write one source's passages where its content is not what the index holds."""
        try:
            with source.open() as file:
                hashed = content_hash(self.chunker, _blocks(file))
            if hashed == known:
                self.report.unchanged += 1
                self._name_left_out(source)
                return
        except OSError as error:
            self.report.skip(source.name, f"cannot be opened: {error.strerror or error}")
            return
        self.written[source.name] = self._write(source, hashed, known, writing)

    def settle(self, known: Collection[str], refused: Mapping[str, str]) -> None:
        """Count what was written, and name what the index cannot store."""
        for name, read in self.written.items():
            written = 0 if name in refused else read
            self.report.passages += written
            self.report.added += bool(written) and name not in known
            self.report.updated += bool(written) and name in known
            self.report.removed += not written and name in known
        for name, reason in refused.items():
            self.report.skip(name, f"is left out whole: {reason}")

    def _name_left_out(self, source: Source) -> None:
        with source.open() as file:
            for problem in left_out(source.name, file):
                self.report.skip(source.name, problem)

    def _write(self, source: Source, hashed: str, known: str | None, writing: Writing) -> int:
        """Returns how many passages there are; what is not read stands in the report."""
        with source.open() as file:
            try:
                document = read_document(source.name, file)
                self._forget(source, known)
                found = passages(document.parts, source.name, hashed, self.chunker, self.situate)
                written = writing.source(found)
            except IngestError as error:
                self._forget(source, known)
                self.report.skip(source.name, str(error))
                return 0
        for problem in document.problems:
            self.report.skip(source.name, problem)
        for removed in document.removed:
            self.report.cleaned.append((source.name, removed.line, removed.pages))
        if not written and not document.problems:
            self.report.skip(source.name, "holds no text")
        return written

    def _forget(self, source: Source, known: str | None) -> None:
        if known is not None:
            self.index.delete_source(source.name)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block
