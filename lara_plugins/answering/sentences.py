"""Where the sentences of a text are, as offsets, so that each can be quoted verbatim.

The text is cut in two steps: into blocks (paragraphs, list items, headings, table rows, fenced
code), which end wherever their lines say so, and each block of prose into sentences at its marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

LONGEST_SENTENCE = 600
"""Characters after which a run of text without a sentence end is cut at a space."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEVER_LAST = _words(
    "dr mr mrs ms prof rev gen col capt lt sgt maj gov sen rep hon st mt ft vs cf viz e.g i.e eg ie ca "
    "approx eqs vols art al ed eds dept univ est resp incl bzw ggf vgl abs nr z.b d.h u.a "
    "sr sra mme mlle"
)
"""Abbreviations that stand before the word they belong to, so that no sentence ends with them."""

BEFORE_NUMBER = _words("no nos p pp fig figs eq ch sec vol")
"""Abbreviations that stand before a number; with anything else behind them they end a sentence."""

MAY_BE_LAST = _words(
    "u.s u.k u.n e.u u.s.a d.c a.m p.m b.c a.d b.c.e c.e inc ltd co corp etc jr ph.d m.d b.a m.a "
    "jan feb mar apr jun jul aug sep sept oct nov dec usw"
)
"""Abbreviations that end a sentence where the next word is one that begins sentences."""

OPENERS = _words(
    "the it he she they this these those that there in on at by for from with after before when while as a "
    "an his her its their we you i if although though however but and since during under most many some all "
    "der die das es er sie le la les il elle el los las"
)
"""Words that begin sentences, and hardly ever follow an abbreviation with a capital letter."""

_END = re.compile(
    r"(?P<cjk>[。！？｡…]+[」』”’）)\]》】]*)"
    r"|(?P<mark>[.!?…؟।]+)"
    r"(?P<closers>(?:[\"'”’»)\]]|\s''|\[[\w ,]{1,24}\])*)"
    r"(?=\s|$)"
)
_WORD_BEFORE = re.compile(r"[\w.]+$")
_WORD_AFTER = re.compile(r"[\s\"'“‘«(\[`]*(\w+)?")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•‣◦▪–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+\S")
_ITEM_MARKER = re.compile(r"(?:[-*+•‣◦▪–]|\(?\d{1,3}[.)])\s+(?=\S)")
_ITEM_NUMBER = re.compile(r"\s*(?:\(?\d{1,3}|\(?[a-zA-Z])")
_OWN_BLOCK = re.compile(r"\s*(?:#{1,6}\s|\||(?:={3,}|-{3,}|\*{3,})\s*$)")
_FENCE = re.compile(r"^[ \t>]*(?:```+|~~~+)(?P<language>[^\n`]*?)[ \t]*$", re.MULTILINE)
_HAS_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text: ``text[start:end] == quote``, without white space at its ends."""

    start: int
    end: int
    quote: str

    @property
    def bare(self) -> Sentence:
        """The sentence without the bullet or number of the list item that it begins."""
        marker = _ITEM_MARKER.match(self.quote)
        begin = marker.end() if marker else 0
        return Sentence(self.start + begin, self.end, self.quote[begin:])


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of ``text``, in order, none of them blank and none overlapping.

    A text without a sentence end is one sentence, cut at spaces every ``LONGEST_SENTENCE``
    characters. Headings, list items, table rows and blocks of fenced code are sentences of their
    own; a line break within a paragraph ends nothing. Pieces without a letter or digit (rules,
    table borders) are left out.

    Args:
        text: anything, in any script; marks of Latin, Chinese, Japanese, Arabic and Devanagari
            script end sentences.
    """
    sentences: list[Sentence] = []
    for start, end, prose in _blocks(text):
        cuts = _sentence_ends(text, start, end) if prose else [end]
        for begin, cut in pairwise([start, *cuts]):
            sentences += _pieces(text, begin, cut)
    return sentences


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start, end and whether it is prose of each block, in order; together they are the text."""
    position = 0
    for start, end in _fenced(text):
        yield from _blocks_of_prose(text, position, start)
        yield start, end, False
        position = end
    yield from _blocks_of_prose(text, position, len(text))


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each fenced block of code.

    A closing fence names no language. So a fence that does, after an open one that does not,
    shows that the open one closes a block which a chunker has cut; and a last fence is an
    opening one only if it names its language.
    """
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None or fence["language"]:
            opened = fence
        else:
            yield opened.start(), fence.end()
            opened = None
    if opened is not None and opened["language"]:
        yield opened.start(), len(text)


def _blocks_of_prose(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """The paragraphs, list items, headings and table rows between two offsets."""
    position = start
    for line in text[start:end].splitlines(keepends=True):
        after = position + len(line)
        alone = not line.strip() or _OWN_BLOCK.match(line) is not None
        if start < position and (alone or _LIST_ITEM.match(line)):
            yield start, position, True
            start = position
        if alone:
            yield start, after, False
            start = after
        position = after
    if start < end:
        yield start, end, True


def _sentence_ends(text: str, start: int, end: int) -> list[int]:
    """The offsets at which the sentences of a block of prose end, the block's own end last."""
    number = _ITEM_NUMBER.match(text, start, end)
    first = number.end() + 1 if number and _LIST_ITEM.match(text, start, end) else start
    ends = [
        match.end()
        for match in _END.finditer(text, first, end)
        if match["cjk"] or _is_end(text, start, match)
    ]
    if not ends or text[ends[-1] : end].strip():
        ends.append(end)
    return ends


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a mark followed by white space ends a sentence."""
    after = _WORD_AFTER.match(text, match.end(), match.end() + 40)
    following = (after[1] or "") if after else ""
    if following[:1].islower():
        return False
    before = _WORD_BEFORE.search(text, max(start, match.start() - 20), match.start())
    if match["mark"] != "." or before is None:  # a word does not stand directly before the mark
        return True
    word = before[0].lower()
    if word in BEFORE_NUMBER and following[:1].isdigit():
        return False
    if match["closers"]:
        return True
    if word in NEVER_LAST:
        return False
    if word in MAY_BE_LAST or _is_initial(before[0]):
        return not following or following.lower() in OPENERS
    return True


def _is_initial(word: str) -> bool:
    """Whether a word is an initial: the J of "J. K. Rowling", the K.L of "K.L. Saigal"."""
    return all(len(part) == 1 and part.isupper() for part in word.split("."))


def _pieces(text: str, start: int, end: int) -> Iterator[Sentence]:
    """The sentence between two offsets, in pieces where it is longer than a sentence may be."""
    while start < end:
        cut = end
        if end - start > LONGEST_SENTENCE:
            limit = start + LONGEST_SENTENCE
            space = max(text.rfind("\n", start + 1, limit), text.rfind(" ", start + 1, limit))
            cut = space if space > start else limit
        piece = text[start:cut]
        quote = piece.strip()
        if _HAS_WORD.search(quote):
            begin = start + len(piece) - len(piece.lstrip())
            yield Sentence(begin, begin + len(quote), quote)
        start = cut
