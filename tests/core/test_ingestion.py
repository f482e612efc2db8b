"""Bringing an index up to date with files and folders."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pdf_files import pdf

from lara_plugins.errors import IngestError
from lara_plugins.ingestion import AdaptiveChunker, ingest
from lara_plugins.retrieval.embedded import EmbeddedIndex


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "wal.md").write_text("# WAL\n\nReaders do not block writers.\n")
    (made / "sub").mkdir()
    (made / "sub" / "limits.txt").write_text("A table has at most 2000 columns.")
    return made


def texts_of(index: EmbeddedIndex) -> set[str]:
    return {match.passage.text for match in index.search("anything", limit=100, alpha=0.5)}


def test_a_second_run_leaves_everything_alone(folder: Path, index: EmbeddedIndex) -> None:
    first = ingest([folder], index)
    assert (first.added, first.passages, first.skipped) == (2, 2, [])
    second = ingest([folder], index)
    assert (second.added, second.updated, second.unchanged, second.removed, second.passages) == (
        0,
        0,
        2,
        0,
        0,
    )


def test_a_source_is_known_from_another_working_directory(
    folder: Path, index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    ingest(["docs"], index)
    monkeypatch.chdir(folder)
    assert ingest(["."], index).unchanged == 2


def test_a_changed_file_loses_its_old_passages(folder: Path, index: EmbeddedIndex) -> None:
    ingest([folder], index)
    (folder / "wal.md").write_text("# WAL\n\nThere is one writer.\n")
    report = ingest([folder], index)
    assert (report.updated, report.unchanged) == (1, 1)
    assert texts_of(index) == {"There is one writer.", "A table has at most 2000 columns."}


def test_a_file_that_has_no_text_any_more_loses_its_passages(folder: Path, index: EmbeddedIndex) -> None:
    ingest([folder], index)
    (folder / "wal.md").write_bytes(b"\0\1")
    report = ingest([folder], index)
    assert (report.removed, report.unchanged) == (1, 1)
    assert report.skipped == [(str(folder / "wal.md"), "is binary, not text")]
    assert texts_of(index) == {"A table has at most 2000 columns."}


def test_files_that_are_gone_are_forgotten_only_below_the_path(folder: Path, index: EmbeddedIndex) -> None:
    ingest([folder], index)
    (folder / "wal.md").unlink()
    (folder / "sub" / "limits.txt").unlink()
    assert ingest([folder / "sub"], index).removed == 1
    assert texts_of(index) == {"Readers do not block writers."}
    assert ingest([folder], index).removed == 1
    assert index.count() == 0


def test_another_chunker_reads_files_again(folder: Path, index: EmbeddedIndex) -> None:
    (folder / "long.txt").write_text("This is a sentence. " * 50)
    before = ingest([folder], index).passages
    report = ingest([folder], index, chunker=AdaptiveChunker(target=200))
    assert report.updated == 3
    assert report.passages > before


def test_what_cannot_be_read_does_not_stop_the_rest(folder: Path, index: EmbeddedIndex) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\n%%EOF")
    (folder / "image.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text("hidden")
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("hidden")
    (folder / "loop").symlink_to(folder)
    (folder / "gone.txt").symlink_to(folder / "nowhere.txt")
    (folder / "again.txt").symlink_to(folder / "sub" / "limits.txt")
    report = ingest([folder, folder / "sub"], index)
    assert report.added == 2
    assert {Path(path).name for path, _ in report.skipped} == {"broken.pdf", "image.png", "loop", "gone.txt"}
    assert index.count() == 2


def test_names_that_are_not_utf_8_are_skipped_with_a_reason(folder: Path, index: EmbeddedIndex) -> None:
    strange = os.fsdecode(b"strange\xff")
    try:
        (folder / strange).mkdir()
    except OSError:
        pytest.skip("the file system takes no such name")
    (folder / strange / "inside.txt").write_text("inside")
    (folder / f"{strange}.txt").write_text("a file")
    by_url = ingest([f"file://{folder}"], index)
    assert sum("not UTF-8" in reason for _, reason in by_url.skipped) == 2
    (folder / "link.txt").symlink_to(folder / f"{strange}.txt")
    (folder / f"{strange}.link").symlink_to(folder / "nowhere")
    (folder / f"{strange}.loop").symlink_to(folder)
    for root in (folder, folder / f"{strange}.txt", folder / strange):
        report = ingest([root], index)
        assert report.skipped
        for path, reason in report.skipped:
            assert f"{path} {reason}".encode()
    assert texts_of(index) == {"Readers do not block writers.", "A table has at most 2000 columns."}


def test_a_path_that_does_not_exist_is_refused_before_anything_is_written(
    folder: Path, index: EmbeddedIndex
) -> None:
    with pytest.raises(IngestError, match=r"nowhere does not exist"):
        ingest([folder, folder / "nowhere"], index)
    assert index.count() == 0


@pytest.mark.parametrize("first", [{"text": "a sound line"}, {"title": "no text"}])
def test_faulty_lines_are_named_each_time(folder: Path, index: EmbeddedIndex, first: object) -> None:
    path = folder / "records.jsonl"
    path.write_text("\n".join([json.dumps(first), "{broken", '{"text": "another"}', '{"text": " "}']))
    reports = [ingest([path], index) for _ in range(3)]
    assert [(report.added, report.unchanged) for report in reports] == [(1, 0), (0, 1), (0, 1)]
    assert reports[0].skipped[-2:] == [
        (str(path), "line 2: is no JSON"),
        (str(path), 'line 4: has no "text"'),
    ]
    assert reports[0].skipped == reports[1].skipped == reports[2].skipped
    path.write_text('{"text": "mended"}')
    assert (ingest([path], index).skipped, ingest([path], index).skipped) == ([], [])


def test_the_embedded_index_holds_what_pinecone_could_not(folder: Path, index: EmbeddedIndex) -> None:
    records = [{"text": "huge", "number": 2**53 + 1}, {"text": "long " * 10_000}]
    (folder / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert ingest([folder / "records.jsonl"], index).skipped == []
    (huge,) = index.search("huge", limit=1, alpha=0.0)
    assert huge.passage.metadata["number"] == 2**53 + 1


def test_excluded_folders_are_passed_over(folder: Path, index: EmbeddedIndex) -> None:
    assert ingest([folder], index, exclude=[folder / "sub"]).added == 1


def test_ids_are_the_sources_with_the_records_own_or_its_number(folder: Path, index: EmbeddedIndex) -> None:
    lines = [{"text": "six"}, {"_id": "0", "title": "T", "text": "seven"}, {"text": "eight"}]
    path = folder / "records.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    ingest([path], index)
    found = {match.passage.text: match.passage for match in index.search("seven", limit=9, alpha=0.5)}
    assert (found["seven"].heading, found["seven"].metadata["_id"]) == ("T", "0")
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    assert {text: passage.id for text, passage in found.items()} == {
        "six": f"{digest}#line-1",
        "seven": f"{digest}#0",
        "eight": f"{digest}#line-3",
    }


RECORDS = st.dictionaries(
    st.sampled_from(["a.jsonl", "b.jsonl", "c.jsonl"]),
    st.lists(st.sampled_from(["0", "1", "2", None]), min_size=1, max_size=4, unique=True),
)


@settings(max_examples=15)
@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_files_whose_records_share_ids_do_not_touch_each_other(states: list[dict[str, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as made, EmbeddedIndex(Path(made, "index")) as index:
        folder = Path(made, "docs")
        folder.mkdir()
        for files in states:
            for old in folder.iterdir():
                old.unlink()
            for name, ids in files.items():
                lines = [json.dumps({"_id": id_, "text": f"{name} {id_}"}) for id_ in ids]
                (folder / name).write_text("\n".join(lines))
            assert ingest([folder], index).skipped == []
            assert texts_of(index) == {f"{name} {id_}" for name, ids in files.items() for id_ in ids}
            assert ingest([folder], index).unchanged == len(files)


def test_pdf_pages_carry_their_number(folder: Path, index: EmbeddedIndex) -> None:
    (folder / "two.pdf").write_bytes(pdf("The first page.", "The second page."))
    ingest([folder / "two.pdf"], index)
    pages = {
        match.passage.text: match.passage.metadata["page"]
        for match in index.search("page", limit=9, alpha=0.5)
    }
    assert pages == {"The first page.": 1, "The second page.": 2}


def test_page_headers_are_removed_and_listed(folder: Path, index: EmbeddedIndex) -> None:
    path = folder / "paged.txt"
    path.write_text("\f".join(f"ACME\n\nWhat page {number} says.\n" for number in range(4)))
    report = ingest([path], index)
    assert report.cleaned == [(str(path), "ACME", 4)]
    assert all("ACME" not in text for text in texts_of(index))


def test_a_csv_is_split_between_rows_and_a_broken_one_is_named(folder: Path, index: EmbeddedIndex) -> None:
    rows = "".join(f"model-{number},{number}\n" for number in range(200))
    (folder / "costs.csv").write_text("model,cost\n" + rows)
    (folder / "broken.csv").write_text('name\n"open')
    report = ingest([folder], index)
    assert [(Path(path).name, reason[:9]) for path, reason in report.skipped] == [("broken.csv", "is no CSV")]
    found = [m.passage for m in index.search("model", limit=99, alpha=0.5) if m.passage.heading == "costs"]
    assert len(found) > 2
    assert all(passage.text.startswith("model,cost\nmodel-") for passage in found)


def test_passages_say_where_they_stand(folder: Path, index: EmbeddedIndex) -> None:
    text = "# Title\n\n" + "A sentence stands here. " * 100
    (folder / "long.md").write_text(text)
    ingest([folder / "long.md"], index)
    found = sorted(
        (match.passage for match in index.search("sentence", limit=9, alpha=0.5)),
        key=lambda passage: int(str(passage.metadata["start"])),
    )
    assert [passage.id.partition("#")[2] for passage in found] == ["0", "1", "2", "3"]
    for passage in found:
        span = text[int(str(passage.metadata["start"])) : int(str(passage.metadata["end"]))]
        assert passage.text in span
        assert len(str(passage.metadata["content_hash"])) == 64


def test_progress_is_told_before_each_file(folder: Path, index: EmbeddedIndex) -> None:
    told: list[tuple[int, int, str]] = []
    ingest([folder], index, progress=lambda done, total, name: told.append((done, total, Path(name).name)))
    assert told == [(0, 2, "wal.md"), (1, 2, "limits.txt")]
