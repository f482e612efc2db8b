"""What a Markdown text is made of: sections under their headings, and the blocks of each.

The parser is markdown-it-py, which follows the CommonMark specification; only its block rules run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

HEADING_LIMIT = 300
"""Characters that a heading path may have; the innermost headings are kept."""

_LINE_END = re.compile(r"\r\n?|\n")  # as the parser counts lines
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LONGEST_TITLE = 200
"""A longer "heading" is a paragraph that somebody drew a line under."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list, fence or table with all up to the next one.

    Args:
        start: where it begins.
        end: where the next begins.
        code: whether its lines are verbatim, so that no sentence begins in them.
        header_end: where a table's rows begin, after its header; None for other blocks.
    """

    start: int
    end: int
    code: bool = False
    header_end: int | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """A heading that stands directly above a section's text: its level, its path, and where it ends."""

    level: int
    path: str
    end: int


@dataclass(slots=True)
class Section:
    """A text with the headings directly above it, outermost first; a text under none has one of level 0."""

    start: int
    heads: list[Head]
    end: int = 0
    blocks: list[Block] = field(default_factory=list)


def sections(text: str) -> list[Section]:
    """The sections of ``text``, which cover it without gaps; each has at least one block.

    A heading that heads nothing belongs to the text of the section after it, or of the one before
    it at the end.
    """
    matter = _FRONT_MATTER.match(text)
    offset = matter.end() if matter else 0
    marks = _marks(text, offset)
    if matter or not marks:
        marks.insert(0, _Mark(0, Block(0, 0, code=True)))
    return _assembled(text, marks)


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where a heading or a block begins."""

    start: int
    block: Block | None = None
    level: int = 0
    title: str = ""


def _marks(text: str, offset: int) -> list[_Mark]:
    """The headings and blocks of the outermost level from ``offset``, in order."""
    lines = [offset, *(end.end() for end in _LINE_END.finditer(text, offset)), len(text)]
    tokens = _parser().parse(text[offset:])
    marks: list[_Mark] = []
    for place, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        start = lines[token.map[0]] if marks else offset
        title = " ".join(tokens[place + 1].content.split()) if token.type == "heading_open" else ""
        if title and len(title) <= _LONGEST_TITLE:
            marks.append(_Mark(start, level=int(token.tag[1:]), title=title))
        else:
            marks.append(_Mark(start, _block(token, start, lines)))
    return marks


def _block(token: Token, start: int, lines: Sequence[int]) -> Block:
    """The block that a token opens; its end is not known yet."""
    if token.type == "table_open" and token.map:
        return Block(start, start, code=True, header_end=lines[token.map[0] + 2])
    return Block(start, start, code=token.type in {"fence", "code_block", "html_block"})


def _assembled(text: str, marks: Sequence[_Mark]) -> list[Section]:
    """Sections out of headings and blocks."""
    found: list[Section] = []
    open_titles: list[tuple[int, str]] = []
    run: list[_Mark] = []  # the headings since the last block
    ends = [mark.start for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        if mark.block is None:
            run.append(mark)
            continue
        if run or not found:
            found.append(_section(run, open_titles, mark.start))
            run = []
        found[-1].blocks.append(Block(mark.start, end, mark.block.code, mark.block.header_end))
    if run and found:
        found[-1].blocks.append(Block(run[0].start, len(text)))
    elif run:
        found.append(Section(0, [Head(0, "", 0)], blocks=[Block(0, len(text))]))
    for section, following in zip(found, [*found[1:], None], strict=True):
        section.end = following.start if following else len(text)
    return found


def _section(run: Sequence[_Mark], open_titles: list[tuple[int, str]], text_start: int) -> Section:
    """A section under a run of headings; ``open_titles``, those above it, is brought up to date."""
    if not run:
        return Section(text_start, [Head(0, "", text_start)])
    heads: list[Head] = []
    starts: list[int] = []
    text_from = text_start  # or from the first heading of the run that heads nothing
    ends = [mark.start for mark in run[1:]] + [text_start]
    for mark, end in zip(run, ends, strict=True):
        while heads and heads[-1].level >= mark.level:
            heads.pop()
            text_from = min(text_from, starts.pop())
        open_titles[:] = [(level, title) for level, title in open_titles if level < mark.level]
        open_titles.append((mark.level, mark.title))
        heads.append(Head(mark.level, _path(open_titles), min(end, text_from)))
        starts.append(mark.start)
    return Section(run[0].start, heads)


def _path(titles: Sequence[tuple[int, str]]) -> str:
    """The titles from the outermost inwards, as many of the inner ones as the limit allows."""
    path = titles[-1][1]
    for _, title in reversed(titles[:-1]):
        if len(longer := f"{title} > {path}") > HEADING_LIMIT:
            break
        path = longer
    return path


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415

    return MarkdownIt("commonmark").enable("table").disable("inline")
