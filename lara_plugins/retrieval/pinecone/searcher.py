"""What one object finds in one namespace of an index, as steps."""

from __future__ import annotations

from dataclasses import dataclass

from lara_plugins.retrieval.encoders import SparseVector
from lara_plugins.retrieval.filters import Condition, Filter, parse_filter
from lara_plugins.retrieval.index import Match
from lara_plugins.retrieval.pinecone import searching
from lara_plugins.retrieval.pinecone.calls import Steps
from lara_plugins.retrieval.pinecone.encoding import Encoders
from lara_plugins.retrieval.pinecone.reader import Reader
from lara_plugins.retrieval.records import check_search


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches for what `PineconeIndex.search` is asked; see there.

    Attributes:
        encoders: of the index.
        reader: of its records.
        namespace: where.
    """

    encoders: Encoders
    reader: Reader
    namespace: str

    @property
    def alpha_ceiling(self) -> float:
        """The highest alpha that a plan may choose."""
        return 1.0 if self.encoders.sparse is None else self.encoders.dense.alpha_ceiling

    @property
    def alpha_floor(self) -> float:
        """The lowest one."""
        return 1.0 if self.encoders.sparse is None else 0.0

    def checked(
        self, text: str, limit: int, alpha: float, dense_text: str | None, filter: Filter | None
    ) -> Condition | None:
        """The filter of a search whose arguments are right.

        Raises:
            InvalidArgument: one is not.
        """
        check_search(text, limit=limit, alpha=alpha, dense_text=dense_text)
        searching.check(self.reader.index, limit=limit, alpha=alpha, floor=self.alpha_floor)
        return parse_filter(filter)

    def search(
        self, encoded: tuple[list[float], SparseVector], limit: int, alpha: float, condition: Condition | None
    ) -> Steps[list[Match]]:
        """The best passages, best first."""
        question = searching.Question(*encoded, alpha, limit, condition, self.namespace)
        search = searching.search_two if self.encoders.apart else searching.search_one
        hits = yield from search(question)
        return [self.reader.match(hit) for hit in hits]
