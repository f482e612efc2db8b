"""Cross-encoders as ONNX files, run on onnxruntime and tokenizers directly (no torch)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.model_folder import WINDOW, open_folder
from lara_plugins.gate.scorer import BLOCK_SIZE, Block, ScoreKind

if TYPE_CHECKING:
    from lara_plugins.gate.engines.onnx_session import Logit, OnnxSession

QUERY_SHARE = 4
"""A query fills at most a quarter of the window, so that the passage always has room."""


class OnnxCrossEncoder:
    """A cross-encoder with one logit, in a folder as model hubs lay it out.

    The weights are loaded at first use and shared by all instances of the process, so an
    instance is a few plain values: it copies and pickles, and serves many threads.

    Args:
        folder: holds ``config.json``, ``tokenizer.json`` and the model: ``model.onnx``,
            ``onnx/model.onnx``, or the only ``onnx/*.onnx``.
        name: what ``load_scorer`` makes this scorer again from; by default ``onnx:<folder>``
            where folder is all that was given, else None.
        model: the model's file, relative to the folder, where several could be meant.
        max_length: most tokens of a pair; by default what the model allows, at most 512.
        scale_known: whether 0.3 is known to be a sensible threshold for this model.
        threads: threads for one run; by default the number of cores, at most 4.

    Raises:
        InvalidArgument: a file is missing, the model has several labels, or an argument is
            out of its range.
    """

    score_kind: ScoreKind = "logit"

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        model: str | None = None,
        max_length: int | None = None,
        scale_known: bool = False,
        threads: int | None = None,
    ) -> None:
        if max_length is not None and not 16 <= max_length <= WINDOW:
            raise InvalidArgument("max_length", max_length, f"give 16 to {WINDOW} tokens")
        if threads is not None and threads < 1:
            raise InvalidArgument("threads", threads, "give at least 1")
        self.folder = open_folder(Path(folder), model)
        self.max_length = min(self.folder.max_length, max_length or WINDOW)
        self.scale_known = scale_known
        self.threads = threads or min(4, os.cpu_count() or 1)
        as_loaded = model is None and max_length is None
        self.name = name or (f"onnx:{folder}" if as_loaded else None)

    @property
    def fingerprint(self) -> str:
        """Engine, model file and its hash, and maximum length."""
        return f"onnx/{self.folder.model.stem}-{_digest(self.folder.model)}/{self.max_length}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: onnxruntime or tokenizers is not installed.
            InvalidArgument: the model returns something other than one logit a pair.
        """
        self._session()

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the logits of successive blocks of 64 ``texts``; equal texts are scored once."""
        session = self._session()
        [question] = session.encode([query])
        question.truncate(self.max_length // QUERY_SHARE)
        known: dict[str, Logit] = {}
        for start in range(0, len(texts), BLOCK_SIZE):
            block = texts[start : start + BLOCK_SIZE]
            fresh = [text for text in dict.fromkeys(block) if text not in known]
            known.update(zip(fresh, session.score(question, fresh, self.max_length), strict=True))
            yield Block(
                [known[text].value for text in block],
                tuple(position for position, text in enumerate(block) if known[text].truncated),
            )

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The logits of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]

    def _session(self) -> OnnxSession:
        try:
            from lara_plugins.gate.engines.onnx_session import shared_session  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra(error.name or "onnxruntime", "lara-plugins[embedded]") from error
        folder = self.folder
        return shared_session(folder.model, folder.tokenizer, folder.pad_id, self.threads, os.getpid())


@lru_cache(maxsize=64)
def _digest(model: Path) -> str:
    with model.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
