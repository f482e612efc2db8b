"""What speaks for a passage besides a cross-encoder: that it means something similar to the question."""

from __future__ import annotations

from collections.abc import Sequence

from lara_plugins.gate.engines.blocks import readable
from lara_plugins.gate.engines.model_folder import WINDOW
from lara_plugins.retrieval import WordLlamaEncoder


def cosines(query: str, texts: Sequence[str]) -> list[float]:
    """The cosine of the question's WordLlama vector with each text's.

    Each text is embedded by itself, so that its cosine does not depend on the texts beside it, and
    as much of it is read as a cross-encoder could. White space counts for nothing, as in a
    cross-encoder: frameworks join a heading to its text in ways of their own.

    Raises:
        MissingExtra: wordllama is not installed.
    """
    asked = _vector(query)
    return [sum(a * b for a, b in zip(asked, _vector(text), strict=True)) for text in texts]


def _vector(text: str) -> list[float]:
    return WordLlamaEncoder().encode_query(" ".join(readable(text, WINDOW)[0].split()))
