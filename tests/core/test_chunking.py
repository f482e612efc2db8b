from __future__ import annotations

import csv
import io
import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lara_plugins.errors import IngestError, InvalidArgument
from lara_plugins.ingestion import AdaptiveChunker, Chunk, clean
from lara_plugins.ingestion.structure import HEADING_LIMIT

TARGET = st.integers(100, 400)
WORDS = st.lists(st.text("abcXYZ.é—。", min_size=1, max_size=30), min_size=1, max_size=300)
JOINTS = [
    *(" ", " ", " ", ". ", ".\n", "\n\n", "\n- ", "\n\n## ", "\n# ", "\n\n```\n", "\n===\n", "\n---\n", "\f"),
    *(
        "\n| ",
        " | ",
        "\n\n| a | b |\n|---|---|\n| ",
        "\r\n",
        "\t",
        "\n    ",
        "\n> ",
        "\n<div>\n",
        "\n1. ",
        " " * 60,
    ),
]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Words with everything between them that a document may hold, or any characters at all."""
    if draw(st.booleans()):
        return "".join(word + draw(st.sampled_from(JOINTS)) for word in draw(WORDS))
    return draw(st.text(max_size=1000))


def header_of(chunk: Chunk, text: str) -> str:
    """The header that is repeated above a chunk's own text; "" if there is none."""
    own = text[chunk.start : chunk.end].rstrip()
    if own.endswith(chunk.text.rstrip()):  # without headings and blank lines
        return ""
    shown = re.sub(r"\A(?:[^\S\n]*\n)+", "", own)
    assert shown
    assert chunk.text.endswith(f"\n{shown}")
    return chunk.text.removesuffix(f"\n{shown}")


@given(documents(), TARGET, st.integers(0, 50))
def test_spans_cover_the_text_and_none_is_too_long(text: str, target: int, overlap: int) -> None:
    cleaned = clean(text).text
    chunks = AdaptiveChunker(target, overlap).split(text)
    assert bool(chunks) == bool(cleaned)
    covered = 0
    for chunk in chunks:
        assert covered - overlap <= chunk.start <= covered < chunk.end
        assert chunk.text.strip()
        assert chunk.end - chunk.start <= target
        if header := header_of(chunk, cleaned):
            assert len(header) + 1 + chunk.end - chunk.start <= target
            assert header in cleaned[: chunk.start]
        assert len(chunk.heading) <= HEADING_LIMIT
        covered = chunk.end
    assert covered == len(cleaned)


@given(documents(), TARGET)
def test_every_word_is_read_with_its_chunk(text: str, target: int) -> None:
    cleaned = clean(text).text
    for chunk in AdaptiveChunker(target, 0).split(text):
        left_out = set(cleaned[chunk.start : chunk.end].split()) - set(chunk.text.split())
        marks = {word for word in left_out if not word.strip("#=-")}
        shortened = len(chunk.heading) > HEADING_LIMIT - 200
        assert left_out - marks <= set(chunk.heading.split()) or shortened


@given(documents(), TARGET, st.integers(1, 50))
def test_no_word_is_cut_that_fits(text: str, target: int, overlap: int) -> None:
    cleaned = clean(text).text
    starts = {chunk.start for chunk in AdaptiveChunker(target, overlap).split(text)}
    for word in re.finditer(r"\S+", cleaned):
        inside = starts & set(range(word.start() + 1, word.end()))
        assert not inside or len(word[0]) > target // 2 - 50 or re.search("[。！？]", word[0])


