"""The right to an index's folder: one object in one process has it at a time.

The engine's own lock is not enough: it is taken after some of the files have been read, so that two
processes which open and close a folder in turns damage it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from lara_plugins.errors import IndexInUse

NAME = "lara.lock"

if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _release(file: BinaryIO) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)  # said, since a forked process may still have the file open


class FolderLock:
    """The lock on a folder, until it is released or the process ends, however that ends.

    Args:
        folder: a folder that exists; the lock's file in it is made where there is none, and stays.

    Raises:
        IndexInUse: another object, in any process, has the lock.
        OSError: the folder may not be written.
    """

    def __init__(self, folder: Path) -> None:
        self._file: BinaryIO = (folder / NAME).open("ab")
        try:
            _take(self._file)
        except (BlockingIOError, PermissionError) as error:
            self._file.close()
            raise IndexInUse(
                f"the index at {folder} is open in another process or by another EmbeddedIndex: "
                "close that one first"
            ) from error
        except OSError:
            self._file.close()
            raise

    def release(self) -> None:
        """Let others have it. Releasing twice does nothing."""
        if not self._file.closed:
            _release(self._file)
            self._file.close()
