"""An ingestion that is killed, fails or is slow: nothing is lost, nothing is written twice."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lara_plugins import EmbeddedIndex, Passage, ingest
from lara_plugins.errors import InvalidArgument, UnstorablePassages
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
    """While two writes hang, no more than the batches that wait for them have been read.

    The first batch of a source is waited for by itself.
    """
    read: list[int] = []
    entered, leave = threading.Semaphore(0), threading.Event()
    ahead: list[int] = []

    def hang(passages: Sequence[Passage]) -> None:
        if passages[0].id == "0":
            return
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
    assert SIDE_BY_SIDE * BATCH <= ahead[0] <= (SIDE_BY_SIDE + 4) * BATCH
    assert sum(map(len, index.writes)) == 20 * BATCH + 1


def test_the_first_batch_of_a_source_is_written_before_any_other_is_sent() -> None:
    """Else the others alone might be there when the process is killed, and pass for the whole source."""
    index = Kept(lambda _: None)
    written: list[int] = []

    def passages() -> Iterator[Passage]:
        for number in range(3 * BATCH):
            if number == 2 * BATCH:  # the second batch is sent after the third has been read
                written.extend(map(len, index.writes))
            yield Passage(str(number), "text", source="s", metadata={"content_hash": "hash"})

    with Writing(index) as writing:
        writing.source(passages())
    assert written == [BATCH]
    assert index.writes[0][0].metadata["content_hash"] == ""


class Storing:
    """An index in memory that cannot store some passages, and may fail half way through a write.

    Attributes:
        fails_in: at which write from now on it fails; 0 for none.
    """

    def __init__(self, *, atomic: bool) -> None:
        self.atomic = atomic
        self.fails_in = 0
        self.stored: dict[str, Passage] = {}
        self._lock = threading.Lock()

    def sources(self) -> Mapping[str, str]:
        hashes: dict[str, set[str]] = {}
        for passage in self.stored.values():
            hashes.setdefault(passage.source, set()).add(str(passage.metadata["content_hash"]))
        return {source: "".join(held) if len(held) == 1 else "" for source, held in hashes.items()}

    def delete_source(self, source: str) -> None:
        with self._lock:
            self._count()
            self.stored = {id_: held for id_, held in self.stored.items() if held.source != source}

    def upsert(self, passages: Sequence[Passage]) -> None:
        reasons = {
            passage.id: InvalidArgument("text", "...", "too long") for passage in passages if bad(passage)
        }
        if reasons:
            raise UnstorablePassages(reasons)
        with self._lock:
            half = 0 if self.atomic else len(passages) // 2
            self.stored |= {passage.id: passage for passage in passages[:half]}
            self._count()
            self.stored |= {passage.id: passage for passage in passages[half:]}

    def _count(self) -> None:
        self.fails_in -= 1
        if self.fails_in == 0:
            raise OSError("the server is gone")


def bad(passage: Passage) -> bool:
    """Some are too long only with their real content hash."""
    return "bad" in passage.text or ("nearly" in passage.text and passage.metadata["content_hash"] != "")


FILES = st.dictionaries(
    st.sampled_from(["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"]),
    st.tuples(
        st.sampled_from([1, 2, BATCH, BATCH + 1, 3 * BATCH + 1]),
        st.none() | st.tuples(st.sampled_from(["bad", "nearly"]), st.floats(0, 1)),
    ),
    min_size=1,
)


def write_records(folder: Path, files: Mapping[str, tuple[int, tuple[str, float] | None]]) -> None:
    """Files of so many records, one of which may be of a word and at a place in the file."""
    for name, (count, fault) in files.items():
        texts = [f"{name} {number}" for number in range(count)]
        if fault is not None:
            texts[round(fault[1] * (count - 1))] += fault[0]
        (folder / name).write_text("\n".join(json.dumps({"text": text}) for text in texts))


@settings(max_examples=40, deadline=None)
@given(before=FILES, after=FILES, atomic=st.booleans(), fails_at=st.integers(0, 12))
def test_a_source_is_held_whole_or_not_at_all(
    before: dict[str, tuple[int, tuple[str, float] | None]],
    after: dict[str, tuple[int, tuple[str, float] | None]],
    atomic: bool,
    fails_at: int,
) -> None:
    index = Storing(atomic=atomic)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        for files in (before, after):
            for old in folder.iterdir():
                old.unlink()
            write_records(folder, files)
            index.fails_in = fails_at
            with contextlib.suppress(OSError):
                ingest([folder], index)
            index.fails_in = 0
            report = ingest([folder], index)
            again = ingest([folder], index)
            whole = {name: count for name, (count, fault) in files.items() if fault is None}
            held = Counter(Path(passage.source).name for passage in index.stored.values())
            assert dict(held) == whole
            assert all(index.sources().values())
            refused = {name for name, (_, fault) in files.items() if fault is not None}
            for each in (report, again):
                assert sorted(Path(path).name for path, _ in each.skipped) == sorted(refused)
                assert all("too long" in reason for _, reason in each.skipped)
            assert (again.unchanged, again.added, again.updated, again.removed, again.passages) == (
                len(whole),
                0,
                0,
                0,
                0,
            )


def test_what_is_written_is_counted_without_what_is_left_out(tmp_path: Path) -> None:
    index = Storing(atomic=True)
    write_records(tmp_path, {"a.jsonl": (3, None), "b.jsonl": (600, None), "c.jsonl": (2, ("bad", 0))})
    first = ingest([tmp_path], index)
    assert (first.added, first.passages, len(first.skipped)) == (2, 603, 1)
    write_records(tmp_path, {"b.jsonl": (600, ("bad", 1)), "c.jsonl": (2, None)})
    second = ingest([tmp_path], index)
    assert (second.added, second.updated, second.removed, second.passages) == (1, 0, 1, 2)
    ((path, reason),) = second.skipped
    assert path == str(tmp_path / "b.jsonl")
    assert reason == "is left out whole: text='...': too long"


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
