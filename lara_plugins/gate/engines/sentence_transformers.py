"""Cross-encoders through sentence-transformers: a hub id or a local folder, on torch, ONNX or OpenVINO."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from lara_plugins.arguments import check_choice, check_count
from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.batching import batches_by_length
from lara_plugins.gate.engines.blocks import RawScore, blocks_of_distinct, readable
from lara_plugins.gate.engines.model_folder import weights_digest
from lara_plugins.gate.scorer import Block, ScoreKind

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Backend = Literal["torch", "onnx", "openvino"]
Precision = Literal["float32", "bfloat16", "float16"]

KNOWN_SCALE = "cross-encoder/ms-marco-MiniLM"
"""The models that the published threshold of 0.3 was chosen on."""

WINDOW = 512
"""Tokens of a pair, where nothing else is asked for."""

TOKEN_BUDGET = 2048
"""Padded tokens in one run of the model; bounds its memory."""

TORCH_WEIGHTS = ("**/*.safetensors", "**/pytorch_model*.bin")
WEIGHTS: dict[Backend, tuple[str, ...]] = {
    "torch": TORCH_WEIGHTS,
    "onnx": ("*.onnx*", "onnx/*.onnx*", *TORCH_WEIGHTS),
    "openvino": ("openvino_model*", "openvino/*", *TORCH_WEIGHTS),
}
"""Where a folder has its weights, the first that it has: torch's are exported where nothing else is there."""


@dataclass(frozen=True, slots=True)
class Model:
    """Which weights, and how they are run."""

    source: str
    revision: str | None = None
    max_length: int = WINDOW
    backend: Backend = "torch"
    file: str | None = None
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        check_count("max_length", self.max_length, "give at least 16 tokens", least=16)
        check_choice("backend", self.backend, get_args(Backend))
        check_choice("precision", self.precision, get_args(Precision))
        if self.backend == "torch" and self.file is not None:
            raise InvalidArgument("file", self.file, 'torch takes none; give backend="onnx" or "openvino"')
        if self.backend != "torch" and self.precision != "float32":
            remedy = f"give the {self.backend} file of that precision"
            raise InvalidArgument("precision", self.precision, remedy)

    def weights(self) -> list[Path]:
        """The files of a local folder that hold the weights."""
        folder = Path(self.source)
        if self.file is not None:
            return [folder / self.file]
        for pattern in WEIGHTS[self.backend]:
            if found := sorted(folder.glob(pattern)):
                return found
        remedy = f"has no weights for {self.backend}: give a saved cross-encoder"
        raise InvalidArgument("scorer", self.source, remedy)


