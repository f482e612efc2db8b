"""The small cross-encoder that ships inside this package: no torch, no download."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, Field

from lara_plugins.gate.engines.model_folder import open_folder
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.scorer import Block, ScoreKind

EMBEDDED = "embedded"


class Scaling(BaseModel):
    """The model's raw logits as calibrated ones: ``scale * logit + shift``.

    Chosen (Platt, 1999) so that the sigmoid of a calibrated logit is about the probability
    that the passage is relevant, and is 0.3 at the model's operating point.
    """

    scale: float = Field(gt=0)
    shift: float


class _Settings(BaseModel):
    """What the ``lara`` part of the model's config.json holds."""

    max_length: int
    scaling: Scaling


class EmbeddedCrossEncoder:
    """The embedded cross-encoder, with its logits scaled so that 0.3 is its operating point.

    Args:
        threads: threads for one run; by default ``OMP_NUM_THREADS``, else the usable cores, at most 4.
    """

    name: str | None = EMBEDDED
    score_kind: ScoreKind = "logit"
    scale_known = True

    def __init__(self, *, threads: int | None = None) -> None:
        folder = Path(str(files("lara_plugins.gate") / "embedded_model"))
        settings = _Settings.model_validate(open_folder(folder).config["lara"])
        self._raw = OnnxCrossEncoder(folder, max_length=settings.max_length, threads=threads)
        self._scaling = settings.scaling

    @property
    def fingerprint(self) -> str:
        """That of the model, and its scaling."""
        return f"{EMBEDDED}/{self._raw.fingerprint}/{self._scaling.scale}x+{self._scaling.shift}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: onnxruntime or tokenizers is not installed.
        """
        self._raw.load()

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the calibrated logits of successive blocks of 64 ``texts``."""
        scale, shift = self._scaling.scale, self._scaling.shift
        for block in self._raw.blocks(query, texts):
            yield Block([scale * logit + shift for logit in block.scores], block.truncated)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The calibrated logits of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]
