"""Sources behind fsspec URLs: the real S3 client against an S3 server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lara_plugins import EmbeddedIndex, ingest
from lara_plugins.errors import IngestError, MissingExtra

fsspec = pytest.importorskip("fsspec", reason="lara-plugins[storage] is not installed")
pytest.importorskip("s3fs", reason="lara-plugins[storage] is not installed")
server = pytest.importorskip("moto.server", reason="moto[server] is not installed")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def options(endpoint: str) -> dict[str, Any]:
    """What opens a MinIO or any other S3 server."""
    return {"endpoint_url": endpoint, "key": "testing", "secret": "testing"}


@pytest.fixture
def bucket(options: dict[str, Any]) -> Iterator[str]:
    """A bucket with two documents below a prefix, one beside it and one that is hidden."""
    storage = fsspec.filesystem("s3", **options, skip_instance_cache=True)
    name = f"bucket-{uuid4().hex[:8]}"
    storage.mkdir(name)
    storage.pipe(f"{name}/docs/wal.md", b"# WAL\n\nReaders do not block writers.\n")
    storage.pipe(f"{name}/docs/deep/limits.csv", b"limit,value\ncolumns,2000\n")
    storage.pipe(f"{name}/docs/.hidden/no.txt", b"hidden")
    storage.pipe(f"{name}/docs-old/wal.md", b"Old.")
    yield name
    storage.rm(name, recursive=True)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index") as opened:
        yield opened


def test_objects_are_added_changed_and_forgotten(
    bucket: str, options: dict[str, Any], index: EmbeddedIndex
) -> None:
    url = f"s3://{bucket}/docs"
    first = ingest([url], index, storage_options=options)
    assert (first.added, first.skipped) == (2, [])
    assert set(index.sources()) == {f"{url}/wal.md", f"{url}/deep/limits.csv"}
    assert ingest([url], index, storage_options=options).unchanged == 2
    storage = fsspec.filesystem("s3", **options, skip_instance_cache=True)
    storage.pipe(f"{bucket}/docs/wal.md", b"# WAL\n\nThere is one writer.\n")
    storage.rm(f"{bucket}/docs/deep/limits.csv")
    again = ingest([f"{url}/"], index, storage_options=options)
    assert (again.updated, again.removed, again.unchanged) == (1, 1, 0)
    (only,) = index.search("writer", limit=9, alpha=0.5)
    assert (only.passage.text, only.passage.source) == ("There is one writer.", f"{url}/wal.md")


def test_one_object_and_a_folder_of_this_machine_together(
    bucket: str, options: dict[str, Any], index: EmbeddedIndex, tmp_path: Path
) -> None:
    (tmp_path / "here.txt").write_text("On this machine.")
    url = f"s3://{bucket}/docs-old/wal.md"
    assert ingest([url, tmp_path / "here.txt"], index, storage_options=options).added == 2
    (tmp_path / "here.txt").unlink()
    assert ingest([url], index, storage_options=options).unchanged == 1
    assert index.count() == 2


def test_an_object_that_cannot_be_read_is_named(
    bucket: str, options: dict[str, Any], index: EmbeddedIndex
) -> None:
    storage = fsspec.filesystem("s3", **options, skip_instance_cache=True)
    storage.pipe(f"{bucket}/docs/broken.pdf", b"%PDF-1.4\n%%EOF")
    report = ingest([f"s3://{bucket}/docs"], index, storage_options=options)
    assert report.added == 2
    assert [path for path, _ in report.skipped] == [f"s3://{bucket}/docs/broken.pdf"]


def test_other_file_systems_of_fsspec(index: EmbeddedIndex) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/docs/a.txt", b"In memory.")
    assert ingest(["memory://docs"], index).added == 1
    assert ingest(["memory://docs"], index).unchanged == 1


@pytest.mark.parametrize("url", ["s3://{bucket}/nowhere", "s3://no-such-bucket-here/docs"])
def test_what_is_not_there_is_refused(
    url: str, bucket: str, options: dict[str, Any], index: EmbeddedIndex
) -> None:
    with pytest.raises(IngestError, match="does not exist"):
        ingest([url.format(bucket=bucket)], index, storage_options=options)


def test_an_unknown_kind_of_url_is_refused(index: EmbeddedIndex) -> None:
    with pytest.raises(IngestError, match="no URL that fsspec knows"):
        ingest(["nonsense://bucket"], index)
    with pytest.raises(MissingExtra, match="gs://"):
        ingest(["gs://bucket"], index)