class SentenceTransformersScorer:
    """A cross-encoder with one label, loaded by sentence-transformers (5 or later).

    The weights are loaded at first use and shared by all instances of the process, so an
    instance copies and pickles, and serves many threads, one at a time. How many threads torch
    uses is the application's to set (``torch.set_num_threads``, ``OMP_NUM_THREADS``).

    Args:
        model: a hub id or a local folder.
        revision: the hub's branch, tag or commit; by default its main branch.
        max_length: most tokens of a pair; the longer side of a longer pair is cut.
        backend: what runs the model; all but torch need ``sentence-transformers[onnx]`` or
            ``[openvino]``.
        file: which of the folder's exported models, such as ``onnx/model_qint8_avx512.onnx``; for
            the backends onnx and openvino.
        precision: of the weights and sums on torch; an exported file has its own.

    Raises:
        InvalidArgument: ``max_length`` is too small, a choice is unknown, or file or precision
            does not fit the backend.
    """

    score_kind: ScoreKind = "logit"

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        max_length: int = WINDOW,
        backend: Backend = "torch",
        file: str | None = None,
        precision: Precision = "float32",
    ) -> None:
        self._model = Model(model, revision, max_length, backend, file, precision)
        self.name: str | None = model if self._model == Model(model) else None
        self.scale_known = model.startswith(KNOWN_SCALE)

    @property
    def fingerprint(self) -> str:
        """Engine, model, revision, precision and maximum length.

        The revision of a local folder is the hash of its weights, so that a folder may move but
        not change. That of a hub id is the branch, tag or commit that was asked for: name a
        commit where the model must not change.

        Raises:
            InvalidArgument: a local folder has no weights.
        """
        model = self._model
        if Path(model.source).is_dir():
            weights = weights_digest(model.weights())
        else:
            weights = f"{model.source}@{model.revision or 'main'}"
        run = model.precision if model.backend == "torch" else f"{model.backend}/{model.file or 'default'}"
        return f"sentence-transformers/{weights}/{run}/{model.max_length}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: sentence-transformers, or what the backend needs, is not installed.
            InvalidArgument: the model has several labels.
        """
        self._loaded()
        _ = self.fingerprint  # hashes the weights, which no query should wait for

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the logits of successive blocks of 64 ``texts``; equal texts are scored once."""
        loaded = self._loaded()
        return blocks_of_distinct(texts, lambda fresh: loaded.score(query, fresh))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The logits of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]

    def _loaded(self) -> _Loaded:
        with _loading:
            return _load(self._model, os.getpid())


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: CrossEncoder
    max_length: int
    # Hugging Face's fast tokenizers set their truncation on the shared object at each call.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def score(self, query: str, texts: Sequence[str]) -> list[RawScore]:
        question, _ = readable(query, self.max_length)
        passages = [readable(text, self.max_length) for text in texts]
        with self.lock:
            pairs = [(question, text) for text, _ in passages]
            lengths = self._lengths(pairs)
            truncated = [
                cut or length > self.max_length for (_, cut), length in zip(passages, lengths, strict=True)
            ]
            logits = [0.0] * len(pairs)
            for batch in batches_by_length([min(n, self.max_length) for n in lengths], TOKEN_BUDGET):
                for position, logit in zip(batch, self._predict([pairs[i] for i in batch]), strict=True):
                    logits[position] = logit
        return [RawScore(*scored) for scored in zip(logits, truncated, strict=True)]

    def _lengths(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Tokens of each pair, special tokens included, if nothing were cut.

        That ``predict`` tokenises once more costs less than the padding that is saved.
        """
        sides = [list(side) for side in zip(*pairs, strict=True)]
        encoded: list[list[int]] = self.encoder.tokenizer(*sides, verbose=False)["input_ids"]
        return [len(ids) for ids in encoded]

    def _predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        from torch.nn import Identity  # noqa: PLC0415

        # Identity at every call: a model's own activation may be a sigmoid.
        logits = self.encoder.predict(
            pairs, batch_size=len(pairs), activation_fn=Identity(), show_progress_bar=False
        )
        return [float(logit) for logit in logits]


_loading = threading.Lock()


@lru_cache(maxsize=2)
def _load(model: Model, _process: int) -> _Loaded:
    """Load a model once a process; a forked child loads its own, because torch's threads stay behind."""
    try:
        import torch  # noqa: PLC0415
        from sentence_transformers import CrossEncoder  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("sentence-transformers", "lara-plugins[cross-encoder]") from error
    if model.backend != "torch" and find_spec("optimum") is None:
        raise MissingExtra("optimum", f"sentence-transformers[{model.backend}]")
    encoder = CrossEncoder(
        model.source,
        revision=model.revision,
        max_length=model.max_length,
        backend=model.backend,
        model_kwargs={} if model.file is None else {"file_name": model.file},
    )
    if model.backend == "torch":
        # Some releases load a file in the precision that it was saved in, others in float32.
        encoder.to(getattr(torch, model.precision))
    if encoder.num_labels != 1:
        remedy = f"has {encoder.num_labels} labels; give a cross-encoder with one"
        raise InvalidArgument("scorer", model.source, remedy)
    return _Loaded(encoder, model.max_length)
