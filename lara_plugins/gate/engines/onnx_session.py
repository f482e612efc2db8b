"""A loaded ONNX cross-encoder: token ids in, logits out.

The one module that imports onnxruntime and tokenizers; it is imported at the first score.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as refusals
from tokenizers import Encoding, Tokenizer

from lara_plugins.errors import InvalidArgument, ScoreError
from lara_plugins.gate.engines.batching import batches_by_length
from lara_plugins.gate.engines.blocks import RawScore, readable

TOKEN_BUDGET = 512
"""Padded tokens in one run of the model, or one pair of any length.

It bounds the memory of a run, whatever the passages. On one core, runs of 256 to 1024 tokens are
the fastest: beyond, what a layer hands on no longer fits the core's cache.
"""

MODELS_KEPT = 4
"""Models that a process keeps loaded; one more replaces the one used longest ago."""

NUMPY_TYPES: dict[str, type[np.integer[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
FEEDS = ("input_ids", "attention_mask", "token_type_ids")

UNREADABLE: tuple[type[Exception], ...] = (
    refusals.Fail,
    refusals.InvalidArgument,
    refusals.InvalidGraph,
    refusals.InvalidProtobuf,
)
"""What onnxruntime raises, without a base of their own, for a file that is damaged or too new for it."""


@dataclass(frozen=True, slots=True)
class OnnxSession:
    """A model and its tokenizer; safe to use from many threads.

    Args:
        session: onnxruntime's session.
        inputs: the types of its inputs, by name.
        tokenizer: without truncation and padding.
        pad_id: the token that fills a batch's short pairs.
        token_budget: padded tokens in one run; with 0, each pair runs alone.
    """

    session: onnxruntime.InferenceSession
    inputs: Mapping[str, type[np.integer[Any]]]
    tokenizer: Tokenizer
    pad_id: int
    token_budget: int

    def encode(self, text: str, room: int) -> tuple[Encoding, bool]:
        """At most ``room`` token ids, without special tokens, and whether that cut the text.

        In the calling thread: ``encode_batch`` would start a thread for every core.
        """
        read, cut = readable(text, room)
        encoding = self.tokenizer.encode(read, add_special_tokens=False)
        cut = cut or len(encoding) > room
        encoding.truncate(room)
        return encoding, cut

    def score(self, question: Encoding, texts: Sequence[str], max_length: int) -> list[RawScore]:
        """One logit a text; of a pair longer than ``max_length``, only the text is cut."""
        room = max_length - len(question) - self.tokenizer.num_special_tokens_to_add(is_pair=True)
        encoded = [self.encode(text, room) for text in texts]
        pairs = [self.tokenizer.post_process(question, passage) for passage, _ in encoded]
        logits = [0.0] * len(pairs)
        for batch in batches_by_length([len(pair) for pair in pairs], self.token_budget):
            for position, logit in zip(batch, self._run([pairs[i] for i in batch]), strict=True):
                logits[position] = logit
        return [RawScore(logit, cut) for logit, (_, cut) in zip(logits, encoded, strict=True)]

    def _run(self, pairs: Sequence[Encoding]) -> list[float]:
        shape = (len(pairs), max(len(pair) for pair in pairs))
        feeds = {name: np.zeros(shape, dtype) for name, dtype in self.inputs.items()}
        feeds["input_ids"].fill(self.pad_id)
        for row, pair in enumerate(pairs):
            columns = (pair.ids, pair.attention_mask, pair.type_ids)
            for name, column in zip(FEEDS, columns, strict=True):
                if name in feeds:
                    feeds[name][row, : len(pair)] = column
        logits = np.asarray(self.session.run(None, feeds)[0], dtype=np.float64)
        if logits.size != len(pairs):
            raise ScoreError(f"the model returned logits of shape {logits.shape} for {len(pairs)} pairs")
        return [float(logit) for logit in logits.ravel()]


_loading = threading.Lock()


def shared_session(
    model: Path, tokenizer: Path, pad_id: int, version: str, threads: int, process: int
) -> OnnxSession:
    """The process's session for a model, loaded once however many threads ask.

    Args:
        model: the ONNX file.
        tokenizer: its ``tokenizer.json``.
        pad_id: the token that fills a batch's short pairs.
        version: what tells the two files from others, so that they are loaded again where they change.
        threads: threads for one run.
        process: the process's id: a forked child inherits a session but not the threads that
            the session waits for, and so loads its own.

    Raises:
        InvalidArgument: the model wants an input that no tokenizer gives, or has several labels, or
            a file is damaged.
    """
    with _loading:
        # Links stay: a hub's cache has the weights' second file beside the link, not beside its target.
        return _load(model.absolute(), tokenizer.absolute(), pad_id, version, threads, process)


@lru_cache(maxsize=MODELS_KEPT)
def _load(
    model: Path, tokenizer: Path, pad_id: int, _version: str, threads: int, _process: int
) -> OnnxSession:
    session = _open_session(model, threads)
    inputs = {wanted.name: NUMPY_TYPES[wanted.type] for wanted in session.get_inputs()}
    # Dynamic int8 takes one range of activations for all that runs together: in company, a pair's
    # score would depend on it. A pair alone is no slower there. Without a mask, nothing is padded.
    alone = b"DynamicQuantize" in model.read_bytes() or "attention_mask" not in inputs
    budget = 0 if alone else TOKEN_BUDGET
    return OnnxSession(session, inputs, _tokenizer(tokenizer), pad_id, budget)


def _open_session(model: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin between two runs take the cores from the rest of the application.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except UNREADABLE as error:
        remedy = f"onnxruntime cannot read it: export or download it again ({error})"
        raise InvalidArgument("model", str(model), remedy) from error
    labels = session.get_outputs()[0].shape[-1]
    if isinstance(labels, int) and labels != 1:
        raise InvalidArgument("model", str(model), f"has {labels} labels; give a cross-encoder with one")
    inputs = {wanted.name: wanted.type for wanted in session.get_inputs()}
    if "input_ids" not in inputs or any(
        name not in FEEDS or kind not in NUMPY_TYPES for name, kind in inputs.items()
    ):
        remedy = f"wants the inputs {inputs}; export it with whole numbers for {', '.join(FEEDS)} at most"
        raise InvalidArgument("model", str(model), remedy)
    return session


def _tokenizer(file: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:
        if type(error) is not Exception:  # tokenizers has no type of its own
            raise
        remedy = f"its {file.name} is damaged: export or download it again ({error})"
        raise InvalidArgument("folder", str(file.parent), remedy) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
