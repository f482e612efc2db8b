"""Splitting a text into chunks along its own structure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lara_plugins.errors import IngestError, InvalidArgument
from lara_plugins.ingestion.cleaning import LONGEST_BLANK, clean
from lara_plugins.ingestion.structure import Block, Section, sections

# What may stand between two pieces, finest last. An item is a line of a list or of a table.
_PARAGRAPH = re.compile(r"\n(?:[^\S\n]*\n)+")
_ITEM = re.compile(r"\n(?=[ \t]*(?:[-*+•]|\d+[.)])[ \t]|[ \t]*\|)")
_ABBREVIATION = "".join(
    rf"(?<!\b{word}\.)" for word in (r"e\.g", r"i\.e", "vs", "cf", "Mr", "Mrs", "Dr", "No")
)
_SENTENCE = re.compile(
    _ABBREVIATION + r"(?:(?<=[.!?])|(?<=[.!?][\"'\u201d\u2019)\]]))\s+(?![a-z\s])"
    r"|(?<=[\u3002\uff01\uff1f])\s*"  # full stop, ! and ? of Chinese and Japanese, which need no space
)
_LINE = re.compile(r"\n")
_WORD = re.compile(r"\s+")
_SENTENCES = (_PARAGRAPH, _ITEM, _SENTENCE)
"""What a sentence may begin after."""
_PROSE = (*_SENTENCES, _LINE, _WORD)
_CODE = (_PARAGRAPH, _LINE, _WORD)

_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a cleaned text.

    ``text`` is what ``cleaned[start:end]`` says under its headings: without the headings that
    ``heading`` holds and blank lines at its ends and, in the middle of a table, under the table's
    header once more.

    Args:
        text: what is read, embedded and quoted.
        heading: the path of headings above it, outermost first, joined by " > ".
        start: where its span begins in the cleaned text.
        end: where its span ends; the next chunk's span begins there or, with an overlap, before.
        context: what somebody says of its place in the whole text; embedded and read with it.
    """

    text: str
    heading: str
    start: int
    end: int
    context: str = ""


