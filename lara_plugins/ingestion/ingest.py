"""Bringing an index up to date with files and folders."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from lara_plugins.errors import IngestError
from lara_plugins.ingestion.chunking import AdaptiveChunker
from lara_plugins.ingestion.readers import Part, read_document
from lara_plugins.passages import Passage
from lara_plugins.retrieval import CONTENT_HASH

BATCH = 2000
"""Passages written at once."""

Progress = Callable[[int, int, Path], None]
"""Told before each file: how many are done, how many there are, and the file."""


class SourceIndex(Protocol):
    """What ingestion needs of an index: which sources it holds, and to write and forget them."""

    def sources(self) -> Mapping[str, str]:
        """The content hash of each source, "" where its passages do not agree on one."""

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Write passages; one that has the id of an older one replaces it."""

    def delete_source(self, source: str) -> None:
        """Forget all passages of a source."""


@dataclass(slots=True)
class IngestReport:
    """What became of the files.

    Attributes:
        added: files that the index did not hold.
        updated: files that have changed since.
        unchanged: files that the index holds as they are.
        removed: sources that the index holds no longer: their file is gone, or has no text now.
        skipped: what was not read, whole files or parts of them, each with the reason.
        passages: how many passages were written.
        seconds: how long it took.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    passages: int = 0
    seconds: float = 0.0

    def skip(self, path: str | os.PathLike[str], reason: str) -> None:
        """Note what was not read; a name that is not UTF-8 is put down as far as it can be shown."""
        self.skipped.append((os.fsencode(path).decode("utf-8", "replace"), reason))


def ingest(
    paths: Iterable[str | os.PathLike[str]],
    index: SourceIndex,
    *,
    chunker: AdaptiveChunker | None = None,
    exclude: Iterable[str | os.PathLike[str]] = (),
    progress: Progress | None = None,
) -> IngestReport:
    """Read files and folders into an index; what has not changed since the last time is left alone.

    A file's source is its absolute path, so that it is known again from any working directory.
    Files that are gone are forgotten where they lay below one of ``paths``. Names that begin
    with a dot are passed over, links to folders are not followed, and a file that two paths
    lead to is read once. A file that cannot be read does not stop the others: it stands in the
    report with its reason.

    Args:
        paths: files and folders; a folder is read with all that is below it.
        index: where the passages go.
        chunker: how long texts are split; the default chunker if not given. Files are read
            again when it differs from the one they were split with.
        exclude: folders that are passed over, such as the index's own.
        progress: told before each file.

    Raises:
        IngestError: a path does not exist; nothing has been written then.
        MissingExtra: there is a PDF and pypdf is not installed.
    """
    began = time.monotonic()
    chunker = chunker or AdaptiveChunker()
    report = IngestReport()
    roots = [existing_path(path) for path in paths]
    excluded = {str(Path(folder).resolve()) for folder in exclude}
    files = list(dict.fromkeys(file for root in roots for file in _files(root, excluded, report)))
    known = index.sources()
    for done, file in enumerate(files):
        if progress is not None:
            progress(done, len(files), file)
        _ingest_file(file, index, known.get(str(file)), chunker, report)
    for source in known:
        path = Path(source)
        if any(path.is_relative_to(root) for root in roots) and not os.path.lexists(path):
            index.delete_source(source)
            report.removed += 1
    report.seconds = time.monotonic() - began
    return report


def passage_id(source: str, key: str) -> str:
    """The identity of a source's passage: 16 hexadecimal digits of the source's SHA-256, "#", key.

    Args:
        source: where the passage comes from; two sources never share an identity.
        key: what tells the passage from the others of its source: a record's own ``_id``, else
            its number.
    """
    return f"{hashlib.sha256(source.encode()).hexdigest()[:16]}#{key}"


def existing_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path, links followed.

    Raises:
        IngestError: there is nothing at ``path``.
    """
    if not os.path.exists(path):
        raise IngestError(f"{os.fspath(path)} does not exist: give a file or a folder")
    return Path(path).resolve()


def _files(root: Path, excluded: Collection[str], report: IngestReport) -> Iterator[Path]:
    """The regular files at or below ``root``, links followed, in a stable order."""
    if root.is_file():
        yield root
        return

    def unlisted(error: OSError) -> None:
        report.skip(error.filename, f"cannot be listed: {error.strerror}")

    for folder, folders, names in os.walk(root, onerror=unlisted):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and os.path.join(folder, name) not in excluded
        )
        for name in folders:
            if os.path.islink(link := os.path.join(folder, name)):
                report.skip(link, "is a link to a folder, which is not followed")
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(folder, name)
            if path.is_file():
                yield path.resolve()
            else:
                report.skip(path, "is no regular file, or a link to nothing")


def _ingest_file(
    file: Path,
    index: SourceIndex,
    known: str | None,
    chunker: AdaptiveChunker,
    report: IngestReport,
) -> None:
    """Bring the passages of one file up to date."""
    source = str(file)
    try:
        source.encode()
    except UnicodeEncodeError:
        report.skip(file, "has a name, or lies in a folder with a name, that is not UTF-8: rename it")
        return
    try:
        data = file.read_bytes()
    except OSError as error:
        report.skip(file, f"cannot be opened: {error.strerror}")
        return
    content_hash = hashlib.sha256(chunker.fingerprint.encode() + b"\0" + data).hexdigest()
    if content_hash == known:
        report.unchanged += 1
        return
    try:
        document = read_document(file, data)
    except IngestError as error:
        report.skip(file, str(error))
        passages: list[Passage] = []
    else:
        for problem in document.problems:
            report.skip(file, problem)
        passages = list(_passages(document.parts, source, content_hash, chunker))
    if known is not None:
        index.delete_source(source)
    if passages:
        _write(passages, index)
        report.passages += len(passages)
    report.added += bool(passages) and known is None
    report.updated += bool(passages) and known is not None
    report.removed += not passages and known is not None


def _passages(
    parts: Sequence[Part], source: str, content_hash: str, chunker: AdaptiveChunker
) -> Iterator[Passage]:
    """The passages of one file; those without an id of their own are numbered through."""
    own = {part.id for part in parts}
    numbers = (number for number in map(str, itertools.count()) if number not in own)
    for part in parts:
        pieces = (
            [("", part.text)]
            if part.record
            else [(chunk.heading, chunk.text) for chunk in chunker.split(part.text)]
        )
        for heading, text in pieces:
            yield Passage(
                id=passage_id(source, part.id or next(numbers)),
                text=text,
                heading=" > ".join(filter(None, (part.heading, heading))),
                source=source,
                metadata={**part.metadata, CONTENT_HASH: content_hash},
            )


def _write(passages: Sequence[Passage], index: SourceIndex) -> None:
    """Write the passages of one file in batches.

    The first passage gets its hash last: until then the hashes do not agree, so that a file whose
    writing was interrupted is read again.
    """
    first = passages[0]
    if len(passages) > BATCH:
        passages = [replace(first, metadata={**first.metadata, CONTENT_HASH: ""}), *passages[1:], first]
    for start in range(0, len(passages), BATCH):
        index.upsert(passages[start : start + BATCH])
