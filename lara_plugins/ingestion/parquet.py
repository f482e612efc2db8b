"""Records as files from which Pinecone imports them itself, for corpora that are too large to send.

The layout is that of Pinecone's "Import records" guide: below the folder that the import is given, a
directory for each namespace with Parquet files of the columns ``id`` (string), ``values`` (list of
32-bit floats), ``sparse_values`` (struct of ``indices``, unsigned 32-bit, and ``values``; null where
a text has no terms) and ``metadata`` (a JSON object as a string), and no other column.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from lara_plugins.arguments import check_count
from lara_plugins.errors import IngestError, InvalidArgument, MissingExtra
from lara_plugins.ingestion.writing import whole_passages
from lara_plugins.passages import Passage
from lara_plugins.retrieval import DenseEncoder, SparseEncoder
from lara_plugins.retrieval.pinecone import Encoders, Record, record_source

if TYPE_CHECKING:
    import pyarrow
    from fsspec import AbstractFileSystem
    from pyarrow.parquet import ParquetWriter

DEFAULT_NAMESPACE = "__default__"

UNFINISHED = ".unfinished"


class ParquetExport:
    """An "index" for `ingest` that writes import files; a context, at whose end the last file is whole.

    A file is named ``*.parquet`` once it is whole, so that an import never meets half of one. An
    export that was interrupted is begun again in an empty folder.

    Args:
        folder: a folder, or an fsspec URL such as ``s3://bucket/import``.
        dense: the dense encoder.
        sparse: the sparse encoder, which must be the one that queries are encoded with; None for
            an index without sparse values.
        namespace: the namespace that the records are for; the import takes only a new one.
        rows: records a file.
        storage_options: what the URL is opened with.

    Raises:
        InvalidArgument: an argument is out of its range.
        IngestError: the namespace's directory holds files already.
        MissingExtra: pyarrow or fsspec is not installed.
    """

    atomic = True
    """Either an export is whole, or its namespace is written again."""

    def __init__(
        self,
        folder: str,
        dense: DenseEncoder,
        sparse: SparseEncoder | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        rows: int = 50_000,
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        check_count("rows", rows, "give a number of records a file, 1 or more")
        if not namespace or "/" in namespace:
            raise InvalidArgument("namespace", namespace, "give a name without a slash")
        try:
            import fsspec  # noqa: PLC0415
            import pyarrow.parquet  # noqa: F401, PLC0415
        except ImportError as error:
            raise MissingExtra("pyarrow", "lara-plugins[storage]") from error
        self._system: AbstractFileSystem
        self._system, root = fsspec.url_to_fs(folder, **(storage_options or {}))
        self._folder = f"{root}/{namespace}"
        if self._system.exists(self._folder) and self._system.ls(self._folder):
            raise IngestError(f"{folder}/{namespace} holds files: give an empty folder or another namespace")
        self._system.makedirs(self._folder, exist_ok=True)
        self._encoders = Encoders(dense, sparse, apart=False)
        self._rows = rows
        self._lock = threading.Lock()
        self._file: ParquetWriter | None = None
        self._files = 0
        self._in_file = 0
        self._holding: defaultdict[str, set[int]] = defaultdict(set)  # by source, the numbers of its files
        self.records = 0

    @property
    def fingerprint(self) -> str:
        """Identity of the encoders, as each record carries it."""
        return self._encoders.fingerprint

    def sources(self) -> Mapping[str, str]:
        """None: an export is always written whole."""
        return {}

    def delete_source(self, source: str) -> None:
        """Take the records of a source out of the files again."""
        with self._lock:
            holding = self._holding.pop(source, set())
            if self._files in holding:
                self._finish_file()
            for number in holding:
                self._take_out(source, self._path_of(number))

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Encode passages and append their records, which are those that `PineconeIndex` would write.

        Raises:
            UnstorablePassages: records that Pinecone would refuse; it names the passages.
        """
        final = whole_passages(passages)
        if not final:
            return
        encoded = self._encoders.passages(final)
        self._append(encoded.records["dense"], {draft.passage.source for draft in encoded.drafted})

    def close(self) -> None:
        """Finish the last file."""
        with self._lock:
            self._finish_file()

    def __enter__(self) -> ParquetExport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        elif self._file is not None:  # it stays unfinished
            self._file.close()

    def _append(self, records: Sequence[Record], sources: Collection[str]) -> None:
        import pyarrow  # noqa: PLC0415
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

        rows = [
            {**record, "metadata": json.dumps(record["metadata"], ensure_ascii=False)} for record in records
        ]
        table = pyarrow.Table.from_pylist(rows, _schema(sparse=self._encoders.sparse is not None))
        with self._lock:
            if self._file is None:
                self._file = ParquetWriter(self._path + UNFINISHED, table.schema, filesystem=self._system)
            self._file.write_table(table)
            for source in sources:
                self._holding[source].add(self._files)
            self._in_file += table.num_rows
            self.records += table.num_rows
            if self._in_file >= self._rows:
                self._finish_file()

    def _finish_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._system.mv(self._path + UNFINISHED, self._path)
            self._file = None
            self._files += 1
            self._in_file = 0

    def _take_out(self, source: str, path: str) -> None:
        """Write a file again without the records of a source; one that holds no others is removed."""
        from pyarrow.parquet import read_table, write_table  # noqa: PLC0415

        table = read_table(path, filesystem=self._system)
        others = [record_source(json.loads(metadata)) != source for metadata in table["metadata"].to_pylist()]
        kept = table.filter(others)
        self.records -= table.num_rows - kept.num_rows
        if kept.num_rows:
            write_table(kept, path + UNFINISHED, filesystem=self._system)
            self._system.mv(path + UNFINISHED, path)
        else:
            self._system.rm(path)

    @property
    def _path(self) -> str:
        return self._path_of(self._files)

    def _path_of(self, number: int) -> str:
        return f"{self._folder}/{number:05}.parquet"


def _schema(*, sparse: bool) -> pyarrow.Schema:
    import pyarrow as pa  # noqa: PLC0415

    floats = pa.list_(pa.float32())
    vector = pa.struct([("indices", pa.list_(pa.uint32())), ("values", floats)])
    columns = [("id", pa.string()), ("values", floats), ("sparse_values", vector), ("metadata", pa.string())]
    return pa.schema([column for column in columns if sparse or column[0] != "sparse_values"])
