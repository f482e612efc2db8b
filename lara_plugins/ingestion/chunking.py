"""Splitting a text into passages along its own structure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lara_plugins.errors import InvalidArgument

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*?)[ \t]*#*\s*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")

# What may stand between two pieces, finest last. An item is a line of a list or of a table.
_ITEM = re.compile(r"\n(?=[ \t]*(?:[-*+•]|\d+[.)])[ \t]|[ \t]*\|)")
_ABBREVIATION = "".join(
    rf"(?<!\b{word}\.)" for word in (r"e\.g", r"i\.e", "vs", "cf", "Mr", "Mrs", "Dr", "No")
)
_SENTENCE = re.compile(
    _ABBREVIATION + r"(?:(?<=[.!?])|(?<=[.!?][\"'\u201d\u2019)\]]))\s+(?![a-z\s])"
    r"|(?<=[\u3002\uff01\uff1f])"  # full stop, ! and ? of Chinese and Japanese, which need no space
)
_LINE = re.compile(r"\n")
_WORD = re.compile(r"\s+")
_BOUNDARIES = (_ITEM, _SENTENCE, _LINE, _WORD)

_Slice = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A verbatim slice of a text: ``text[start:end]``.

    ``heading`` is the path of headings above it, outermost first, joined by " > ".
    """

    text: str
    heading: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AdaptiveChunker:
    """Splits a text where its author did: at headings, then paragraphs, items, sentences, words.

    A text that fits stays whole. A longer one never mixes two sections, and a section is spread
    evenly, so that no short tail is left over. A word is cut only where it is itself longer
    than a chunk may be (a script without spaces, encoded data).

    Args:
        target: the most characters that a chunk may have, 100 to 20,000. The default, 900, is
            about 200 tokens of English, which every scorer reads whole.
        overlap: at most so many characters of the end of a chunk, from a sentence's or else a
            word's beginning, are repeated at the start of the next; up to half of ``target``.

    Raises:
        InvalidArgument: ``target`` or ``overlap`` is out of its range.
    """

    target: int = 900
    overlap: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.target, int) or not 100 <= self.target <= 20_000:
            raise InvalidArgument("target", self.target, "give 100 to 20000 characters")
        if not isinstance(self.overlap, int) or not 0 <= self.overlap <= self.target // 2:
            raise InvalidArgument("overlap", self.overlap, "give 0 to half of target, in characters")

    @property
    def fingerprint(self) -> str:
        """Identity of the splitting: two chunkers with one fingerprint split alike."""
        return f"adaptive-1 target={self.target} overlap={self.overlap}"

    def split(self, text: str) -> list[Chunk]:
        """The chunks of ``text``, in order; none where it holds only white space and headings."""
        sections = _sections(text)
        if sections and len(text.strip()) <= self.target:
            first, last = sections[0], sections[-1]
            whole = _trimmed(text, first.blocks[0][0], last.blocks[-1][1])
            return [Chunk(text[slice(*whole)], first.heading, *whole)]
        return [
            Chunk(text[start:end], section.heading, start, end)
            for section in sections
            for start, end in self._overlapping(text, self._packed(text, section.blocks))
        ]

    def _packed(self, text: str, blocks: list[_Slice]) -> list[_Slice]:
        """Neighbouring pieces put together, each chunk about as long as the others."""
        limit = self.target - self.overlap
        length = blocks[-1][1] - blocks[0][0]
        even = length / -(-length // limit)
        packed: list[_Slice] = []
        for start, end in (piece for block in blocks for piece in _pieces(text, block, limit)):
            if packed and end - packed[-1][0] <= limit and packed[-1][1] - packed[-1][0] < even:
                packed[-1] = (packed[-1][0], end)
            else:
                packed.append((start, end))
        return packed

    def _overlapping(self, text: str, chunks: list[_Slice]) -> list[_Slice]:
        """Each chunk but the first begins up to ``overlap`` characters earlier."""
        if not self.overlap:
            return chunks
        moved = chunks[:1]
        for (earlier, _), (start, end) in itertools.pairwise(chunks):
            reach = max(earlier, end - self.target, start - self.overlap)
            starts = (
                m.end() for boundary in (_SENTENCE, _WORD) for m in boundary.finditer(text, reach, start)
            )
            moved.append((min(next(starts, start), start), end))
        return moved


@dataclass(frozen=True, slots=True)
class _Section:
    """The blocks under one heading; there is at least one."""

    heading: str
    blocks: list[_Slice]


def _sections(text: str) -> list[_Section]:
    """The sections that have text of their own, with their paragraphs; a fence is one block."""
    sections: list[_Section] = []
    path: list[tuple[int, str]] = []
    blocks: list[_Slice] = []
    fence = ""
    block_open = False
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        heading = None if fence else _HEADING.match(line)
        if heading:
            if blocks:
                sections.append(_Section(" > ".join(title for _, title in path), blocks))
            level = len(heading[1])
            path = [(above, title) for above, title in path if above < level] + [(level, heading[2])]
            blocks, block_open = [], False
            continue
        mark = _FENCE.match(line)
        if line.strip():
            content = (start + len(line) - len(line.lstrip()), start + len(line.rstrip()))
            if block_open:
                blocks[-1] = (blocks[-1][0], content[1])
            else:
                blocks.append(content)
            block_open = True
        elif not fence:
            block_open = False
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
    if blocks:
        sections.append(_Section(" > ".join(title for _, title in path), blocks))
    return sections


def _pieces(text: str, piece: _Slice, limit: int, level: int = 0) -> Iterator[_Slice]:
    """The piece itself if it fits, else what it is made of, down to single words and, last, cuts."""
    start, end = _trimmed(text, *piece)
    if end - start <= limit:
        if start < end:
            yield start, end
    elif level == len(_BOUNDARIES):
        yield from ((cut, min(cut + limit, end)) for cut in range(start, end, limit))
    else:
        for boundary in _BOUNDARIES[level].finditer(text, start, end):
            yield from _pieces(text, (start, boundary.start()), limit, level + 1)
            start = boundary.end()
        yield from _pieces(text, (start, end), limit, level + 1)


def _trimmed(text: str, start: int, end: int) -> _Slice:
    """The slice without white space at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))
