"""Cross-encoders through sentence-transformers: a hub id or a local folder, on torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.scorer import BLOCK_SIZE, Block, ScoreKind

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

KNOWN_SCALE = "cross-encoder/ms-marco-MiniLM"
"""The models that the published threshold of 0.3 was chosen on."""


class SentenceTransformersScorer:
    """A cross-encoder with one label, loaded by sentence-transformers (5 or later).

    The weights are loaded at first use and shared by all instances of the process, so an
    instance copies and pickles, and serves many threads, one at a time.

    Args:
        model: a hub id or a local folder.
        revision: the hub's branch, tag or commit; by default its main branch.
        max_length: most tokens of a pair; the longer side of a longer pair is cut.

    Raises:
        InvalidArgument: ``max_length`` is too small.
    """

    score_kind: ScoreKind = "logit"

    def __init__(self, model: str, *, revision: str | None = None, max_length: int = 512) -> None:
        if max_length < 16:
            raise InvalidArgument("max_length", max_length, "give at least 16 tokens")
        self.model = model
        self.revision = revision
        self.max_length = max_length
        self.name: str | None = model if revision is None and max_length == 512 else None
        self.scale_known = model.startswith(KNOWN_SCALE)

    @property
    def fingerprint(self) -> str:
        """Engine, model, revision and maximum length."""
        return f"sentence-transformers/{self.model}@{self.revision or 'main'}/float32/{self.max_length}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: sentence-transformers is not installed.
            InvalidArgument: the model has several labels.
        """
        self._loaded()

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the logits of successive blocks of 64 ``texts``."""
        loaded = self._loaded()
        for start in range(0, len(texts), BLOCK_SIZE):
            yield loaded.score(query, texts[start : start + BLOCK_SIZE], self.max_length)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The logits of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]

    def _loaded(self) -> _Loaded:
        with _loading:
            return _load(self.model, self.revision, self.max_length, os.getpid())


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: CrossEncoder
    # Hugging Face's fast tokenizers set their truncation on the shared object at each call.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def score(self, query: str, texts: Sequence[str], max_length: int) -> Block:
        from torch.nn import Identity  # noqa: PLC0415

        pairs = [(query, text) for text in texts]
        with self.lock:
            # Identity at every call: a model's own activation may be a sigmoid.
            logits = self.encoder.predict(pairs, activation_fn=Identity(), show_progress_bar=False)
            ids = self.encoder.tokenizer([query] * len(texts), list(texts), verbose=False)["input_ids"]
        truncated = tuple(position for position, pair in enumerate(ids) if len(pair) > max_length)
        return Block([float(logit) for logit in logits], truncated)


_loading = threading.Lock()


@lru_cache(maxsize=2)
def _load(model: str, revision: str | None, max_length: int, _process: int) -> _Loaded:
    """Load a model once a process; a forked child loads its own, because torch's threads stay behind."""
    try:
        from sentence_transformers import CrossEncoder  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("sentence-transformers", "lara-plugins[cross-encoder]") from error
    encoder = CrossEncoder(model, revision=revision, max_length=max_length)
    if encoder.num_labels != 1:
        remedy = f"has {encoder.num_labels} labels; give a cross-encoder with one"
        raise InvalidArgument("scorer", model, remedy)
    return _Loaded(encoder)
