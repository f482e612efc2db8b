"""The dense half of the embedded default: WordLlama, averaged word-piece vectors, offline."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lara_plugins.errors import MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_loading = threading.Lock()


class WordLlamaEncoder:
    """256-dimensional WordLlama vectors of length 1; all zero for a text without a known token.

    The weights ship inside the ``wordllama`` package; nothing is downloaded. They load at first
    use, once a process, and one encoder serves many threads. English first: the word pieces are
    Llama 2's, other European languages profit less and others hardly.
    """

    fingerprint = "wordllama-0.4/l2_supercat/256"
    dimension = 256

    alpha_ceiling = 0.6
    """Where BM25 is the stronger half, as here, too high an alpha costs recall.

    On 6,091 pooled passages, the share of questions with a gold passage among the first 50 is
    highest at 0.6 (0.991; 0.957 at 1.0), and on the 1,607 of NQ alone the first 10 hold it for
    0.987 (0.989 at 0.7, 0.960 at 1.0). ``benchmarks/retrieval.py`` prints the table.
    """

    def encode_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text.

        Raises:
            MissingExtra: wordllama is not installed.
        """
        averages = _model().embed(list(texts))
        lengths = (averages * averages).sum(axis=1, keepdims=True) ** 0.5
        lengths[lengths == 0] = 1  # the average of no token is zero, and stays so
        unit: list[list[float]] = (averages / lengths).tolist()
        return unit

    def encode_query(self, text: str) -> list[float]:
        """The vector of a question.

        Raises:
            MissingExtra: wordllama is not installed.
        """
        return self.encode_documents([text])[0]


class _Model(Protocol):
    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """The average vector of each text's tokens, shape (texts, 256)."""


def _model() -> _Model:
    with _loading:
        return _load()


@lru_cache(maxsize=1)
def _load() -> _Model:
    # wordllama calls logging.basicConfig() when it is imported. That does nothing where the
    # root logger has a handler, so it is lent one and the application's logging stays its own.
    guard = logging.NullHandler()
    logging.root.addHandler(guard)
    try:
        import wordllama  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "wordllama", "lara-plugins[embedded]") from error
    finally:
        logging.root.removeHandler(guard)
    # Without cache_dir it looks for the tokenizer elsewhere and downloads it.
    folder = Path(wordllama.__file__).parent
    model: _Model = wordllama.WordLlama.load(cache_dir=folder, dim=256, disable_download=True)
    return model
