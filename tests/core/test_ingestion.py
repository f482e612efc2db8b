from __future__ import annotations

import codecs
import contextlib
import hashlib
import io
import itertools
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lara_plugins.errors import IngestError, InvalidArgument
from lara_plugins.ingestion import READERS, AdaptiveChunker, ingest, read_document
from lara_plugins.passages import Passage
from lara_plugins.retrieval.embedded import EmbeddedIndex
from lara_plugins.retrieval.records import check_passage

TARGET = st.integers(100, 400)
WORDS = st.lists(st.text("abcXYZ.é—", min_size=1, max_size=30), min_size=1, max_size=300)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Words with sentence ends, line ends, paragraphs, items, headings and fences between them."""
    joints = st.sampled_from([" ", " ", " ", ". ", ".\n", "\n\n", "\n- ", "\n\n## ", "\n\n```\n", "\n| "])
    return "".join(word + draw(joints) for word in draw(WORDS))


@given(texts(), TARGET, st.integers(0, 50))
def test_chunks_are_verbatim_ordered_and_short_enough(text: str, target: int, overlap: int) -> None:
    end = 0
    for chunk in AdaptiveChunker(target, overlap).split(text):
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert len(chunk.text) <= target
        assert chunk.end > end
        assert chunk.start >= end - overlap
        end = chunk.end


@given(texts(), TARGET, st.integers(0, 50))
def test_no_word_is_cut_and_none_is_lost(text: str, target: int, overlap: int) -> None:
    chunks = AdaptiveChunker(target, overlap).split(text)
    covered = {position for chunk in chunks for position in range(chunk.start, chunk.end)}
    whole = {(word.start(), word.end()) for word in re.finditer(r"\S+", text)}
    for chunk in chunks:
        assert chunk.start in {start for start, _ in whole}
        assert chunk.end in {end for _, end in whole}
    headings = " ".join(chunk.heading for chunk in chunks)
    for start, end in whole:
        word = text[start:end]
        assert (
            covered.issuperset(range(start, end))
            or not word.strip("#")
            or word in headings
            or _heads_nothing(text, start)
        )


def _heads_nothing(text: str, position: int) -> bool:
    """Whether the word stands in the line of a heading."""
    return text[: position + 1].rpartition("\n")[2].lstrip().startswith("#")


def test_a_text_that_fits_stays_whole() -> None:
    text = "# Vacuum\n\nIt rebuilds the file.\n\n## Into\n\nOr a copy of it.\n"
    (chunk,) = AdaptiveChunker().split(text)
    assert chunk.heading == "Vacuum"
    assert chunk.text == "It rebuilds the file.\n\n## Into\n\nOr a copy of it."


def test_a_longer_text_is_split_at_its_headings_and_keeps_their_path() -> None:
    text = (
        "# Limits\n\n## Columns\n\n"
        + "A table has columns. " * 4
        + "\n\n## Rows\n\n"
        + "And it has rows. " * 4
    )
    chunks = AdaptiveChunker(target=100).split(text)
    assert [chunk.heading for chunk in chunks] == ["Limits > Columns", "Limits > Rows"]


def test_a_heading_in_a_fence_is_code() -> None:
    text = "# Shell\n\n```\n# no heading\n\nls\n```\n\n" + "Words. " * 20
    chunks = AdaptiveChunker(target=100).split(text)
    assert {chunk.heading for chunk in chunks} == {"Shell"}
    assert "# no heading\n\nls" in chunks[0].text


def test_a_long_section_leaves_no_short_tail() -> None:
    text = "This sentence has forty-two characters ok. " * 25
    lengths = [len(chunk.text) for chunk in AdaptiveChunker(target=1000).split(text)]
    assert len(lengths) == 2
    assert min(lengths) > 450


def test_long_paragraphs_are_split_between_sentences_but_not_after_abbreviations() -> None:
    text = "The files, e.g. The Journal, stay. " * 30
    assert all(chunk.text.endswith("stay.") for chunk in AdaptiveChunker(target=200).split(text))


def test_a_script_without_spaces_is_split_between_sentences() -> None:
    text = "数据库是一个文件。" * 60
    assert all(chunk.text.endswith("。") for chunk in AdaptiveChunker(target=100).split(text))


def test_overlap_repeats_the_end_of_the_chunk_before() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(40))
    chunks = AdaptiveChunker(target=200, overlap=60).split(text)
    for earlier, later in itertools.pairwise(chunks):
        assert earlier.start < later.start < earlier.end
        assert later.text.startswith("Sentence number")


@pytest.mark.parametrize(("target", "overlap"), [(99, 0), (20_001, 0), (900, -1), (900, 451), (900.0, 0)])
def test_bounds_are_checked(target: int, overlap: int) -> None:
    with pytest.raises(InvalidArgument):
        AdaptiveChunker(target, overlap)


def test_csv_rows_carry_their_column_names() -> None:
    document = read_document(Path("gpu_costs.csv"), b"Model;Cost\nfalcon-7b;$1.5\n\nphi;1;2\n")
    (part,) = document.parts
    assert (part.heading, part.text) == ("gpu costs", "Model: falcon-7b\nCost: $1.5")
    assert document.problems == ["row 4: 3 values for 2 columns"]


def test_jsonl_lines_are_passages_and_bad_ones_are_named() -> None:
    lines = [
        json.dumps({"_id": "a", "title": "T", "text": "one", "year": 2000, "extra": {"nested": 1}}),
        "{broken",
        "[1]",
        json.dumps({"_id": "b", "text": " "}),
        json.dumps({"_id": "a", "text": "again"}),
        json.dumps({"_id": "c", "text": "half \ud800"}),
        "[" * 100_000,
        '{"text": "long", "number": ' + "1" * 5000 + "}",
        json.dumps({"_id": True, "text": "no identity"}),
        json.dumps({"_id": 1.5, "text": "no identity"}),
        json.dumps({"_id": ["a"], "text": "no identity"}),
        json.dumps({"title": 7, "text": "no title"}),
        json.dumps({"text": "two"}),
        json.dumps({"_id": None, "title": None, "year": None, "text": "three"}),
        json.dumps({"_id": 2**70, "text": "four"}),
    ]
    document = read_document(Path("corpus.jsonl"), "\n".join(lines).encode())
    assert [(part.id, part.heading, part.text) for part in document.parts] == [
        ("a", "T", "one"),
        ("", "", "two"),
        ("", "", "three"),
        (str(2**70), "", "four"),
    ]
    assert [part.metadata for part in document.parts] == [
        {"_id": "a", "year": 2000},
        {},
        {},
        {"_id": str(2**70)},
    ]
    assert [problem.partition(":")[0] for problem in document.problems] == [f"line {n}" for n in range(2, 13)]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"  \n", "empty"),
        ("a.txt", b"text\0more", "binary"),
        ("a.txt", codecs.BOM_UTF16_LE + "text\0more".encode("utf-16-le"), "binary"),
        ("a.txt", codecs.BOM_UTF32_BE + "text\0more".encode("utf-32-be"), "binary"),
        ("a.txt", codecs.BOM_UTF32_LE + b"\xff\xff\xff\xff", "UTF-8"),
        ("a.txt", "Größe".encode("latin-1"), "UTF-8"),
        ("a.pdf", b"%PDF-1.7 nothing", "PDF"),
        ("a.csv", b"only,a,header\n", "no text"),
        ("a.csv", b'name\n"open', "CSV"),
        ("a.docx", b"PK", "is not read: only .csv"),
        ("Makefile", b"all:", "is not read"),
    ],
)
def test_what_cannot_be_read_says_why(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(IngestError, match=reason):
        read_document(Path(name), data)


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
    ],
)
def test_text_is_decoded(encoding: str, mark: bytes) -> None:
    (part,) = read_document(Path("a.MD"), mark + "Größe\r\nzwei".encode(encoding)).parts
    assert part.text == "Größe\nzwei"


@given(st.data(), st.sampled_from(sorted(READERS)))
def test_whatever_a_file_holds_it_is_read_or_refused(data: st.DataObject, ending: str) -> None:
    known = {".pdf": pdf("A page."), ".jsonl": b'{"_id": 1, "text": "a", "n": 2}\n{"text": "b"}'}
    sound = known.get(ending, b'name,"value"\n1,2\n')
    start = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(start, min(len(sound), start + 20)))
    damaged = sound[:start] + data.draw(st.binary(max_size=20)) + sound[end:]
    with contextlib.suppress(IngestError):
        for part in read_document(Path(f"_{ending}"), damaged).parts:
            check_passage(Passage("id", part.text, heading=part.heading, metadata=part.metadata))


def test_a_pdf_with_a_filter_that_is_not_known_is_refused() -> None:
    data = pdf("A page.").replace(b"/Length", b"/Filter /Unknown /Length", 1)
    with pytest.raises(IngestError, match=r"PDF that cannot be read: .*Unknown"):
        read_document(Path("a.pdf"), data)


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
        "six": f"{digest}#1",
        "seven": f"{digest}#0",
        "eight": f"{digest}#2",
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


def test_a_file_of_many_records_is_whole_only_when_its_last_batch_is_written(
    folder: Path, index: EmbeddedIndex
) -> None:
    path = folder / "many.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"record {number}"}) for number in range(4001)))

    class FullDisk:
        def __init__(self) -> None:
            self.writes = 0

        sources, delete_source = index.sources, index.delete_source

        def upsert(self, passages: Sequence[Passage]) -> None:
            self.writes += 1
            if self.writes == 2:
                raise OSError("no space left")
            index.upsert(passages)

    with pytest.raises(OSError, match="no space"):
        ingest([path], FullDisk())
    assert index.count() == 2000
    report = ingest([path], index)
    assert (report.updated, index.count()) == (1, 4001)
    assert ingest([path], index).unchanged == 1


def test_pdf_pages_carry_their_number(folder: Path, index: EmbeddedIndex) -> None:
    (folder / "two.pdf").write_bytes(pdf("The first page.", "The second page."))
    ingest([folder / "two.pdf"], index)
    pages = {
        match.passage.text: match.passage.metadata["page"]
        for match in index.search("page", limit=9, alpha=0.5)
    }
    assert pages == {"The first page.": 1, "The second page.": 2}


def test_progress_is_told_before_each_file(folder: Path, index: EmbeddedIndex) -> None:
    told: list[tuple[int, int, str]] = []
    ingest([folder], index, progress=lambda done, total, file: told.append((done, total, file.name)))
    assert told == [(0, 2, "wal.md"), (1, 2, "limits.txt")]


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text a page."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for line in pages:
        page = writer.add_blank_page(300, 300)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 20 100 Td ({line}) Tj ET".encode())
        page[NameObject("/Contents")] = content
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()
