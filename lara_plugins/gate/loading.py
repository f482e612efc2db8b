"""From a scorer's name to the scorer."""

from __future__ import annotations

from lara_plugins.errors import InvalidArgument
from lara_plugins.gate.engines.embedded import EMBEDDED, EmbeddedCrossEncoder
from lara_plugins.gate.engines.model_folder import split_file
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.pinecone import RERANKER, PineconeReranker
from lara_plugins.gate.engines.sentence_transformers import SentenceTransformersScorer
from lara_plugins.gate.scorer import Scorer

DEFAULT_SCORER = "cross-encoder/ms-marco-MiniLM-L-6-v2"
"""The model that the published threshold of 0.3 was chosen on."""


def load_scorer(name: str) -> Scorer:
    """The scorer of that name; its weights are loaded at its first score, or by its ``load()``.

    Args:
        name: one of

            * ``"embedded"``: the small scorer inside this package;
            * ``"onnx:<folder or owner/name>"``: a model exported to ONNX, in a local folder or on a
              model hub: its ``model.onnx`` or ``onnx/model.onnx``, or the file that the name ends in,
              as in ``"onnx:owner/name/onnx/model_int8.onnx"``;
            * ``"pinecone:<model>"``: a reranker that Pinecone hosts, with the account whose key is in
              ``PINECONE_API_KEY``;
            * a hub id or local folder for sentence-transformers.

    Raises:
        InvalidArgument: the name is empty or no string, or its folder lacks a file.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument("scorer", name, f'give a name such as "{EMBEDDED}" or "{DEFAULT_SCORER}"')
    if name == EMBEDDED:
        return EmbeddedCrossEncoder()
    engine, colon, rest = name.partition(":")
    if colon and engine == "onnx":
        if not rest:
            raise InvalidArgument(
                "scorer", name, 'give the model after the colon: "onnx:<folder or owner/name>"'
            )
        folder, file = split_file(rest)
        return OnnxCrossEncoder(folder, model=file)
    if colon and engine == "pinecone":
        if not rest:
            raise InvalidArgument("scorer", name, f'give the model after the colon: "pinecone:{RERANKER}"')
        return PineconeReranker(rest)
    return SentenceTransformersScorer(name)
