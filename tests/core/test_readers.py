"""What is read of a file, and what is refused with a reason."""

from __future__ import annotations

import codecs
import contextlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pdf_files import pdf

from lara_plugins.errors import IngestError
from lara_plugins.ingestion import READERS, Part, read_document
from lara_plugins.passages import Passage
from lara_plugins.retrieval.records import checked_passage


def read(name: str, data: bytes) -> tuple[list[Part], list[str]]:
    """The parts of a file, and its problems."""
    document = read_document(name, io.BytesIO(data))
    return list(document.parts), document.problems


def test_a_csv_is_a_table_under_its_files_name() -> None:
    (part,), problems = read("s3://bucket/gpu_costs.csv", b"Model;Cost\nfalcon-7b;$1.5\n\nphi;1;2\n")
    assert (part.heading, part.delimiter) == ("gpu costs", ";")
    assert part.text == "Model;Cost\nfalcon-7b;$1.5\n\nphi;1;2\n"
    assert problems == []


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
    lines += ["broken \xff"]
    parts, problems = read("corpus.jsonl", "\n".join(lines).encode("utf-8")[:-2] + b"\xff")
    assert [(part.id, part.heading, part.text) for part in parts] == [
        ("a", "T", "one"),
        ("line-13", "", "two"),
        ("line-14", "", "three"),
        (str(2**70), "", "four"),
    ]
    assert [part.metadata for part in parts] == [
        {"_id": "a", "year": 2000},
        {},
        {},
        {"_id": str(2**70)},
    ]
    assert [problem.partition(":")[0] for problem in problems] == [f"line {n}" for n in [*range(2, 13), 16]]
    assert problems[-1] == "line 16: is no UTF-8 text (byte 7)"


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
        ("a.jsonl", b"\0\1", "binary"),
        ("a.docx", b"PK", "is not read: only .csv"),
        ("Makefile", b"all:", "is not read"),
    ],
)
def test_what_cannot_be_read_says_why(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(IngestError, match=reason):
        read(name, data)


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
    (part,), _ = read("a.MD", mark + "Größe\r\nzwei".encode(encoding))
    assert part.text == "Größe\nzwei"


@given(st.data(), st.sampled_from(sorted(READERS)))
def test_whatever_a_file_holds_it_is_read_or_refused(data: st.DataObject, ending: str) -> None:
    known = {".pdf": pdf("A page."), ".jsonl": b'{"_id": 1, "text": "a", "n": 2}\n{"text": "b"}'}
    sound = known.get(ending, b'name,"value"\n1,2\n')
    start = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(start, min(len(sound), start + 20)))
    damaged = sound[:start] + data.draw(st.binary(max_size=20)) + sound[end:]
    with contextlib.suppress(IngestError):
        for part in read(f"_{ending}", damaged)[0]:
            checked_passage(Passage("id", part.text, heading=part.heading, metadata=part.metadata))


def test_a_pdf_with_a_filter_that_is_not_known_is_refused() -> None:
    data = pdf("A page.").replace(b"/Length", b"/Filter /Unknown /Length", 1)
    with pytest.raises(IngestError, match=r"PDF that cannot be read: .*Unknown"):
        read("a.pdf", data)
