"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def save_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text to a file, in UTF-8; an older one is replaced whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    file = Path(path)
    new = file.with_name(f"{file.name}.{secrets.token_hex(8)}")  # two may save at once
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
