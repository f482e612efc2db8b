"""An ingestion that is killed, fails or is slow: nothing is lost, nothing is written twice."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from lara_plugins import EmbeddedIndex, Passage, ingest
from lara_plugins.ingestion.writing import BATCH, SETTLED_EVERY, SIDE_BY_SIDE, Writing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A changed and a vanished file, small files, and one of more than one batch."""
    made = tmp_path / "docs"
    made.mkdir()
    (made / "changed.md").write_text("# Old\n\nOld words.\n")
    (made / "vanished.md").write_text("# Gone\n\nGone words.\n")
    return made


def change(folder: Path) -> None:
    (folder / "changed.md").write_text("# New\n\n" + "A new sentence stands here. " * 100)
    (folder / "vanished.md").unlink()
    records = [{"_id": str(number), "text": f"record {number}"} for number in range(2 * BATCH + 7)]
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    for number in range(3):
        (folder / f"small-{number}.txt").write_text(f"Small file {number}. " * 80)


def contents(path: Path) -> dict[str, tuple[str, object]]:
    """Text and content hash of every passage, by id."""
    with EmbeddedIndex(path) as index:
        found = index.search("record", limit=5000, alpha=0.5)
        assert len(found) == index.count()
        return {m.passage.id: (m.passage.text, m.passage.metadata["content_hash"]) for m in found}


@pytest.mark.parametrize(
    ("write", "when", "kind"),
    [
        (1, "after", "atomic"),  # the changed file's old passages are gone
        (3, "before", "atomic"),
        (4, "after", "atomic"),  # the records are written, their first one is not sealed
        (3, "after", "not atomic"),  # one passage of a file is written
        (9, "before", "not atomic"),
    ],
)
def test_a_killed_ingestion_is_resumed(
    folder: Path, tmp_path: Path, write: int, when: str, kind: str
) -> None:
    path = tmp_path / "index"
    with EmbeddedIndex(path) as index:
        ingest([folder], index)
    change(folder)
    script = ROOT / "tests" / "support" / "ingest_and_die.py"
    command = [sys.executable, "-W", "ignore", str(script), str(path), str(folder), str(write), when, kind]
    assert subprocess.run(command, check=False, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}).returncode == 9  # noqa: S603
    with EmbeddedIndex(path) as index:
        ingest([folder], index)
        assert ingest([folder], index).unchanged == 5
    with EmbeddedIndex(tmp_path / "fresh") as index:
        ingest([folder], index)
    assert contents(path) == contents(tmp_path / "fresh")


class Kept:
    """An index in memory, whose writes a test can watch."""

    def __init__(self, before_write: Callable[[Sequence[Passage]], None], *, atomic: bool = True) -> None:
        self.atomic = atomic
        self.writes: list[list[Passage]] = []
        self.deleted: list[str] = []
        self._before_write = before_write

    def sources(self) -> Mapping[str, str]:
        return {}

    def delete_source(self, source: str) -> None:
        self.deleted.append(source)

    def upsert(self, passages: Sequence[Passage]) -> None:
        self._before_write(passages)
        self.writes.append(list(passages))


@pytest.mark.parametrize("atomic", [True, False])
def test_only_what_takes_several_writes_is_sealed(folder: Path, atomic: bool) -> None:
    change(folder)
    index = Kept(lambda _: None, atomic=atomic)
    report = ingest([folder], index)
    written = [passage for batch in index.writes for passage in batch]
    assert report.passages == len({passage.id for passage in written})
    unsealed = {passage.source for passage in written if passage.metadata["content_hash"] == ""}
    several = {"records.jsonl"} if atomic else {path.name for path in folder.iterdir()}
    assert {Path(source).name for source in unsealed} == several
    last = {passage.id: passage.metadata["content_hash"] for passage in written}
    assert "" not in last.values()
    assert len(written) == len(last) + len(several)
    assert all(len(batch) <= BATCH for batch in index.writes)


def test_an_index_that_fails_ends_the_ingestion(folder: Path) -> None:
    change(folder)

    def full(_: Sequence[Passage]) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        ingest([folder], Kept(full))


def test_reading_does_not_run_ahead_of_writing(tmp_path: Path) -> None:
    """While two writes hang, no more than the batches that wait for them have been read."""
    read: list[int] = []
    entered, leave = threading.Semaphore(0), threading.Event()
    ahead: list[int] = []

    def hang(_: Sequence[Passage]) -> None:
        entered.release()
        assert leave.wait(60)

    def records() -> Iterator[bytes]:
        for number in range(20 * BATCH):
            read.append(number)
            yield json.dumps({"text": f"record {number}"}).encode() + b"\n"

    def passages() -> Iterator[Passage]:
        for number, _ in enumerate(records()):
            yield Passage(str(number), f"record {number}", metadata={"content_hash": "hash"})

    index = Kept(hang)

    def watch() -> None:
        for _ in range(SIDE_BY_SIDE):
            entered.acquire()
        ahead.append(len(read))
        leave.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with Writing(index) as writing:
        assert writing.source(passages()) == 20 * BATCH
    watcher.join()
    assert SIDE_BY_SIDE * BATCH <= ahead[0] <= (SIDE_BY_SIDE + 3) * BATCH
    assert sum(map(len, index.writes)) == 20 * BATCH + 1


class Eventual(Kept):
    """An index whose writes are seen late."""

    waits = 0

    def wait_until_visible(self) -> None:
        self.waits += 1


def test_an_index_that_is_seen_late_is_waited_for_now_and_then() -> None:
    index = Eventual(lambda _: None, atomic=False)
    with Writing(index) as writing:
        writing.source(Passage(str(n), "text") for n in range(2 * SETTLED_EVERY + BATCH))
    assert index.waits == 2
    assert len(index.writes) > 2 * SETTLED_EVERY // BATCH
