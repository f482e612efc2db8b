"""The small scorer that ships inside this package: no torch, no download."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel

from lara_plugins.gate.engines.model_folder import open_folder
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.similarity import cosines
from lara_plugins.gate.scorer import Block, ScoreKind
from lara_plugins.retrieval import WordLlamaEncoder

EMBEDDED = "embedded"
FOLDER = Path(str(files("lara_plugins.gate") / "embedded_model"))


class Fusion(BaseModel):
    """The calibrated logit as a weighted sum of the evidence.

    Fitted so that the sigmoid of the sum is about the probability that the passage is relevant
    (Platt, 1999), and is 0.3 at the model's operating point.

    Args:
        cross_encoder: weight of the cross-encoder's logit.
        similarity: weight of the cosine of the WordLlama vectors.
        bias: what is added.
    """

    cross_encoder: float
    similarity: float
    bias: float

    def logit(self, cross_encoder: float, similarity: float) -> float:
        """The calibrated logit."""
        return self.cross_encoder * cross_encoder + self.similarity * similarity + self.bias


class _Settings(BaseModel):
    """What the ``lara`` part of the model's config.json holds."""

    max_length: int
    fusion: Fusion


class EmbeddedScorer:
    """A small cross-encoder, fused with a cosine of word vectors; 0.3 is its operating point.

    Args:
        threads: threads for one run; by default ``OMP_NUM_THREADS`` where that is set, else as
            many as the process may use, at most 4.
    """

    name: str | None = EMBEDDED
    score_kind: ScoreKind = "logit"
    scale_known = True

    def __init__(self, *, threads: int | None = None) -> None:
        settings = _Settings.model_validate(open_folder(FOLDER).config["lara"])
        self._cross_encoder = OnnxCrossEncoder(FOLDER, max_length=settings.max_length, threads=threads)
        self._fusion = settings.fusion

    @property
    def fingerprint(self) -> str:
        """That of the cross-encoder and of the dense encoder, and their weights."""
        weights = "+".join(f"{weight:g}" for weight in self._fusion.model_dump().values())
        return f"{EMBEDDED}/{self._cross_encoder.fingerprint}/{WordLlamaEncoder.fingerprint}/{weights}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: onnxruntime, tokenizers or wordllama is not installed.
        """
        self._cross_encoder.load()
        self.score("", [""])  # and the word vectors

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the calibrated logits of successive blocks of 64 ``texts``."""
        start = 0
        for block in self._cross_encoder.blocks(query, texts):
            fresh = texts[start : start + len(block.scores)]
            start += len(fresh)
            yield Block(list(map(self._fusion.logit, block.scores, cosines(query, fresh))), block.truncated)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The calibrated logits of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]
