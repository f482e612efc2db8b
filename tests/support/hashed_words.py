"""A small dense encoder for index tests: no weights, and the same vectors on every machine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence


class HashedWords:
    """Each word is a direction; a text is the sum of its words, of length 1, or zero without any.

    Args:
        dimension: numbers in a vector.
        name: part of the fingerprint, to tell one model from another.
    """

    alpha_ceiling = 1.0

    def __init__(self, dimension: int = 32, name: str = "hashed-words") -> None:
        self.dimension = dimension
        self.fingerprint = f"{name}/{dimension}"

    def encode_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.encode_query(text) for text in texts]

    def encode_query(self, text: str) -> list[float]:
        total = [0.0] * self.dimension
        for word in (word for word in text.lower().split() if word.isalnum()):
            digest = hashlib.shake_128(word.encode()).digest(self.dimension)
            total = [value + (byte - 127.5) for value, byte in zip(total, digest, strict=True)]
        length = math.hypot(*total)
        return [value / length for value in total] if length else total
