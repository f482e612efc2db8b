"""The embedded index's folder: opened once at a time, left alone, damaged, killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from embedded_indexes import assert_exact, corpus, passage, run, summed

from lara_plugins.errors import (
    EmbeddingMismatch,
    HybridIndexError,
    IndexInUse,
    IndexUnreadable,
    InvalidArgument,
)
from lara_plugins.retrieval import Bm25Encoder, EmbeddedIndex, Match

pytest.importorskip("qdrant_edge", reason="needs lara-plugins[embedded]")
pytest.importorskip("numpy", reason="needs lara-plugins[embedded]")
pytest.importorskip("wordllama", reason="needs lara-plugins[embedded]")


def _filled_and_closed(folder: Path) -> Path:
    with EmbeddedIndex(folder) as index:
        index.upsert(corpus(20))
    return folder


def _engine_file(folder: Path, name: str) -> Path:
    return next((folder / "shard").rglob(name))


@pytest.mark.parametrize("encoders", [{"dense": "model"}, {"sparse": "bm25"}, {"sparse": 0}])
def test_what_is_no_encoder_is_refused(tmp_path: Path, encoders: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"^(dense|sparse)=.*: give a"):
        EmbeddedIndex(tmp_path / "index", **encoders)
    assert not (tmp_path / "index").exists()


def test_reopened_it_is_the_same(tmp_path: Path) -> None:
    with EmbeddedIndex(tmp_path / "index") as index:
        index.upsert(corpus(80))
        found = index.search("river bank", limit=20, alpha=0.4)
        sources = index.sources()
    with EmbeddedIndex(str(tmp_path / "index"), create=False) as index:
        assert index.search("river bank", limit=20, alpha=0.4) == found
        assert index.sources() == sources


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index")
    index.close()
    index.close()
    with pytest.raises(HybridIndexError, match="closed"):
        index.search("river", limit=1, alpha=0.5)


def test_reading_what_is_not_there_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no index here"):
        EmbeddedIndex(tmp_path / "typo", create=False)
    assert not (tmp_path / "typo").exists()


def test_a_file_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(InvalidArgument, match="folder"):
        EmbeddedIndex(tmp_path / "file")


def test_a_second_opening_is_refused_until_the_first_is_closed(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path)
    with pytest.raises(IndexInUse, match=str(tmp_path)):
        EmbeddedIndex(tmp_path)
    index.upsert([passage(1, "still works")])
    index.close()
    EmbeddedIndex(tmp_path).close()


def test_another_process_is_refused(tmp_path: Path) -> None:
    script = "import sys; from lara_plugins import EmbeddedIndex; EmbeddedIndex(sys.argv[1])"
    with EmbeddedIndex(tmp_path):
        outcome = run(script, tmp_path)
    assert outcome.returncode == 1
    assert "IndexInUse" in outcome.stderr.splitlines()[-1]
    assert run(script, tmp_path).returncode == 0


def test_processes_that_create_open_and_close_it_in_turns_damage_nothing(tmp_path: Path) -> None:
    script = """
import os, sys
from lara_plugins import EmbeddedIndex, Passage
from lara_plugins.errors import IndexInUse
left = 12
while left:
    try:
        with EmbeddedIndex(sys.argv[1]) as index:
            index.upsert([Passage(f"{os.getpid()} {left}", f"river {left}")])
            left -= 1
    except IndexInUse:
        pass
