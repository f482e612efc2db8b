"""Hashes of files, by which a fingerprint tells a model's weights apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path


def weights_digest(files: Sequence[Path]) -> str:
    """The first 12 hex digits of the SHA-256 of the files' contents; read again when a file changes.

    Raises:
        OSError: a file is missing.
    """
    stats = [file.stat() for file in files]
    changed = tuple((stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_size) for stat in stats)
    return _digest(tuple(files), changed)


@lru_cache(maxsize=64)
def _digest(files: tuple[Path, ...], _changed: tuple[tuple[int, ...], ...]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()[:12]
