"""Cross-encoders through sentence-transformers: a hub id or a local folder, on torch, ONNX or OpenVINO."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.batching import batches_by_length
from lara_plugins.gate.engines.blocks import RawScore, blocks_of_distinct, readable
from lara_plugins.gate.engines.saved_model import CACHE, WINDOW, Backend, Precision, SavedModel, check_files
from lara_plugins.gate.scorer import Block, ScoreKind

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

KNOWN_SCALE = "cross-encoder/ms-marco-MiniLM"
"""The models that the published threshold of 0.3 was chosen on."""

TOKEN_BUDGET = 2048
"""Padded tokens in one run of the model; bounds its memory."""

NEEDED: dict[Backend, tuple[str, ...]] = {
    "torch": (),
    "onnx": ("optimum", "optimum.onnxruntime"),
    "openvino": ("optimum", "optimum.intel"),
}
"""What a backend imports; optimum alone comes with either of them."""

CLASSIFIER = "ForSequenceClassification"
"""How a class of transformers ends whose model has a head that scores."""


class SentenceTransformersScorer:
    """A cross-encoder with one label, loaded by sentence-transformers (5 or later).

    The weights are loaded at first use and shared by all instances of the process, so an
    instance copies and pickles, and serves many threads, one at a time. How many threads torch
    uses is the application's to set (``torch.set_num_threads``, ``OMP_NUM_THREADS``).

    Args:
        model: a hub id or a local folder.
        revision: the hub's branch, tag or commit; by default its main branch.
        max_length: most tokens of a pair, as far as the model goes; the longer side of a longer pair
            is cut.
        backend: what runs the model; all but torch need ``sentence-transformers[onnx]`` or
            ``[openvino]``.
        file: which of the folder's exported models, such as ``onnx/model_qint8_avx512.onnx``; for
            the backends onnx and openvino.
        precision: of the weights and sums on torch; an exported file has its own.

    Raises:
        InvalidArgument: the model is neither a folder here nor of the form owner/name,
            ``max_length`` is too small, a choice is unknown, or revision, file or precision does
            not fit the rest.
    """

    score_kind: ScoreKind = "logit"

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        max_length: int = WINDOW,
        backend: Backend = "torch",
        file: str | None = None,
        precision: Precision = "float32",
    ) -> None:
        source = str(model)
        self._model = SavedModel(source, revision, max_length, backend, file, precision)
        self.name: str | None = source if self._model == SavedModel(source) else None
        self.scale_known = source.startswith(KNOWN_SCALE)

    @property
    def fingerprint(self) -> str:
        """Engine, model, revision, precision and maximum length.

        The revision of a local folder is the hash of its files, so that a folder may move but
        not change. That of a hub id is a commit, which the hub or its cache is asked for once a
        process.

        Raises:
            InvalidArgument: a local folder has no weights.
            MissingExtra: huggingface_hub is not installed.
            OSError: the hub does not answer and its cache does not know the model.
        """
        model = self._model
        run = model.precision if model.backend == "torch" else f"{model.backend}/{model.file or 'default'}"
        return f"sentence-transformers/{model.version}/{run}/{model.max_length}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: sentence-transformers, or what the backend needs, is not installed.
            InvalidArgument: the model has several labels, or no head that was trained to score, or
                its tokenizer's file is missing, or a file of a local folder is missing or damaged.
        """
        self._loaded()

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the logits of successive blocks of 64 ``texts``; equal texts are scored once."""
        loaded = self._loaded()
        return blocks_of_distinct(texts, lambda fresh: loaded.score(query, fresh))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The logits of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]

    def _loaded(self) -> _Loaded:
        with _loading:
            _require_packages(self._model.backend)  # before a hub is asked for anything
            return _load(self._model, self._model.version, os.getpid())


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
def _load(model: SavedModel, _version: str, _process: int) -> _Loaded:
    """Load a model once a process, and again where its folder has changed.

    A forked child loads its own, because torch's threads stay behind.
    """
    import torch  # noqa: PLC0415
    from safetensors import SafetensorError  # noqa: PLC0415
    from sentence_transformers import CrossEncoder  # noqa: PLC0415

    if model.is_folder:
        check_files(Path(model.source))
    try:
        encoder = CrossEncoder(
            model.source,
            revision=model.commit,
            cache_folder=os.environ.get(CACHE),
            max_length=model.max_length,
            backend=model.backend,
            model_kwargs={} if model.file is None else {"file_name": model.file},
        )
    except SafetensorError as error:
        remedy = f"its weights are damaged: save or download them again ({error})"
        raise InvalidArgument("scorer", model.source, remedy) from error
    if model.backend == "torch":
        # Some releases load a file in the precision that it was saved in, others in float32.
        encoder.to(getattr(torch, model.precision))
    _check_fitness(encoder, model.source)
    positions = getattr(encoder.config, "max_position_embeddings", None) or model.max_length
    encoder.tokenizer.model_max_length = max_length = min(model.max_length, positions)
    return _Loaded(encoder, max_length)


def _require_packages(backend: Backend) -> None:
    try:
        import sentence_transformers  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingExtra("sentence-transformers", "lara-plugins[cross-encoder]") from error
    for module in NEEDED[backend]:
        if find_spec(module) is None:
            raise MissingExtra(module, f"sentence-transformers[{backend}]")


def _check_fitness(encoder: CrossEncoder, source: str) -> None:
    """Refuse what sentence-transformers loads although its scores would mean nothing."""
    if encoder.num_labels != 1:
        remedy = f"has {encoder.num_labels} labels; give a cross-encoder with one"
        raise InvalidArgument("scorer", source, remedy)
    saved = encoder.config.architectures or [CLASSIFIER]
    scores = type(encoder.model).__name__.endswith(CLASSIFIER)
    if scores and not any(architecture.endswith(CLASSIFIER) for architecture in saved):
        remedy = f"is a {', '.join(saved)}, without a head that was trained to score; give a cross-encoder"
        raise InvalidArgument("scorer", source, remedy)
    if len(encoder.tokenizer) <= len(encoder.tokenizer.all_special_ids):
        raise InvalidArgument(
            "scorer", source, "its tokenizer knows no words: is its tokenizer.json missing?"
        )