@dataclass(frozen=True, slots=True)
class AdaptiveChunker:
    """Splits a text where its author did: at headings, then paragraphs, items, sentences, words.

    A text that fits stays whole, and so does a section with all that is below it. Anything longer
    never mixes two sections, and a section is spread evenly, so that no short tail is left over.
    Code fences and tables that fit stay whole; a longer table is split between rows, and its
    header stands above each group of them, unless header and row together are too long. A word is
    cut only where it is itself longer than a chunk may be (a script without spaces, encoded data).

    Spans refer to the cleaned text, which `clean` gives, and cover it without gaps: white space
    belongs to what stands before it.

    Args:
        target: the most characters that a chunk's span may have, with the header of a table that
            is repeated above it; 100 to 20,000. 1,000 are about 230 tokens of English.
        overlap: at most so many characters of the end of a chunk, from the earliest beginning of a
            sentence in them, are repeated at the start of the next, and at most half of ``target``.
            Rows and code are not repeated.

    Raises:
        InvalidArgument: ``target`` or ``overlap`` is out of its range.
    """

    target: int = 1000
    overlap: int = 300

    def __post_init__(self) -> None:
        if not isinstance(self.target, int) or not 100 <= self.target <= 20_000:
            raise InvalidArgument("target", self.target, "give 100 to 20000 characters")
        if not isinstance(self.overlap, int) or self.overlap < 0:
            raise InvalidArgument("overlap", self.overlap, "give a whole number of characters, 0 or more")

    @property
    def fingerprint(self) -> str:
        """Identity of the splitting: two chunkers with one fingerprint split alike."""
        return f"adaptive-2 target={self.target} overlap={self.overlap}"

    def split(self, text: str) -> list[Chunk]:
        """The chunks of a Markdown or plain text, in order; none where it is blank.

        Spans refer to ``clean(text).text``.
        """
        cleaned = clean(text).text
        if not cleaned:
            return []
        return [chunk for group in self._groups(sections(cleaned)) for chunk in self._split(cleaned, group)]

    def split_rows(self, text: str, delimiter: str = ",") -> list[Chunk]:
        """The chunks of a CSV text, in groups of rows, each under the first row; none where it is blank.

        Spans refer to ``clean(text).text``.

        Raises:
            IngestError: a quoted value does not end, or is followed by something.
        """
        cleaned = clean(text).text
        if not cleaned:
            return []
        rows = _rows(cleaned, delimiter)
        table = Block(0, len(cleaned), code=True, header_end=rows[0])
        return self._spread(cleaned, 0, "", 0, list(_row_pieces(cleaned, table, rows[:-1], self.target)))

    def _groups(self, found: Sequence[Section]) -> Iterator[Section]:
        """The sections, one that fits with all that is below it as one."""
        place = 0
        while place < len(found):
            section, after = found[place], place + 1
            for depth, head in enumerate(section.heads):
                below = next(
                    (n for n in range(place + 1, len(found)) if found[n].heads[0].level <= head.level),
                    len(found),
                )
                if found[below - 1].end - section.start <= self.target:
                    section = Section(section.start, section.heads[: depth + 1], found[below - 1].end)
                    after = below
                    break
            yield section
            place = after

    def _split(self, text: str, section: Section) -> list[Chunk]:
        head = section.heads[-1]
        if section.end - section.start <= self.target:
            return [Chunk(_shown(text, head.end, section.end), head.path, section.start, section.end)]
        text_start = head.end
        first, *others = section.blocks
        above = first.start - section.start
        if above > self.target - self.target // 2:  # so much can only be text itself
            above, text_start = 0, section.start
            first = Block(section.start, first.end, first.code)
        pieces = list(_pieces(text, first, self.target - above))
        pieces += (piece for block in others for piece in _pieces(text, block, self.target))
        return self._spread(text, section.start, head.path, text_start, pieces)

    def _spread(
        self, text: str, start: int, heading: str, text_start: int, pieces: Sequence[_Piece]
    ) -> list[Chunk]:
        """Neighbouring pieces put together, each chunk about as long as the others."""
        length = pieces[-1].end - start
        overlap = min(self.overlap, self.target // 2)
        chunks = max(1, -(-(length - overlap) // (self.target - overlap)))
        even = overlap + (length - overlap) / chunks
        found: list[Chunk] = []
        place = 0
        while place < len(pieces):
            first = place
            header = pieces[first].header
            room = self.target - len(header) - 1 if header else self.target
            if pieces[first].end - start > room:
                header, room = "", self.target
            end = pieces[first].end
            place += 1
            while place < len(pieces) and pieces[place].end - start <= room and end - start < even:
                end = pieces[place].end
                place += 1
            shown = _shown(text, max(start, text_start), end)
            found.append(Chunk(f"{header}\n{shown}" if header else shown, heading, start, end))
            if place < len(pieces):
                earliest = max(start + 1, end - overlap, pieces[place].end - self.target)
                start = _overlapping(text, pieces[first:place], pieces[place], earliest)
        return found


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of text that is not split any more, with the white space after it.

    Args:
        start: where it begins.
        end: where the next begins.
        opens: whether a sentence begins with it.
        code: whether no sentence begins inside it.
        header: the header of the table whose rows these are, where it is not in the piece itself.
    """

    start: int
    end: int
    opens: bool = False
    code: bool = False
    header: str = ""

    def sentences(self, text: str, earliest: int) -> Iterator[int]:
        """Where sentences begin in it, from ``earliest``, in order."""
        if self.opens and self.start >= earliest:
            yield self.start
        if not self.code and self.end > earliest:
            begins = {
                found.end()
                for boundary in _SENTENCES
                for found in boundary.finditer(text, max(self.start, earliest - LONGEST_BLANK - 1), self.end)
            }
            yield from sorted(place for place in begins if max(earliest, self.start + 1) <= place < self.end)


def _overlapping(text: str, chunk: Sequence[_Piece], following: _Piece, earliest: int) -> int:
    """Where the chunk after ``chunk`` begins: with a sentence not before ``earliest``, if there is one."""
    if following.header:  # rows are read under their header, not under what stands above it
        return following.start
    begins = (place for piece in chunk for place in piece.sentences(text, earliest))
    return next(begins, following.start)


def _pieces(text: str, block: Block, limit: int) -> Iterator[_Piece]:
    """The block itself if it fits, else what it is made of."""
    if block.end - block.start <= limit:
        yield _Piece(block.start, block.end, opens=True, code=block.code)
    elif block.header_end is not None:
        lines = [found.end() for found in _LINE.finditer(text, block.header_end, block.end)]
        yield from _row_pieces(
            text, block, [end for end in (block.header_end, *lines) if end < block.end], limit
        )
    else:
        yield from _parts(text, block.start, block.end, limit, _CODE if block.code else _PROSE, opens=True)


def _parts(
    text: str, start: int, end: int, limit: int, boundaries: Sequence[re.Pattern[str]], *, opens: bool
) -> Iterator[_Piece]:
    """A stretch in pieces no longer than ``limit``, down to single words and, last, cuts."""
    code = _SENTENCE not in boundaries
    if end - start <= limit:
        yield _Piece(start, end, opens, code)
    elif not boundaries:
        yield from _cuts(text, start, end, limit)
    else:
        boundary, *finer = boundaries
        for found in boundary.finditer(text, start, end):
            if found.end() < end and text[start : found.start()].strip():
                yield from _parts(text, start, found.end(), limit, finer, opens=opens)
                start, opens = found.end(), boundary in _SENTENCES
        yield from _parts(text, start, end, limit, finer, opens=opens)


def _cuts(text: str, start: int, end: int, limit: int) -> Iterator[_Piece]:
    """A word in pieces of ``limit`` characters; none of them is only white space."""
    last = start + len(text[start:end].rstrip()) - 1
    while end - start > limit:
        cut = min(start + limit, last)
        yield _Piece(start, cut)
        start = cut
    yield _Piece(start, end)


def _row_pieces(text: str, table: Block, starts: Sequence[int], limit: int) -> Iterator[_Piece]:
    """The rows of a table, the first one with the header; ``starts`` are where rows begin after it."""
    header = text[table.start : table.header_end].strip("\r\n")
    first = table.start
    first_end = starts[1] if len(starts) > 1 else table.end
    if table.header_end and first_end - first > limit:
        yield from _parts(text, first, table.header_end, limit, _CODE, opens=True)
        first = table.header_end
    for start, end in itertools.pairwise([first, *starts[1:], table.end]):
        if end - start <= limit:
            repeated = header if start != table.start and len(header) < limit - (end - start) else ""
            yield _Piece(start, end, opens=start == table.start, code=True, header=repeated)
        else:
            yield from _parts(text, start, end, limit, _CODE, opens=False)


def _rows(text: str, delimiter: str) -> list[int]:
    """Where the rows of a CSV text end.

    They are what ``csv.reader`` (strict) reads; it is not asked, since the longest value that it
    takes is one setting for the whole process.
    """
    value = re.compile(rf'"[^"]*+(?:""[^"]*+)*+"|(?!")[^{re.escape(delimiter)}\n]*+')
    ends: list[int] = []
    place = 0
    while place < len(text):
        found = value.match(text, place)
        if found is None:
            raise IngestError(f"is no CSV: a quoted value in row {len(ends) + 1} does not end")
        place = found.end() + 1
        after = text[found.end() : place]
        if after == "\n":
            ends.append(place)
        elif after not in {delimiter, ""}:
            raise IngestError(f"is no CSV: {after!r} follows a quoted value in row {len(ends) + 1}")
    return ends if ends[-1:] == [len(text)] else [*ends, len(text)]


def _shown(text: str, start: int, end: int) -> str:
    """The stretch without blank lines at its ends; the first line keeps its indentation."""
    return _BLANK_LINES.sub("", text[start:end].rstrip())
