"""Learned sparse vectors: SPLADE and its kin through sentence-transformers, on this machine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lara_plugins.arguments import check_count
from lara_plugins.digests import weights_digest
from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.retrieval.encoders import SparseVector, to_sum_1

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder
    from torch import Tensor

FILES = ("*.safetensors", "pytorch_model*.bin", "tokenizer.json", "vocab.txt")
"""What the vectors depend on: the weights and the tokenizer."""

_loading = threading.Lock()


class SpladeEncoder:
    """A `SparseEncoder` on a model of sentence-transformers' ``SparseEncoder``.

    Documents keep the model's weights; a question's are divided by their sum, so that its score
    is the average weight of its terms in a document: on a scale with a cosine, whatever the
    question's length, and without a change to the order of the documents. The weights load at
    first use, once a process.

    Formal, Piwowarski and Clinchant, "SPLADE: Sparse Lexical and Expansion Model for First Stage
    Ranking" (2021).

    Args:
        model: a local folder or a hub id, such as ``naver/splade-v3``.
        revision: of the hub id.
        max_terms: the heaviest terms of a text that are kept; Pinecone takes 1,000.

    Raises:
        InvalidArgument: ``model`` is empty or ``max_terms`` below 1.
    """

    def __init__(self, model: str | Path, *, revision: str | None = None, max_terms: int = 1000) -> None:
        if not str(model).strip():
            raise InvalidArgument("model", model, "name a folder or a hub id, such as naver/splade-v3")
        check_count("max_terms", max_terms, "give a whole number, 1 or more")
        self.model = str(model)
        self.revision = revision
        self.max_terms = max_terms

    @property
    def fingerprint(self) -> str:
        """The model's name and revision, or a folder's weights and tokenizer, and how many terms are kept."""
        return f"splade/{self._version}/{self.max_terms}"

    def load(self) -> None:
        """Load the weights now.

        Raises:
            MissingExtra: sentence-transformers is not installed.
            OSError: there is no such model.
        """
        self._loaded()

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        """One vector a text; an empty one where the model finds no term."""
        if not texts:
            return []
        return _rows(self._loaded().encode_document(list(texts), max_active_dims=self.max_terms), len(texts))

    def encode_query(self, text: str) -> SparseVector:
        """The question's vector, its values summing to 1."""
        (row,) = _rows(self._loaded().encode_query([text], max_active_dims=self.max_terms), 1)
        return to_sum_1(row)

    @property
    def _version(self) -> str:
        folder = Path(self.model)
        if not folder.is_dir():
            return f"{self.model}@{self.revision or 'main'}"
        return weights_digest(sorted(path for pattern in FILES for path in folder.resolve().rglob(pattern)))

    def _loaded(self) -> SparseEncoder:
        with _loading:
            return _load(self.model, self.revision, self._version)


def _rows(matrix: Tensor, count: int) -> list[SparseVector]:
    """The rows of a sparse matrix, their entries above zero."""
    entries = matrix.coalesce()
    indices: list[list[int]] = [[] for _ in range(count)]
    values: list[list[float]] = [[] for _ in range(count)]
    for row, column, value in zip(*entries.indices().tolist(), entries.values().tolist(), strict=True):
        if value > 0:
            indices[row].append(column)
            values[row].append(value)
    return [SparseVector(tuple(where), tuple(what)) for where, what in zip(indices, values, strict=True)]


@lru_cache(maxsize=2)
def _load(model: str, revision: str | None, _version: str) -> SparseEncoder:
    """Load a model once a process, and again where its folder has changed."""
    try:
        from sentence_transformers import SparseEncoder  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("sentence-transformers", "lara-plugins[cross-encoder]") from error
    return SparseEncoder(model, revision=revision, local_files_only=Path(model).is_dir())
