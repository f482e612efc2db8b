"""An index's folder: the engine's shard, and beside it the manifest that says what it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lara_plugins.errors import EmbeddingMismatch, IndexUnreadable, InvalidArgument
from lara_plugins.retrieval import locking
from lara_plugins.retrieval import manifest as manifest_file
from lara_plugins.retrieval.contents import Contents
from lara_plugins.retrieval.locking import FolderLock
from lara_plugins.retrieval.manifest import Manifest
from lara_plugins.retrieval.records import LEDGER_KEYS, check_text, row_of

if TYPE_CHECKING:
    from lara_plugins.retrieval.shard import Shard

SHARD = "shard"
SEGMENTS = "segments"
"""The folder in which the engine keeps the points of a shard."""


def open_folder(path: Path, expected: Manifest, *, create: bool) -> tuple[Shard, Manifest]:
    """A folder's shard, which is the right to read and write the folder, and its manifest.

    Args:
        path: the folder.
        expected: what its manifest must agree with in fingerprint and dimension; the manifest of
            a new folder.
        create: whether to make it where there is none.

    Raises:
        InvalidArgument: there is no index at ``path`` and ``create`` is false, it is a file, or its
            name is not UTF-8.
        IndexInUse: another process, or another object of this one, has it open.
        IndexUnreadable: the folder is of another version, half written, damaged or something else.
        EmbeddingMismatch: it was filled by other encoders.
        MissingExtra: qdrant-edge-py is not installed.
    """
    from lara_plugins.retrieval.shard import Shard  # noqa: PLC0415

    if path.exists() and not path.is_dir():
        raise InvalidArgument("path", str(path), "it is a file: give the index's folder")
    check_text("path", str(path))  # of a name that is not UTF-8 the engine would make another one
    if _names(path) and not (path / locking.NAME).exists():
        _check_index(path)  # before the lock's file is put into somebody's own folder
    if not _names(path) and not create:
        raise InvalidArgument(
            "path", str(path), "there is no index here: check the name, or ingest into it first"
        )
    path.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(path)
    try:
        if _names(path):
            _check_index(path)
            manifest = _agreeing(Manifest.read(path), expected, path)
            return Shard.load(path / SHARD, lock), manifest
        shard = Shard.create(path / SHARD, lock, expected.dimension)
        expected.write(path)  # last: a folder without it was never finished
    except BaseException:
        lock.release()
        raise
    return shard, expected


def read_contents(path: Path, shard: Shard, manifest: Manifest) -> Contents:
    """What an open shard holds.

    Raises:
        IndexUnreadable: a record is not one of ours, or some are gone.
    """
    contents = Contents()
    try:
        for page in shard.scan(LEDGER_KEYS):
            for record in page:
                contents.add(record.id, row_of(record.payload), record.terms)
    except KeyError as error:
        raise IndexUnreadable(
            f"the index at {path} holds a record without {error}: delete the folder and ingest again"
        ) from error
    if manifest.passages not in {None, len(contents.rows)}:
        raise IndexUnreadable(
            f"the index at {path} had {manifest.passages} passages when it was closed and "
            f"has {len(contents.rows)}: its files are damaged, delete the folder and ingest again"
        )
    return contents


def _names(path: Path) -> set[str]:
    """What the folder holds beside the lock's file; nothing where there is none."""
    return {entry.name for entry in path.iterdir()} - {locking.NAME} if path.exists() else set()


def _check_index(path: Path) -> None:
    """Refuse a folder that is not certainly an index: no later error may advise to delete such a one.

    A manifest alone proves nothing, many folders hold a file of its name.
    """
    if not (path / SHARD / SEGMENTS).is_dir():
        raise IndexUnreadable(f"{path} holds files and is no index, or no whole one: give another folder")
    if not (path / manifest_file.NAME).exists():
        raise IndexUnreadable(
            f"the creation of the index at {path} was interrupted: delete the folder and ingest again"
        )


def _agreeing(manifest: Manifest, expected: Manifest, path: Path) -> Manifest:
    if (manifest.fingerprint, manifest.dimension) != (expected.fingerprint, expected.dimension):
        raise EmbeddingMismatch(
            f"the index at {path} was filled by {manifest.fingerprint} ({manifest.dimension} dimensions), "
            f"not by {expected.fingerprint} ({expected.dimension}): open it with the encoders that filled "
            "it, or ingest again into another folder"
        )
    return manifest
