"""Import files for Pinecone, read with pyarrow as Pinecone would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lara_plugins import Bm25Encoder, ParquetExport, Passage, export_parquet, ingest
from lara_plugins.errors import IngestError, InvalidArgument
from lara_plugins.ingestion.writing import BATCH
from lara_plugins.retrieval import WordLlamaEncoder

pq = pytest.importorskip("pyarrow.parquet", reason="lara-plugins[storage] is not installed")
pytest.importorskip("fsspec", reason="lara-plugins[storage] is not installed")

COLUMNS = {
    "id": "string",
    "values": "list<element: float>",
    "sparse_values": "struct<indices: list<element: uint32>, values: list<element: float>>",
    "metadata": "string",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "wal.md").write_text("# WAL\n\nReaders do not block writers.\n")
    records = [{"_id": str(number), "text": f"record {number}"} for number in range(BATCH + 1)]
    records.append({"_id": "wordless", "text": "..."})
    (made / "many.jsonl").write_text("\n".join(map(json.dumps, records)))
    return made


def rows(folder: Path, *, sparse: bool = True) -> list[dict[str, Any]]:
    """All records of a namespace, after a look at each file's columns."""
    found = []
    for path in sorted(folder.iterdir()):
        assert path.suffix == ".parquet"
        table = pq.read_table(path)
        expected = {name: type_ for name, type_ in COLUMNS.items() if sparse or name != "sparse_values"}
        assert {name: str(table.schema.field(name).type) for name in table.column_names} == expected
        found += table.to_pylist()
    return found


def test_a_namespace_holds_each_passage_once_with_both_encodings(folder: Path, tmp_path: Path) -> None:
    report = export_parquet([folder], str(tmp_path / "import"), WordLlamaEncoder(), namespace="docs")
    found = rows(tmp_path / "import" / "docs")
    assert report.passages == len(found) == len({row["id"] for row in found}) == BATCH + 3
    (wal,) = (row for row in found if "WAL" in row["metadata"])
    metadata = json.loads(wal["metadata"])
    assert metadata["lara_text"] == "Readers do not block writers."
    assert (metadata["lara_heading"], metadata["source"]) == ("WAL", str(folder / "wal.md"))
    assert metadata["lara_id"] == wal["id"]
    content = "WAL\nReaders do not block writers."
    bm25 = Bm25Encoder.load(tmp_path / "import" / "bm25.json")
    assert metadata["lara_embedding"] == f"{WordLlamaEncoder().fingerprint}+{bm25.fingerprint}"
    assert wal["values"] == pytest.approx(WordLlamaEncoder().encode_documents([content])[0], abs=1e-6)
    (expected,) = bm25.encode_documents([content])
    assert wal["sparse_values"]["indices"] == list(expected.indices)
    assert wal["sparse_values"]["values"] == pytest.approx(expected.values, abs=1e-6)
    assert bm25.frequencies.documents == len(found)
    (wordless,) = (row for row in found if '"wordless"' in row["metadata"])
    assert wordless["sparse_values"] is None
    assert all(json.loads(row["metadata"])["content_hash"] for row in found)


def test_files_have_so_many_rows_and_dense_alone_has_no_sparse_column(folder: Path, tmp_path: Path) -> None:
    with ParquetExport(str(tmp_path / "import"), WordLlamaEncoder(), rows=100) as exported:
        ingest([folder], exported)
    paths = sorted((tmp_path / "import" / "__default__").iterdir())
    tables = [pq.read_table(path) for path in paths]
    assert len(tables) > 1
    assert sum(table.num_rows for table in tables) == exported.records == BATCH + 3
    assert {tuple(table.column_names) for table in tables} == {("id", "values", "metadata")}


def test_an_export_goes_into_an_empty_namespace(folder: Path, tmp_path: Path) -> None:
    export_parquet([folder], str(tmp_path / "import"), WordLlamaEncoder())
    with pytest.raises(IngestError, match="__default__ holds files"):
        export_parquet([folder], str(tmp_path / "import"), WordLlamaEncoder())
    with pytest.raises(InvalidArgument, match="namespace"):
        ParquetExport(str(tmp_path), WordLlamaEncoder(), namespace="a/b")


@pytest.mark.parametrize(
    ("passage", "reason"),
    [
        (Passage("a#0", "x" * 41_000, source="long.txt"), "'a#0'.*split the text"),
        (Passage("a#0", "text", metadata={"lara_id": "mine"}), "rename the key"),
        (Passage("a#0", "text", metadata={"huge": 2**53 + 1}), "64-bit floats"),
        (Passage("é#0", "text"), "ASCII"),
        (Passage("a" * 513, "text"), "ASCII"),
    ],
)
def test_what_pinecone_would_refuse_is_refused(passage: Passage, reason: str, tmp_path: Path) -> None:
    with (
        ParquetExport(str(tmp_path), WordLlamaEncoder()) as exported,
        pytest.raises(InvalidArgument, match=reason),
    ):
        exported.upsert([passage])
    assert list((tmp_path / "__default__").iterdir()) == []


@pytest.mark.parametrize("place", [0, BATCH, 3 * BATCH])
def test_a_source_that_pinecone_cannot_store_is_in_no_file(folder: Path, tmp_path: Path, place: int) -> None:
    records: list[dict[str, object]] = [{"text": f"another {number}"} for number in range(3 * BATCH + 1)]
    records[place] |= {"number": 2**53 + 1}
    (folder / "huge.jsonl").write_text("\n".join(map(json.dumps, records)))
    with ParquetExport(str(tmp_path / "import"), WordLlamaEncoder(), rows=100) as exported:
        report = ingest([folder], exported)
    ((path, reason),) = report.skipped
    assert path == str(folder / "huge.jsonl")
    assert "Pinecone keeps numbers as 64-bit floats" in reason
    found = rows(tmp_path / "import" / "__default__", sparse=False)
    assert report.passages == exported.records == len(found) == BATCH + 3
    assert not any("another" in row["metadata"] for row in found)


def test_half_a_file_is_not_imported(folder: Path, tmp_path: Path) -> None:
    exported = ParquetExport(str(tmp_path / "import"), WordLlamaEncoder())
    ingest([folder], exported)
    assert list((tmp_path / "import" / "__default__").glob("*.parquet")) == []
    exported.close()
    assert len(rows(tmp_path / "import" / "__default__", sparse=False)) == BATCH + 3


def test_it_goes_to_object_storage(folder: Path) -> None:
    import fsspec

    export_parquet([folder], "memory://bucket/import", WordLlamaEncoder())
    memory = fsspec.filesystem("memory")
    assert sorted(memory.find("bucket/import")) == [
        "/bucket/import/__default__/00000.parquet",
        "/bucket/import/bm25.json",
    ]
