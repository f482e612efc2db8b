"""From files to Pinecone's import files, BM25's statistics included."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from lara_plugins.errors import InvalidArgument
from lara_plugins.ingestion.chunking import AdaptiveChunker
from lara_plugins.ingestion.ingest import IngestReport, Progress, ingest
from lara_plugins.ingestion.parquet import DEFAULT_NAMESPACE, ParquetExport
from lara_plugins.ingestion.passages import Situate
from lara_plugins.ingestion.writing import whole_passages
from lara_plugins.passages import Passage
from lara_plugins.retrieval import Bm25Encoder, DenseEncoder, DocumentFrequencies, SparseEncoder
from lara_plugins.retrieval.bm25 import term_counts

BM25_FILE = "bm25.json"


def export_parquet(
    paths: Sequence[str | os.PathLike[str]],
    folder: str,
    dense: DenseEncoder,
    sparse: SparseEncoder | None = None,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    chunker: AdaptiveChunker | None = None,
    progress: Progress | None = None,
    situate: Situate | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> IngestReport:
    """Write files from which Pinecone imports the passages of files and folders.

    Where no sparse encoder is given, the files are read twice: first for BM25's average length
    and document frequencies, which are saved in the folder as ``bm25.json`` and which queries
    need (``Bm25Encoder.load``); a source that Pinecone cannot store, which stands in the report, is
    counted and not written. A context is written for the second reading alone.

    Args:
        paths: files, folders and URLs, as for `ingest`.
        folder: where the files go, a folder or a URL; the import is given this folder.
        dense: the dense encoder.
        sparse: the sparse encoder; BM25 over these files if not given.
        namespace: the namespace that the import creates.
        chunker: how long texts are split; the default chunker if not given.
        progress: told before each file, at each reading.
        situate: gives each chunk a context.
        storage_options: what URLs are opened with, those of ``paths`` and of ``folder``.

    Raises:
        IngestError: a path does not exist, or the namespace's directory holds files.
        InvalidArgument: there is no word in these files.
        MissingExtra: pyarrow or fsspec is not installed.
    """
    fitted = None
    if sparse is None:
        counting = _Counting()
        ingest(paths, counting, chunker=chunker, progress=progress, storage_options=storage_options)
        sparse = fitted = counting.encoder()
    with ParquetExport(
        folder, dense, sparse, namespace=namespace, storage_options=storage_options
    ) as exported:
        report = ingest(
            paths,
            exported,
            chunker=chunker,
            progress=progress,
            situate=situate,
            storage_options=storage_options,
        )
    if fitted is not None:
        _save(fitted, folder, storage_options or {})
    return report


class _Counting:
    """An "index" that only counts terms."""

    atomic = True

    def __init__(self) -> None:
        self._frequencies = DocumentFrequencies()
        self._terms = 0
        self._lock = threading.Lock()

    def sources(self) -> Mapping[str, str]:
        return {}

    def delete_source(self, source: str) -> None:
        """Nothing to do: a source is counted once."""

    def upsert(self, passages: Sequence[Passage]) -> None:
        counted = [term_counts(passage.content) for passage in whole_passages(passages)]
        with self._lock:
            for counts in counted:
                self._frequencies.add(counts)
                self._terms += counts.total()

    def encoder(self) -> Bm25Encoder:
        if not self._terms:
            raise InvalidArgument("paths", self._frequencies.documents, "give files with a word in them")
        average = self._terms / self._frequencies.documents
        return Bm25Encoder(average, frequencies=self._frequencies)


def _save(encoder: Bm25Encoder, folder: str, storage_options: Mapping[str, object]) -> None:
    import fsspec  # noqa: PLC0415

    system, root = fsspec.url_to_fs(folder, **storage_options)
    with tempfile.TemporaryDirectory() as made:
        encoder.save(Path(made) / BM25_FILE)
        system.put_file(str(Path(made) / BM25_FILE), f"{root}/{BM25_FILE}")
