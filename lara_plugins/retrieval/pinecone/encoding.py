"""The two encoders of an index, and what they make of questions and passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lara_plugins.passages import Passage
from lara_plugins.retrieval.encoders import (
    DenseEncoder,
    SparseEncoder,
    SparseVector,
    check_dense,
    check_sparse,
)
from lara_plugins.retrieval.pinecone.calls import Plane
from lara_plugins.retrieval.pinecone.records import (
    Draft,
    Record,
    check_sparse_vectors,
    drafts,
    hybrid_record,
    sparse_record,
)
from lara_plugins.retrieval.records import check_vectors


@dataclass(frozen=True, slots=True)
class Encoded:
    """Passages that are ready to be written.

    Attributes:
        drafted: all of them.
        records: what goes to each plane.
        wordless: the ids of those that the sparse plane may not hold, since they have no terms.
    """

    drafted: Sequence[Draft]
    records: dict[Plane, list[Record]]
    wordless: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Encoders:
    """A dense encoder, and a sparse one unless the index has no sparse half.

    Args:
        dense: the dense encoder.
        sparse: the sparse one.
        apart: whether the sparse vectors have an index of their own.

    Raises:
        InvalidArgument: one of them is no such encoder.
    """

    dense: DenseEncoder
    sparse: SparseEncoder | None
    apart: bool

    def __post_init__(self) -> None:
        check_dense(self.dense)
        if self.sparse is not None:
            check_sparse(self.sparse)

    @property
    def fingerprint(self) -> str:
        """Identity of both."""
        if self.sparse is None:
            return self.dense.fingerprint
        return f"{self.dense.fingerprint}+{self.sparse.fingerprint}"

    def query(self, text: str, dense_text: str | None = None) -> tuple[list[float], SparseVector]:
        """The vectors of a question; ``dense_text`` is what is embedded densely instead."""
        dense = self.dense.encode_query(text if dense_text is None else dense_text)
        check_vectors([dense], [text], self.dense.dimension)
        return dense, SparseVector() if self.sparse is None else self.sparse.encode_query(text)

    def passages(self, passages: Sequence[Passage]) -> Encoded:
        """The records of passages.

        Raises:
            InvalidArgument: a passage has no id, or an encoder returns what it may not.
            UnstorablePassages: passages cannot be stored in Pinecone.
        """
        drafted = drafts(passages, self.fingerprint)
        if not drafted:
            return Encoded((), {})
        texts = [draft.passage.content for draft in drafted]
        sparse = None if self.sparse is None else self.sparse.encode_documents(texts)
        if sparse is not None:
            check_sparse_vectors(sparse, drafted)  # before the dense half, which costs more
        dense = self.dense.encode_documents(texts)
        check_vectors(dense, texts, self.dense.dimension)
        if sparse is None:
            return Encoded(drafted, {"dense": list(map(hybrid_record, drafted, dense))})
        if not self.apart:
            return Encoded(drafted, {"dense": list(map(hybrid_record, drafted, dense, sparse))})
        wordy = [pair for pair in zip(drafted, sparse, strict=True) if pair[1].indices]
        wordless = [
            draft.passage.id for draft, words in zip(drafted, sparse, strict=True) if not words.indices
        ]
        records: dict[Plane, list[Record]] = {
            "dense": list(map(hybrid_record, drafted, dense)),
            "sparse": [sparse_record(draft, words) for draft, words in wordy],
        }
        return Encoded(drafted, records, wordless)
