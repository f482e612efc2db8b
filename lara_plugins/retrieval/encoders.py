"""The contracts of the encoders that turn text into dense and sparse vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lara_plugins.errors import InvalidArgument

MAX_SPARSE_INDEX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class SparseVector:
    """The entries of a sparse vector that are not zero.

    Engines take repeated indices and NaN in silence and rank wrongly afterwards, so neither
    can be built.

    Args:
        indices: dimensions, each once, 0..2**32 - 1.
        values: their values, positive and finite; as many.

    Raises:
        InvalidArgument: an index or a value is none of these.
    """

    indices: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.indices) != len(self.values):
            raise InvalidArgument(
                "values", self.values, f"give one value for each of {len(self.indices)} indices"
            )
        if len(set(self.indices)) != len(self.indices):
            raise InvalidArgument("indices", self.indices, "give each index once, its values merged")
        if self.indices and not 0 <= min(self.indices) <= max(self.indices) <= MAX_SPARSE_INDEX:
            raise InvalidArgument("indices", self.indices, "give whole numbers within 0..2**32 - 1")
        if not all(0 < value < math.inf for value in self.values):
            raise InvalidArgument("values", self.values, "give positive, finite numbers")


@runtime_checkable
class DenseEncoder(Protocol):
    """Turns texts into dense vectors of length 1, or all zero for a text it knows nothing of.

    Attributes:
        fingerprint: model, revision and dimension; equal fingerprints give equal vectors.
        dimension: numbers in a vector.
        alpha_ceiling: the highest weight that a retrieval plan may give this encoder; 1.0 where
            the plan's own table is right.
    """

    @property
    def fingerprint(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def alpha_ceiling(self) -> float: ...

    def encode_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text."""

    def encode_query(self, text: str) -> list[float]:
        """The vector of a question."""


@runtime_checkable
class SparseEncoder(Protocol):
    """Turns texts into sparse vectors whose dot product is a lexical similarity.

    Attributes:
        fingerprint: equal fingerprints give vectors that can be compared.
    """

    @property
    def fingerprint(self) -> str: ...

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        """One vector a text; an empty one for a text without terms."""

    def encode_query(self, text: str) -> SparseVector:
        """The vector of a question; empty where it has no terms."""


def check_dense(encoder: object) -> None:
    """Refuse what is no dense encoder, such as a framework's embedding model as it is.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(encoder, DenseEncoder):
        remedy = "give a dense encoder, such as dense_encoder(embed_model) of the framework's package"
        raise InvalidArgument("dense", encoder, remedy)


def check_sparse(encoder: object) -> None:
    """Refuse what is no sparse encoder.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(encoder, SparseEncoder):
        raise InvalidArgument("sparse", encoder, "give a sparse encoder, such as Bm25Encoder()")


def to_sum_1(vector: SparseVector) -> SparseVector:
    """A question's sparse vector on the one scale that all have: its values sum to 1."""
    total = math.fsum(vector.values)
    return SparseVector(vector.indices, tuple(value / total for value in vector.values))
