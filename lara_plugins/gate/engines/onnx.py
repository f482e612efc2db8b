"""Cross-encoders as ONNX files, run on onnxruntime and tokenizers directly (no torch)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lara_plugins.arguments import check_count, check_text
from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.blocks import blocks_of_distinct
from lara_plugins.gate.engines.hub import download, is_hub_id
from lara_plugins.gate.engines.model_folder import WINDOW, ModelFolder, open_folder
from lara_plugins.gate.scorer import Block, ScoreKind

if TYPE_CHECKING:
    from lara_plugins.gate.engines.onnx_session import OnnxSession

QUERY_SHARE = 4
"""A query fills at most a quarter of the window, so that the passage always has room."""

MOST_THREADS = 4
"""More make the application's other work wait for little gain."""


class OnnxCrossEncoder:
    """A cross-encoder with one logit, exported to ONNX: float32, float16 or int8.

    The weights are loaded at first use and shared by all instances of the process, so an
    instance is a few plain values: it copies and pickles, and serves many threads.

    A file with *dynamic* int8 takes one activation range for the pairs that run together; there each
    pair runs alone, so that its logit does not depend on its company.

    Args:
        folder: a local folder or a hub's owner/name with ``config.json``, ``tokenizer.json`` and
            the model: ``model.onnx``, ``onnx/model.onnx``, or in a local folder the only
            ``onnx/*.onnx``. What a hub has is downloaded at first use.
        model: the model's file, relative to the folder, where another is meant, such as
            ``onnx/model_int8.onnx``.
        revision: the hub's branch, tag or commit; by default its main branch.
        max_length: most tokens of a pair; by default what the model allows, at most 512.
        scale_known: whether 0.3 is known to be a sensible threshold for this model.
        threads: threads for one run; by default ``OMP_NUM_THREADS`` where that is set, else as
            many as the process may use, at most 4. They do not spin between two runs.

    Raises:
        InvalidArgument: a file of a local folder is missing, its model has several labels, or an
            argument is of another type or out of its range.
    """

    score_kind: ScoreKind = "logit"

    def __init__(
        self,
        folder: str | Path,
        *,
        model: str | None = None,
        revision: str | None = None,
        max_length: int | None = None,
        scale_known: bool = False,
        threads: int | None = None,
    ) -> None:
        if not isinstance(folder, str | Path):
            raise InvalidArgument("folder", folder, "give a local folder or a hub's owner/name")
        if model is not None:
            check_text("model", model, "give the file's place in the folder, such as onnx/model_int8.onnx")
        if revision is not None:
            check_text("revision", revision, "give the hub's branch, tag or commit")
        if max_length is not None:
            check_count("max_length", max_length, f"give 16 to {WINDOW} tokens", least=16, most=WINDOW)
        if threads is not None:
            check_count("threads", threads, "give at least 1")
        self._source = str(folder)
        self._model = model
        self._revision = revision
        self._most_tokens = max_length or WINDOW
        self.scale_known = scale_known
        self.threads = threads or default_threads()
        as_named = max_length is None and revision is None
        self.name: str | None = f"onnx:{folder}" + (f"/{model}" if model else "") if as_named else None
        self._here = None if is_hub_id(self._source) else open_folder(Path(folder), model)
        if self._here is not None and revision is not None:
            raise InvalidArgument("revision", revision, f"{folder} is no hub's owner/name: leave it out")

    @property
    def folder(self) -> ModelFolder:
        """The model's files; those of a hub are downloaded where they are not here yet."""
        return self._here or _hub_folder(self._source, self._revision, self._model)

    @property
    def max_length(self) -> int:
        """Most tokens of a pair."""
        return min(self.folder.max_length, self._most_tokens)

    @property
    def fingerprint(self) -> str:
        """Engine, model file, the hash of its weights and its tokenizer, and maximum length."""
        folder = self.folder
        return f"onnx/{folder.model.stem}-{folder.version}/{self.max_length}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: onnxruntime or tokenizers is not installed.
            InvalidArgument: the model wants other inputs than a tokenizer's, or has several labels,
                or a file is damaged.
        """
        self._session()

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the logits of successive blocks of 64 ``texts``; equal texts are scored once."""
        session = self._session()
        max_length = self.max_length
        question, _ = session.encode(query, max_length // QUERY_SHARE)
        return blocks_of_distinct(texts, lambda fresh: session.score(question, fresh, max_length))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The logits of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]

    def _session(self) -> OnnxSession:
        try:
            from lara_plugins.gate.engines.onnx_session import shared_session  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra(error.name or "onnxruntime", "lara-plugins[embedded]") from error
        folder = self.folder
        files = (folder.model, folder.tokenizer, folder.pad_id, folder.version)
        return shared_session(*files, self.threads, os.getpid())


def default_threads() -> int:
    """``OMP_NUM_THREADS`` where it is a number, else the cores that the process may use, at most 4.

    Of a list, which OpenMP allows (one number for each level of nested regions), it is the first.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_THREADS, usable)


@lru_cache(maxsize=16)
def _hub_folder(hub_id: str, revision: str | None, model: str | None) -> ModelFolder:
    """A hub's model, looked up once a process, so that its branch does not move in between."""
    return open_folder(download(hub_id, revision, model), model)
