"""From a scorer's name to the scorer."""

from __future__ import annotations

from lara_plugins.errors import InvalidArgument, NotSerializable
from lara_plugins.gate.engines.embedded import EMBEDDED, EmbeddedScorer
from lara_plugins.gate.engines.model_folder import split_file
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.pinecone import RERANKER, PineconeReranker
from lara_plugins.gate.engines.sentence_transformers import KNOWN_SCALE, SentenceTransformersScorer
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
        InvalidArgument: the name is none of these, or its folder lacks a file.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument("scorer", name, f'give a name such as "{EMBEDDED}" or "{DEFAULT_SCORER}"')
    if name == EMBEDDED:
        return EmbeddedScorer()
    engine, colon, rest = name.partition(":")
    if colon and engine == "onnx":
        if not rest:
            raise InvalidArgument(
                "scorer", name, 'give the model after the colon: "onnx:<folder or owner/name>"'
            )
        folder, file = split_file(rest)
        return OnnxCrossEncoder(folder, model=file, scale_known=folder.startswith(KNOWN_SCALE))
    if colon and engine == "pinecone":
        if not rest:
            raise InvalidArgument("scorer", name, f'give the model after the colon: "pinecone:{RERANKER}"')
        return PineconeReranker(rest)
    return SentenceTransformersScorer(name)


def scorer_of(scorer: str | Scorer) -> Scorer:
    """The scorer itself, or the one of that name.

    Raises:
        InvalidArgument: it is neither, or the name is none.
    """
    if isinstance(scorer, str):
        return load_scorer(scorer)
    # Python 3.11's isinstance would read every property of a Scorer, and so hash or download its weights.
    if not callable(getattr(scorer, "blocks", None)):
        raise InvalidArgument("scorer", scorer, f"give a Scorer or the name of one, such as '{EMBEDDED}'")
    return scorer


def serializable_name(scorer: str | Scorer) -> str:
    """The name from which a scorer is made again.

    Raises:
        NotSerializable: it has none.
    """
    name = scorer if isinstance(scorer, str) else scorer.name
    if name is None:
        raise NotSerializable(
            f"the scorer {type(scorer).__name__} has no name and cannot be saved: "
            f"give the name of a scorer, such as '{EMBEDDED}'"
        )
    return name
