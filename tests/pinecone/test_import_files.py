"""Import files and upserts: a record is the same, whichever way it comes to Pinecone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hashed_words import HashedWords
from pinecone_clients import client_of
from pinecone_server import PineconeServer

from lara_plugins import Bm25Encoder, ParquetExport, Passage, PineconeIndex

pq = pytest.importorskip("pyarrow.parquet", reason="lara-plugins[storage] is not installed")
pytest.importorskip("fsspec", reason="lara-plugins[storage] is not installed")

DENSE, SPARSE = HashedWords(8), Bm25Encoder(4)
PASSAGES = [
    Passage("a#0", "The river and the bank.", heading="Über 東京 > Rivers", source="/docs/a.md"),
    Passage("a#1", "A bridge.", source="/docs/a.md", metadata={"source": "web", "page": 3, "tags": ["x"]}),
    Passage("b#0", "...", metadata={"ratio": 0.5, "draft": False}),
    Passage("a#0", "The river, written again.", source="/docs/a.md"),
]


def test_a_record_that_is_imported_is_one_that_is_upserted(tmp_path: Path) -> None:
    with ParquetExport(str(tmp_path), DENSE, SPARSE) as exported:
        exported.upsert(PASSAGES)
    rows = {row["id"]: row for row in pq.read_table(tmp_path / "__default__" / "00000.parquet").to_pylist()}
    with PineconeServer() as server:
        index = PineconeIndex.create(client_of(server), "passages", dense=DENSE, sparse=SPARSE)
        index.upsert(PASSAGES)
        stored = server.indexes["passages"].namespaces[""].visible
    assert rows.keys() == stored.keys() == {"a#0", "a#1", "b#0"}
    assert exported.records == len(rows)
    for id_, row in rows.items():
        record = stored[id_]
        assert record["metadata"].pop("lara_written") > 0
        assert json.loads(row["metadata"]) == record["metadata"]
        assert row["values"] == pytest.approx(record["values"], rel=1e-6)
        words, upserted = row["sparse_values"], record.get("sparseValues")
        assert (words is None) == (upserted is None)
        if words is not None and upserted is not None:
            assert words["indices"] == upserted["indices"]
            assert words["values"] == pytest.approx(upserted["values"], rel=1e-6)