"""
    with ThreadPoolExecutor() as threads:
        outcomes = list(threads.map(run, [script] * 2, [tmp_path / "index"] * 2))
    assert [outcome.returncode for outcome in outcomes] == [0, 0], outcomes
    with EmbeddedIndex(tmp_path / "index", create=False) as index:
        assert index.count() == 24


def test_a_creation_that_ended_with_its_lock_is_begun_again(tmp_path: Path) -> None:
    with EmbeddedIndex(tmp_path / "whole"):
        pass
    (tmp_path / "index").mkdir()
    shutil.copy(tmp_path / "whole" / "lara.lock", tmp_path / "index")
    with pytest.raises(InvalidArgument, match="no index here"):
        EmbeddedIndex(tmp_path / "index", create=False)
    with EmbeddedIndex(tmp_path / "index") as index:
        index.upsert([passage(1, "river")])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_loses_nothing_that_was_written(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from lara_plugins import EmbeddedIndex, Passage
index = EmbeddedIndex(sys.argv[1])
index.upsert([Passage(f"p{n}", f"river number {n}", source=f"s{n}") for n in range(50)])
index.upsert([Passage("p0", "moon", source="s0")])
index.delete_source("s1")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run(script, tmp_path).returncode == -signal.SIGKILL
    with EmbeddedIndex(tmp_path, create=False) as index:
        assert index.count() == 49
        assert index.search("moon", limit=1, alpha=0.5)[0].passage.id == "p0"
        left = [passage(n, f"river number {n}") for n in range(2, 50)] + [passage(0, "moon")]
        assert_exact(
            index.search("river number 7", limit=10, alpha=0.3),
            summed(tmp_path, left, "river number 7", 0.3),
            10,
        )


def test_an_interrupted_creation_is_noticed(tmp_path: Path) -> None:
    EmbeddedIndex(tmp_path / "index").close()
    (tmp_path / "index" / "manifest.json").unlink()
    with pytest.raises(IndexUnreadable, match="interrupted"):
        EmbeddedIndex(tmp_path / "index")


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("text")
    with pytest.raises(IndexUnreadable, match="no index"):
        EmbeddedIndex(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    "files",
    [
        ["thesis.txt"],
        ["manifest.json"],
        ["manifest.json", "index.html"],
        ["shard/notes.txt"],
        ["manifest.json", "shard/notes.txt"],
    ],
)
def test_the_advice_spares_a_folder_of_somebodys_own(tmp_path: Path, files: list[str], create: bool) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"name": "an application of their own"}')
    with pytest.raises(IndexUnreadable, match="give another folder") as caught:
        EmbeddedIndex(tmp_path, create=create)
    assert "delete" not in str(caught.value)


def test_a_folder_whose_name_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="surrogate"):
        EmbeddedIndex(tmp_path / "index\udcff")
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("locked", [".", "shard"])
def test_a_folder_that_may_not_be_written_is_no_damage(tmp_path: Path, locked: str) -> None:
    folder = _filled_and_closed(tmp_path) / locked
    folder.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=str(tmp_path)), EmbeddedIndex(tmp_path) as index:
            index.upsert([passage(1, "river")])
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe"])
def test_a_damaged_manifest_is_unreadable(tmp_path: Path, content: bytes) -> None:
    (_filled_and_closed(tmp_path) / "manifest.json").write_bytes(content)
    with pytest.raises(IndexUnreadable, match=r"manifest\.json"):
        EmbeddedIndex(tmp_path)


@pytest.mark.parametrize("name", ["edge_config.json", "segment.json", "status.dat"])
def test_a_damaged_engine_file_is_unreadable(tmp_path: Path, name: str) -> None:
    file = _engine_file(_filled_and_closed(tmp_path), name)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(IndexUnreadable):
        EmbeddedIndex(tmp_path)
    # It is not left locked: the same sentence comes again.
    with pytest.raises(IndexUnreadable):
        EmbeddedIndex(tmp_path)


def test_a_lost_engine_file_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    def found(folder: Path) -> list[Match]:
        with EmbeddedIndex(folder) as index:
            return [
                match
                for alpha in (0, 0.5, 1)
                for limit in (3, 50)
                for match in index.search("river bank", limit=limit, alpha=alpha)
            ]

    whole = _filled_and_closed(tmp_path / "whole")
    expected = found(whole)
    files = [file.relative_to(whole) for file in (whole / "shard").rglob("*") if file.is_file()]
    noticed = set()
    for file in files:
        damaged = Path(shutil.copytree(whole, tmp_path / "damaged"))
        (damaged / file).unlink()
        try:
            assert found(damaged) == expected, file
        except IndexUnreadable:
            noticed.add("/".join(file.parts[-3:]))
        shutil.rmtree(damaged)
    assert "vector_storage-dense/vectors/status.dat" in noticed


def test_passages_that_are_gone_are_noticed(tmp_path: Path) -> None:
    shard = _filled_and_closed(tmp_path) / "shard"
    for file in (*shard.rglob("mutable_id_tracker.*"), *(shard / "wal").iterdir()):
        file.unlink()
    with pytest.raises(IndexUnreadable, match="20 passages"):
        EmbeddedIndex(tmp_path)


def test_a_lost_engine_folder_is_unreadable(tmp_path: Path) -> None:
    (_filled_and_closed(tmp_path) / "shard").rename(tmp_path / "elsewhere")
    with pytest.raises(IndexUnreadable):
        EmbeddedIndex(tmp_path)


def test_another_format_is_unreadable(tmp_path: Path) -> None:
    file = _filled_and_closed(tmp_path) / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
    with pytest.raises(IndexUnreadable, match="format 99"):
        EmbeddedIndex(tmp_path)


def test_other_encoders_are_refused(tmp_path: Path) -> None:
    _filled_and_closed(tmp_path)
    with pytest.raises(EmbeddingMismatch, match=r"k1=1\.2"):
        EmbeddedIndex(tmp_path, sparse=Bm25Encoder(k1=1.2))
    EmbeddedIndex(tmp_path).close()
