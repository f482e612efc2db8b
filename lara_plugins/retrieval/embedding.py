"""Dense vectors of whatever embedding model an application has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lara_plugins.arguments import check_count, check_share
from lara_plugins.errors import InvalidArgument

EmbedTexts = Callable[[list[str]], Sequence[Sequence[float]]]
EmbedQuery = Callable[[str], Sequence[float]]


@dataclass(frozen=True, slots=True)
class EmbeddingEncoder:
    """A `DenseEncoder` over an embedding model's own two functions, whose vectors are normalised.

    LangChain's ``Embeddings`` have the functions as ``embed_documents`` and ``embed_query``; for
    LlamaIndex there is ``llama_index_lara.dense_encoder``.

    Args:
        embed_texts: from texts to one vector each.
        embed_query: from a question to its vector.
        name: the model's name, with its revision where it has one; equal names and dimensions must
            give equal vectors.
        dimension: numbers in a vector.
        alpha_ceiling: the highest weight that a retrieval plan may give these vectors.

    Raises:
        InvalidArgument: an argument is out of its range.
    """

    embed_texts: EmbedTexts
    embed_query: EmbedQuery
    name: str
    dimension: int
    alpha_ceiling: float = 1.0

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidArgument("name", self.name, "name the embedding model")
        check_count("dimension", self.dimension, "give how many numbers a vector has")
        check_share("alpha_ceiling", self.alpha_ceiling, "give a number from 0 to 1")

    @property
    def fingerprint(self) -> str:
        """The model's name and the dimension."""
        return f"{self.name}/{self.dimension}"

    def encode_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text.

        What the model raises is passed on.
        """
        return [unit(vector) for vector in self.embed_texts(list(texts))] if texts else []

    def encode_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return unit(self.embed_query(text))


def unit(vector: Sequence[float]) -> list[float]:
    """A vector of length 1 in the same direction, of Python floats; all zero stays so."""
    values = [float(value) for value in vector]
    length = math.hypot(*values)
    return [value / length for value in values] if length else values
