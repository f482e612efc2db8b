"""From a scorer's name to the scorer."""

from __future__ import annotations

from lara_plugins.errors import InvalidArgument
from lara_plugins.gate.engines.embedded import EMBEDDED, EmbeddedCrossEncoder
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.sentence_transformers import SentenceTransformersScorer
from lara_plugins.gate.scorer import Scorer

DEFAULT_SCORER = "cross-encoder/ms-marco-MiniLM-L-6-v2"
"""The model that the published threshold of 0.3 was chosen on."""


def load_scorer(name: str) -> Scorer:
    """The scorer of that name; its weights are loaded at its first score, or by its ``load()``.

    Args:
        name: ``"embedded"`` (the small cross-encoder inside this package),
            ``"onnx:<folder>"`` (a folder with ``model.onnx``), or a hub id or local folder
            for sentence-transformers.

    Raises:
        InvalidArgument: the name is empty or no string, or its folder lacks a file.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument("scorer", name, f'give a name such as "{EMBEDDED}" or "{DEFAULT_SCORER}"')
    engine, colon, rest = name.partition(":")
    if name == EMBEDDED:
        return EmbeddedCrossEncoder()
    if colon and engine == "onnx":
        if not rest:
            raise InvalidArgument("scorer", name, 'give the folder after the colon: "onnx:<folder>"')
        return OnnxCrossEncoder(rest)
    if colon and engine == "pinecone":
        remedy = f'Pinecone\'s rerankers are not available in this version; give "{EMBEDDED}" or a model'
        raise InvalidArgument("scorer", name, remedy)
    return SentenceTransformersScorer(name)
