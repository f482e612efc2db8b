"""A loaded ONNX cross-encoder: token ids in, logits out.

The one module that imports onnxruntime and tokenizers; it is imported at the first score.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Encoding, Tokenizer

from lara_plugins.errors import InvalidArgument, ScoreError
from lara_plugins.gate.engines.batching import batches_by_length

TOKEN_BUDGET = 2048
"""Padded tokens in one run of the model; bounds its memory."""

MODELS_KEPT = 4
"""Models that a process keeps loaded; one more replaces the one used longest ago."""


@dataclass(frozen=True, slots=True)
class Logit:
    """A pair's logit, and whether its passage was cut to fit the window."""

    value: float
    truncated: bool


@dataclass(frozen=True, slots=True)
class OnnxSession:
    """A model and its tokenizer; safe to use from many threads.

    Args:
        session: onnxruntime's session.
        inputs: the names of its inputs.
        tokenizer: without truncation and padding.
        pad_id: the token that fills a batch's short pairs.
    """

    session: onnxruntime.InferenceSession
    inputs: frozenset[str]
    tokenizer: Tokenizer
    pad_id: int

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Token ids without special tokens; a lone surrogate becomes a question mark."""
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return self.tokenizer.encode_batch(clean, add_special_tokens=False)

    def score(self, question: Encoding, texts: Sequence[str], max_length: int) -> list[Logit]:
        """One logit a text; of a pair longer than ``max_length``, only the text is cut."""
        room = max_length - len(question) - self.tokenizer.num_special_tokens_to_add(is_pair=True)
        passages = self.encode(texts)
        truncated = [len(passage) > room for passage in passages]
        for passage in passages:
            passage.truncate(room)
        pairs = [self.tokenizer.post_process(question, passage) for passage in passages]
        logits = [0.0] * len(pairs)
        for batch in batches_by_length([len(pair) for pair in pairs], TOKEN_BUDGET):
            scores = self._run([pairs[position] for position in batch])
            for position, score in zip(batch, scores, strict=True):
                logits[position] = score
        return [Logit(*scored) for scored in zip(logits, truncated, strict=True)]

    def _run(self, pairs: Sequence[Encoding]) -> list[float]:
        shape = (len(pairs), max(len(pair) for pair in pairs))
        feeds = {
            "input_ids": np.full(shape, self.pad_id, dtype=np.int64),
            "attention_mask": np.zeros(shape, dtype=np.int64),
            "token_type_ids": np.zeros(shape, dtype=np.int64),
        }
        for row, pair in enumerate(pairs):
            feeds["input_ids"][row, : len(pair)] = pair.ids
            feeds["attention_mask"][row, : len(pair)] = 1
            feeds["token_type_ids"][row, : len(pair)] = pair.type_ids
        wanted = {name: feed for name, feed in feeds.items() if name in self.inputs}
        logits = np.asarray(self.session.run(None, wanted)[0], dtype=np.float64)
        if logits.size != len(pairs):
            raise ScoreError(f"the model returned logits of shape {logits.shape} for {len(pairs)} pairs")
        return [float(logit) for logit in logits.ravel()]


_loading = threading.Lock()


def shared_session(model: Path, tokenizer: Path, pad_id: int, threads: int, process: int) -> OnnxSession:
    """The process's session for a model, loaded once however many threads ask.

    Args:
        model: the ONNX file.
        tokenizer: its ``tokenizer.json``.
        pad_id: the token that fills a batch's short pairs.
        threads: threads for one run.
        process: the process's id: a forked child inherits a session but not the threads that
            the session waits for, and so loads its own.

    Raises:
        InvalidArgument: the model has several labels.
    """
    with _loading:
        return _load(model.resolve(), tokenizer.resolve(), pad_id, threads, process)


@lru_cache(maxsize=MODELS_KEPT)
def _load(model: Path, tokenizer_file: Path, pad_id: int, threads: int, _process: int) -> OnnxSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin between two runs take the cores from the rest of the application.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    labels = session.get_outputs()[0].shape[-1]
    if isinstance(labels, int) and labels != 1:
        raise InvalidArgument("model", str(model), f"has {labels} labels; give a cross-encoder with one")
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return OnnxSession(session, frozenset(i.name for i in session.get_inputs()), tokenizer, pad_id)
