"""Encoders that Pinecone hosts, through the inference call of the official SDK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lara_plugins.arguments import check_count
from lara_plugins.errors import HybridIndexError
from lara_plugins.retrieval.embedding import unit
from lara_plugins.retrieval.encoders import SparseVector, to_sum_1
from lara_plugins.retrieval.pinecone.calls import Reply
from lara_plugins.retrieval.pinecone.preflight import Client

DENSE_MODEL = "llama-text-embed-v2"
SPARSE_MODEL = "pinecone-sparse-english-v0"

TEXTS_A_REQUEST = 96
"""The service's limit."""


@dataclass(frozen=True, slots=True)
class PineconeDenseEncoder:
    """A `DenseEncoder` that Pinecone hosts; its vectors are normalised.

    The service cuts a text that is longer than the model's window (2,048 tokens for
    llama-text-embed-v2). What the SDK raises is passed on.

    Args:
        client: a ``pinecone.Pinecone``.
        model: the hosted model's name.
        dimension: numbers in a vector, of those that the model offers.
        alpha_ceiling: the highest weight that a retrieval plan may give these vectors.

    Raises:
        InvalidArgument: the dimension is no positive number.
    """

    client: Client
    model: str = DENSE_MODEL
    dimension: int = 1024
    alpha_ceiling: float = 1.0

    def __post_init__(self) -> None:
        check_count("dimension", self.dimension, "give how many numbers a vector has, such as 1024")

    @property
    def fingerprint(self) -> str:
        """Service, model and dimension."""
        return f"pinecone/{self.model}/{self.dimension}"

    def encode_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text; a request for every 96."""
        return [unit(found.values) for found in self._embed(texts, "passage")]

    def encode_query(self, text: str) -> list[float]:
        """The vector of a question."""
        (found,) = self._embed([text], "query")
        return unit(found.values)

    def _embed(self, texts: Sequence[str], input_type: str) -> list[Reply]:
        # llama-text-embed-v2 offers several dimensions; a model with one refuses to be told of it.
        chosen = {"dimension": self.dimension} if self.model == DENSE_MODEL else {}
        return embedded(self.client, self.model, texts, {"input_type": input_type, **chosen})


@dataclass(frozen=True, slots=True)
class PineconeSparseEncoder:
    """A `SparseEncoder` that Pinecone hosts.

    Documents keep the model's weights; a question's are divided by their sum, as
    `SpladeEncoder`'s are, so that its score is on a scale with a cosine. What the SDK raises is
    passed on.

    Args:
        client: a ``pinecone.Pinecone``.
        model: the hosted model's name.
    """

    client: Client
    model: str = SPARSE_MODEL

    @property
    def fingerprint(self) -> str:
        """Service and model."""
        return f"pinecone/{self.model}"

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        """One vector a text; a request for every 96."""
        return [
            _sparse(found) for found in embedded(self.client, self.model, texts, {"input_type": "passage"})
        ]

    def encode_query(self, text: str) -> SparseVector:
        """The question's vector, its values summing to 1."""
        (found,) = embedded(self.client, self.model, [text], {"input_type": "query"})
        return to_sum_1(_sparse(found))


def embedded(client: Client, model: str, texts: Sequence[str], parameters: dict[str, object]) -> list[Reply]:
    """The service's embeddings of texts, in order.

    Raises:
        HybridIndexError: another model answered, or not every text was embedded.
    """
    found: list[Reply] = []
    for start in range(0, len(texts), TEXTS_A_REQUEST):
        part = list(texts[start : start + TEXTS_A_REQUEST])
        reply = client.inference.embed(model=model, inputs=part, parameters={**parameters, "truncate": "END"})
        if reply.model != model or len(reply.data) != len(part):
            raise HybridIndexError(
                f"Pinecone returned {len(reply.data)} embeddings of {reply.model} for {len(part)} texts and "
                f"{model}: name the model that it hosts"
            )
        found += reply.data
    return found


def _sparse(found: Reply) -> SparseVector:
    entries = zip(found.sparse_indices, found.sparse_values, strict=True)
    above = [(int(index), float(value)) for index, value in entries if value > 0]
    return SparseVector(tuple(index for index, _ in above), tuple(value for _, value in above))
