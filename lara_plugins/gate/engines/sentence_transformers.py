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

from lara_plugins.arguments import check_choice, check_count, check_text
from lara_plugins.digests import weights_digest
from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.batching import batches_by_length
from lara_plugins.gate.engines.blocks import RawScore, blocks_of_distinct, readable
from lara_plugins.gate.engines.hub import commit_of, is_hub_id
from lara_plugins.gate.engines.model_folder import read_object
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

BESIDE_WEIGHTS = ("config.json", "tokenizer*", "vocab*", "*.model")
"""What else in a folder its scores depend on."""

DESCRIBING = ("config.json", "adapter_config.json", "modules.json")
"""What says which model a folder holds: one of these at least."""

CLASSIFIER = "ForSequenceClassification"
"""How a class of transformers ends whose model has a head that scores."""

CACHE = "SENTENCE_TRANSFORMERS_HOME"
"""Where sentence-transformers downloads to, in place of the hub's own cache."""


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
        if not self.source or not (self.is_folder or is_hub_id(self.source)):
            remedy = (
                'is neither a folder here nor a hub\'s owner/name; the scorer of this package is "embedded"'
            )
            raise InvalidArgument("scorer", self.source, remedy)
        if self.is_folder and self.revision is not None:
            raise InvalidArgument(
                "revision", self.revision, f"{self.source} is no hub's owner/name: leave it out"
            )
        if self.revision is not None:
            check_text("revision", self.revision, "give the hub's branch, tag or commit")
        check_count("max_length", self.max_length, "give at least 16 tokens", least=16)
        check_choice("backend", self.backend, get_args(Backend))
        check_choice("precision", self.precision, get_args(Precision))
        if self.file is not None:
            check_text("file", self.file, "give the file's place in the folder, such as onnx/model.onnx")
        if self.backend == "torch" and self.file is not None:
            raise InvalidArgument("file", self.file, 'torch takes none; give backend="onnx" or "openvino"')
        if self.backend != "torch" and self.precision != "float32":
            remedy = f"give the {self.backend} file of that precision"
            raise InvalidArgument("precision", self.precision, remedy)

    @property
    def is_folder(self) -> bool:
        """Whether it is here, and on no hub."""
        return Path(self.source).is_dir()

    @property
    def commit(self) -> str | None:
        """The hub's commit that its branch or tag stood at when this process first asked."""
        return None if self.is_folder else commit_of(self.source, self.revision, os.environ.get(CACHE))

    @property
    def version(self) -> str:
        """What tells the files from others: a folder's hash, or a hub's commit."""
        if self.is_folder:
            beside = {file for pattern in BESIDE_WEIGHTS for file in Path(self.source).glob(pattern)}
            return weights_digest([*self.weights(), *sorted(beside)])
        return f"{self.source}@{self.commit}"

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
        self._model = Model(source, revision, max_length, backend, file, precision)
        self.name: str | None = source if self._model == Model(source) else None
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
def _load(model: Model, _version: str, _process: int) -> _Loaded:
    """Load a model once a process, and again where its folder has changed.

    A forked child loads its own, because torch's threads stay behind.
    """
    import torch  # noqa: PLC0415
    from safetensors import SafetensorError  # noqa: PLC0415
    from sentence_transformers import CrossEncoder  # noqa: PLC0415

    if model.is_folder:
        _check_files(Path(model.source))
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
    if backend != "torch" and find_spec("optimum") is None:
        raise MissingExtra("optimum", f"sentence-transformers[{backend}]")


def _check_files(folder: Path) -> None:
    """Refuse a folder whose files the libraries would stumble over one by one."""
    if not any((folder / file).is_file() for file in DESCRIBING):
        raise InvalidArgument("scorer", str(folder), "has no config.json: give a saved cross-encoder")
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if (folder / file).is_file():
            read_object(folder, file, "scorer")


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
