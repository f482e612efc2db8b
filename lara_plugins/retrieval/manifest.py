"""The file that says what an index folder is: written last when it is created, and atomically."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from lara_plugins.errors import IndexUnreadable

FORMAT = 1
NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder's vectors were made with.

    Attributes:
        fingerprint: identity of both encoders.
        dimension: numbers in a dense vector.
        average_length: terms in an average passage, as the sparse vectors assume it.
        reencoding: whether the sparse vectors are being brought to ``average_length``; still true
            when a folder is opened, that was interrupted and has to be done again.
        passages: how many there were when it was closed, so that lost ones are noticed; None from
            the first write until it is closed again.
    """

    fingerprint: str
    dimension: int
    average_length: float
    reencoding: bool = False
    passages: int | None = 0

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest: afterwards there is the old one or the new one, never half.

        Only who has the folder's lock may write it.
        """
        new = folder / f"{NAME}.new"
        with new.open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / NAME)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The folder's manifest.

        Raises:
            IndexUnreadable: it is damaged or of another version.
        """
        try:
            content = json.loads((folder / NAME).read_text(encoding="utf-8"))
            version = content["format"]
            if version != FORMAT:
                raise IndexUnreadable(
                    f"the index at {folder} has format {version}, this version reads {FORMAT}: "
                    "use the version that wrote it, or delete the folder and ingest again"
                )
            passages = content["passages"]
            return cls(
                fingerprint=str(content["fingerprint"]),
                dimension=int(content["dimension"]),
                average_length=float(content["average_length"]),
                reencoding=bool(content["reencoding"]),
                passages=None if passages is None else int(passages),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise IndexUnreadable(
                f"the index at {folder} is damaged ({NAME}): delete the folder and ingest again"
            ) from error