@given(documents(), TARGET)
def test_an_overlap_begins_at_a_sentence_and_is_the_largest(text: str, target: int) -> None:
    cleaned = clean(text).text
    chunks = AdaptiveChunker(target, target // 2).split(text)
    for earlier, later in itertools.pairwise(chunks):
        if later.start < earlier.end:
            before = cleaned[: later.start]
            lead = cleaned[later.start : later.end]
            assert (
                re.search(r"[.!?][\"'”’)\]]*\s+$|[。！？]\s*$|\n$", before)
                or re.match(r"[ \t]*([-*+•|]|\d+[.)])", lead)
                or later.start == earlier.start
            )
            assert earlier.start < later.start


def test_prose_overlaps_by_as_many_sentences_as_are_allowed() -> None:
    text = " ".join(f"Sentence number {number:02} is here." for number in range(40))
    chunks = AdaptiveChunker(target=200, overlap=70).split(text)
    for earlier, later in itertools.pairwise(chunks):
        assert later.text.startswith("Sentence number")
        assert 70 - len("Sentence number 00 is here. ") < earlier.end - later.start <= 70


def test_text_without_sentences_does_not_overlap() -> None:
    chunks = AdaptiveChunker(target=100, overlap=50).split("word " * 100)
    assert all(earlier.end == later.start for earlier, later in itertools.pairwise(chunks))


def test_a_text_that_fits_stays_whole() -> None:
    text = "# Vacuum\n\nIt rebuilds the file.\n\n## Into\n\nOr a copy of it.\n"
    (chunk,) = AdaptiveChunker().split(text)
    assert chunk.heading == "Vacuum"
    assert chunk.text == "It rebuilds the file.\n\n## Into\n\nOr a copy of it."
    assert (chunk.start, chunk.end) == (0, len(text.rstrip()))


def test_a_longer_text_is_split_at_its_headings_and_keeps_their_path() -> None:
    text = (
        "Limits\n======\n\n## Columns\n\n"
        + "A table has columns. " * 4
        + "\n\n## Rows ##\n\n"
        + "And it has rows. " * 4
        + "\n\n# Other\n\n"
        + "Nothing. " * 9
    )
    chunks = AdaptiveChunker(target=120, overlap=0).split(text)
    assert [chunk.heading for chunk in chunks] == ["Limits > Columns", "Limits > Rows", "Other"]
    assert chunks[0].text.startswith("A table has columns.")


def test_a_section_that_fits_with_all_below_it_stays_whole() -> None:
    small = "## A\n\n### B\n\nShort.\n\n### C\n\nShort too.\n\n"
    text = "# Title\n\n" + small + "## D\n\n" + "A longer sentence stands here. " * 20
    chunks = AdaptiveChunker(target=300, overlap=0).split(text)
    assert (chunks[0].heading, chunks[0].text) == ("Title > A", "### B\n\nShort.\n\n### C\n\nShort too.")
    assert {chunk.heading for chunk in chunks[1:]} == {"Title > D"}


def test_headings_that_head_nothing_are_text() -> None:
    text = "# Title\n\n## Gone\n\n## Here\n\n" + "A sentence of it. " * 10 + "\n\n## See also\n"
    chunks = AdaptiveChunker(target=120, overlap=0).split(text)
    assert chunks[0].heading == "Title > Here"
    assert chunks[0].text.startswith("## Gone\n\n## Here\n\nA sentence")
    assert chunks[-1].text.endswith("## See also")
    (only,) = AdaptiveChunker().split("# Just\n\n## Headings\n")
    assert (only.heading, only.text) == ("", "# Just\n\n## Headings")


def test_a_heading_in_a_fence_and_front_matter_are_none() -> None:
    text = "---\ntitle: Shell\n---\n\n# Shell\n\n```\n# no heading\n\nls\n```\n\n" + "Words. " * 20
    chunks = AdaptiveChunker(target=100).split(text)
    assert {chunk.heading for chunk in chunks} == {"", "Shell"}
    assert any("# no heading\n\nls" in chunk.text for chunk in chunks)


def test_a_long_path_keeps_its_innermost_headings() -> None:
    titles = [f"{level} " + "x" * 90 for level in range(1, 6)]
    text = "\n\n".join(f"{'#' * level} {title}" for level, title in enumerate(titles, 1)) + "\n\nText."
    (chunk,) = AdaptiveChunker(target=200, overlap=0).split(text)[-1:]
    assert chunk.heading == " > ".join(titles[-3:])


def test_a_fence_and_a_table_that_fit_stay_whole() -> None:
    fence = "```python\n" + "    code = 1\n\n" * 6 + "```"
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 6
    text = "Some sentence. " * 5 + f"\n\n{fence}\n\n" + "Another one. " * 6 + f"\n\n{table}\n\nThe end."
    chunks = AdaptiveChunker(target=150, overlap=50).split(text)
    assert any(fence in chunk.text for chunk in chunks)
    assert any(table.strip() in chunk.text for chunk in chunks)


def test_code_keeps_its_indentation_and_is_not_repeated() -> None:
    text = "```\ndef one():\n" + "    return 1\n" * 40 + "```"
    chunks = AdaptiveChunker(target=100, overlap=50).split(text)
    assert all(earlier.end == later.start for earlier, later in itertools.pairwise(chunks))
    assert any(chunk.text.startswith("    return 1") for chunk in chunks)


def test_a_long_table_is_split_between_rows_under_its_header() -> None:
    header = "| model | dimensions |\n|---|---|"
    rows = [f"| model-{number} | {number} |" for number in range(30)]
    text = "# Models\n\nHere they are.\n\n" + "\n".join([header, *rows]) + "\n\nThat is all. They are old.\n"
    chunks = AdaptiveChunker(target=200, overlap=50).split(text)
    in_table = [chunk for chunk in chunks if "| model-" in chunk.text]
    assert len(in_table) > 3
    assert in_table[0].text.count(header) == 1
    for chunk in in_table[1:]:
        assert chunk.text.startswith(f"{header}\n| model-")
    seen = re.findall(r"^\| model-\d+ \|", "\n".join(chunk.text for chunk in chunks), re.MULTILINE)
    assert [row.strip() for row in seen] == [row.rpartition(" |")[0].rpartition(" ")[0] for row in rows]


def test_a_header_that_leaves_no_room_for_a_row_is_not_repeated() -> None:
    header = "| " + "h" * 70 + " | b |\n|---|---|"
    text = header + "\n" + "\n".join(f"| {'x' * 60} | {number} |" for number in range(5))
    chunks = AdaptiveChunker(target=120, overlap=0).split(text)
    assert sum("hhh" in chunk.text for chunk in chunks) == 1
    assert chunks[-1].text == f"| {'x' * 60} | 4 |"


CELLS = st.lists(st.text(st.sampled_from('ab,"\n é'), max_size=20), min_size=3, max_size=3)


@given(st.lists(CELLS, min_size=1, max_size=40), TARGET)
@example([["", "", ""], ["", "a,", "aa,"], ["a" * 30, "b" * 30, "c" * 30], [" ", "aa,", "aaa,"]], 100)
def test_rows_of_a_csv_stay_whole_under_the_first(rows: list[list[str]], target: int) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([["one", "two", "three"], *rows])
    text = clean(written.getvalue()).text
    chunks = AdaptiveChunker(target).split_rows(text)
    assert [chunks[0].start, chunks[-1].end] == [0, len(text)]
    assert all(earlier.end == later.start for earlier, later in itertools.pairwise(chunks))
    for chunk in chunks:
        header = header_of(chunk, text)
        assert len(header) + bool(header) + chunk.end - chunk.start <= target
        assert header in {"", "one,two,three"}
    read = [
        row for chunk in chunks for row in csv.reader(io.StringIO(text[chunk.start : chunk.end], newline=""))
    ]
    if all(len(",".join(row)) < 40 for row in rows):
        assert [row for row in read if row] == [
            row for row in csv.reader(io.StringIO(text, newline="")) if row
        ]
        assert all(header_of(chunk, text) for chunk in chunks[1:])


@given(st.text(st.sampled_from('a,;|"\n'), max_size=12), st.sampled_from(",;|"))
def test_what_is_no_csv_for_python_is_none_here(text: str, delimiter: str) -> None:
    try:
        list(csv.reader(io.StringIO(clean(text).text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        with pytest.raises(IngestError, match="is no CSV"):
            AdaptiveChunker().split_rows(text, delimiter)
    else:
        AdaptiveChunker().split_rows(text, delimiter)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('name\n"open', "a quoted value in row 2 does not end"),
        ('name\none\n"two"\n"three" and,more', "' ' follows a quoted value in row 4"),
    ],
)
def test_a_csv_that_cannot_be_read_says_where(text: str, reason: str) -> None:
    with pytest.raises(IngestError, match=reason):
        AdaptiveChunker().split_rows(text)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_value_of_a_csv_may_have_any_length(quote: str) -> None:
    limit = csv.field_size_limit()
    long = "many words " * (limit // 10)
    text = f"name,story\nfalcon,{quote}{long}{quote}\nphi,short\n"
    chunks = AdaptiveChunker(target=1000).split_rows(text)
    assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == text.rstrip()
    assert chunks[-1].text.endswith("phi,short")
    assert csv.field_size_limit() == limit


def test_a_long_section_leaves_no_short_tail() -> None:
    text = "This sentence has forty-two characters ok. " * 25
    lengths = [len(chunk.text) for chunk in AdaptiveChunker(target=1000, overlap=0).split(text)]
    assert len(lengths) == 2
    assert min(lengths) > 450


def test_long_paragraphs_are_split_between_sentences_but_not_after_abbreviations() -> None:
    text = "The files, e.g. The Journal, stay. " * 30
    assert all(chunk.text.endswith("stay.") for chunk in AdaptiveChunker(target=200).split(text))


def test_a_script_without_spaces_is_split_between_sentences() -> None:
    text = "数据库是一个文件。" * 60
    assert all(chunk.text.endswith("。") for chunk in AdaptiveChunker(target=100).split(text))


def test_what_pages_begin_and_end_with_is_removed_and_listed() -> None:
    pages = [f"ACME report\n\nWhat page {n} says.\n\n  Confidential\n{n} / 4" for n in range(1, 5)]
    cleaned = clean("\f".join(pages))
    assert cleaned.text.split("\f") == [f"\nWhat page {n} says.\n\n" for n in range(1, 4)] + [
        "\nWhat page 4 says."
    ]
    assert {(line.line, line.pages) for line in cleaned.removed} == {
        ("ACME report", 4),
        ("Confidential", 4),
        ("1 / 4", 4),
    }


@pytest.mark.parametrize(
    "pages",
    [
        ["Header\nText one.", "Header\nText two."],
        ["A\nsame line\nb", "C\nsame line\nd", "E\nsame line\nf"],
        ["Step 1\ntext", "Step 2\nmore", "Step 3\nlast"],
        ["7\ntext", "7 b\nmore", "12\nlast"],
    ],
)
def test_other_lines_of_pages_stay(pages: list[str]) -> None:
    text = "\f".join(pages)
    assert clean(text).text == text
    assert clean(text).removed == ()


@given(st.text())
def test_a_text_without_pages_keeps_what_is_not_blank(text: str) -> None:
    text = text.replace("\f", "")
    assert clean(text).text.split() == text.split()
    assert "".join(clean(text).text.split()) == "".join(text.split())


@pytest.mark.parametrize(("target", "overlap"), [(99, 0), (20_001, 0), (900, -1), (900, 4.5), (900.0, 0)])
def test_bounds_are_checked(target: int, overlap: int) -> None:
    with pytest.raises(InvalidArgument):
        AdaptiveChunker(target, overlap)
