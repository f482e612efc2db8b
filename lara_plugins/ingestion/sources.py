"""Where documents come from: files and folders, and object storage through fsspec."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from lara_plugins.arguments import is_utf8
from lara_plugins.errors import IngestError, MissingExtra

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

Skip = Callable[[str | os.PathLike[str], str], None]
"""Told what is passed over, and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file, wherever it lies.

    Args:
        name: its identity, an absolute path or a URL, the same at every ingestion.
        open: opens it for reading, from its beginning each time.
    """

    name: str
    open: Callable[[], BinaryIO]


class Place(Protocol):
    """A file, or a folder with all that is below it."""

    def sources(self, excluded: Collection[str], skip: Skip) -> Iterator[Source]:
        """The files, in a stable order."""

    def holds(self, name: str) -> bool:
        """Whether a source of this name lies here, or would."""

    def exists(self, name: str) -> bool:
        """Whether there is one of this name now."""


def place(path: str | os.PathLike[str], storage_options: Mapping[str, object] | None = None) -> Place:
    """A path on this machine, or a URL such as ``s3://bucket/folder`` that fsspec knows.

    Args:
        path: the path or URL.
        storage_options: arguments of the URL's file system, such as ``endpoint_url``, ``key`` and
            ``secret`` for MinIO; credentials come from the environment where none are given.

    Raises:
        IngestError: there is nothing there, or no such kind of URL.
        MissingExtra: fsspec, or its part for this kind of URL, is not installed.
    """
    if "://" in os.fspath(path):
        return _remote(os.fspath(path), storage_options or {})
    return LocalPlace(existing_path(path))


def existing_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path, links followed.

    Raises:
        IngestError: there is nothing at ``path``.
    """
    if not os.path.exists(path):
        raise IngestError(f"{os.fspath(path)} does not exist: give a file or a folder")
    return Path(path).resolve()


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A file or folder of this machine, links followed; links to folders inside it are not."""

    root: Path

    def sources(self, excluded: Collection[str], skip: Skip) -> Iterator[Source]:
        for path in self._files(excluded, skip):
            if _is_named(path, skip):
                yield Source(str(path), partial(_opened, path))

    def holds(self, name: str) -> bool:
        return "://" not in name and Path(name).is_relative_to(self.root)

    def exists(self, name: str) -> bool:
        return os.path.lexists(name)

    def _files(self, excluded: Collection[str], skip: Skip) -> Iterator[Path]:
        if self.root.is_file():
            yield self.root
            return

        def unlisted(error: OSError) -> None:
            skip(error.filename, f"cannot be listed: {error.strerror}")

        for folder, folders, names in os.walk(self.root, onerror=unlisted):
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".") and os.path.join(folder, name) not in excluded
            )
            for name in folders:
                if os.path.islink(link := os.path.join(folder, name)):
                    skip(link, "is a link to a folder, which is not followed")
            for name in sorted(name for name in names if not name.startswith(".")):
                path = Path(folder, name)
                if path.is_file():
                    yield path.resolve()
                else:
                    skip(path, "is no regular file, or a link to nothing")


def _is_named(path: str | Path, skip: Skip) -> bool:
    """Whether a name can be stored as the source of passages."""
    if is_utf8(str(path)):
        return True
    skip(path, "has a name, or lies in a folder with a name, that is not UTF-8: rename it")
    return False


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """An object, or all below a prefix, in a file system of fsspec."""

    system: AbstractFileSystem
    root: str

    def sources(self, excluded: Collection[str], skip: Skip) -> Iterator[Source]:
        for path in sorted(self.system.find(self.root)):
            below = path.removeprefix(self.root).split("/")
            if not any(name.startswith(".") for name in below) and _is_named(path, skip):
                yield Source(self._url(path), partial(self.system.open, path, "rb"))

    def holds(self, name: str) -> bool:
        root = self._url(self.root)
        return name == root or name.startswith(root.rstrip("/") + "/")

    def exists(self, name: str) -> bool:
        return bool(self.system.exists(name))

    def _url(self, path: str) -> str:
        return str(self.system.unstrip_protocol(path))


def _remote(url: str, storage_options: Mapping[str, object]) -> RemotePlace:
    try:
        import fsspec  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("fsspec", "lara-plugins[storage]") from error
    protocol = url.partition("://")[0]
    try:
        # What another process wrote must be seen: no listing is kept from an earlier ingestion.
        system, root = fsspec.url_to_fs(url, use_listings_cache=False, **storage_options)
    except ValueError as error:
        raise IngestError(f"{url} is no URL that fsspec knows: {error}") from error
    except ImportError as error:
        raise MissingExtra(f"the file system of {protocol}://", "lara-plugins[storage]") from error
    if not system.exists(root):
        raise IngestError(f"{url} does not exist: give a file or a folder")
    return RemotePlace(system, str(root))
