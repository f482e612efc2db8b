"""Whether an index was filled by the encoders that query it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from lara_plugins.errors import EmbeddingMismatch
from lara_plugins.retrieval.pinecone.layouts import Stored
from lara_plugins.retrieval.pinecone.preflight import TAG, tag_of

_log = logging.getLogger(__name__)


class FilledBy:
    """Checks tags and records for the fingerprint of the encoders.

    Args:
        index: the index's name.
        fingerprint: of the encoders that query it.
    """

    def __init__(self, index: str, fingerprint: str) -> None:
        self._index = index
        self._fingerprint = fingerprint
        self._warned = False

    def check_tags(self, tags: Mapping[str, str]) -> None:
        """Refuse an index that was created for other encoders.

        Raises:
            EmbeddingMismatch: its tag says so.
        """
        tag = tags.get(TAG)
        if tag is not None and tag != tag_of(self._fingerprint):
            raise self._mismatch(f"was created for other encoders (tag {tag})")

    def check_record(self, metadata: Mapping[str, object] | None) -> None:
        """Refuse a record of other encoders; warn, once, where records do not tell; None is no record.

        Raises:
            EmbeddingMismatch: its metadata says so.
        """
        if metadata is None:
            return
        filled_by = metadata.get(TAG)
        if filled_by == self._fingerprint:
            return
        if filled_by is not None:
            raise self._mismatch(f"was filled by {filled_by}")
        if not self._warned:
            self._warned = True
            _log.warning(
                "records of the Pinecone index %s do not say which encoders filled it: make sure it was %s",
                self._index,
                self._fingerprint,
            )

    def checked(self, metadata: Stored) -> Stored:
        """The metadata of a record that ``check_record`` does not refuse."""
        self.check_record(metadata)
        return metadata

    def _mismatch(self, how: str) -> EmbeddingMismatch:
        return EmbeddingMismatch(
            f"the Pinecone index {self._index} {how}, not by {self._fingerprint}: open it with the encoders "
            "that filled it, or ingest again into another index or namespace"
        )
