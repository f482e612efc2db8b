"""Reading the records of an index: whose they are, and the passages that they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import Passage
from lara_plugins.retrieval.index import Match
from lara_plugins.retrieval.pinecone.filled_by import FilledBy
from lara_plugins.retrieval.pinecone.layouts import Layout, passage_of
from lara_plugins.retrieval.pinecone.searching import Hit


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one index's records; see `PineconeIndex` for its fields."""

    index: str
    layout: Layout
    text_key: str
    filled_by: FilledBy

    def passage(self, id_: str, metadata: Mapping[str, Any]) -> Passage:
        """The passage of a record.

        Raises:
            EmbeddingMismatch: other encoders wrote it.
            HybridIndexError: it is not as the layout says.
        """
        self.filled_by.check_record(metadata)
        return passage_of(id_, metadata, self.layout, self.text_key, self.index)

    def match(self, hit: Hit) -> Match:
        """What was found, as the protocol has it; raises as ``passage`` does."""
        return Match(self.passage(hit.id, hit.metadata), hit.score, hit.dense, hit.sparse)

    def check_own_layout(self) -> None:
        """Refuse to write to, or to take stock of, what another framework has filled.

        Raises:
            InvalidArgument: the layout is not our own.
        """
        if self.layout != "lara":
            remedy = "such an index is only read here: write to it with the framework that filled it"
            raise InvalidArgument("layout", self.layout, remedy)
