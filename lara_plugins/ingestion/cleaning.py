"""Taking from a text what its author never wrote: page headers and footers, and endless white space."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PAGE_BREAK = "\f"
REPEATED = 3
"""On so many pages a line must stand before it is taken for a header or footer."""

EDGE = 3
"""So many lines of a page's beginning, and of its end, may be headers and footers."""

LONGEST_BLANK = 49
"""Longer runs of white space are shortened, so that each fits into a chunk with what it follows."""

_BLANK = re.compile(rf"\s{{{LONGEST_BLANK + 1},}}")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Removed:
    """A page header or footer that was removed, as it stood on the first of so many pages."""

    line: str
    pages: int


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text that spans refer to, and what was removed from it."""

    text: str
    removed: tuple[Removed, ...] = ()


def clean(text: str) -> Cleaned:
    """The text without page headers and footers, endless white space, and white space at its end.

    A text with no page breaks (form feeds) keeps every character but for that white space.
    """
    pages, removed = without_repeated_lines(text.split(PAGE_BREAK))
    return Cleaned(_BLANK.sub(_shortened, PAGE_BREAK.join(pages)).rstrip(), removed)


def without_repeated_lines(pages: Sequence[str]) -> tuple[list[str], tuple[Removed, ...]]:
    """The pages without the lines that three of them or more begin or end with.

    Blank lines aside, the same line must be the first, or the last, of these pages. A line
    without letters may hold the page's own number, as in "- 7 -": it counts as the same where
    the number grows with the pages.
    """
    if len(pages) < REPEATED:
        return list(pages), ()
    kept = [page.splitlines(keepends=True) for page in pages]
    found: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for edge in (_first, _last):
        for _ in range(EDGE):
            places = [edge(lines) for lines in kept]
            keys = [
                "" if place is None else _key(lines[place].strip(), number)
                for number, (lines, place) in enumerate(zip(kept, places, strict=True))
            ]
            repeated = {key for key, count in Counter(filter(None, keys)).items() if count >= REPEATED}
            if not repeated:
                break
            for lines, place, key in zip(kept, places, keys, strict=True):
                if place is not None and key in repeated:
                    found[key] += 1
                    shown.setdefault(key, lines.pop(place).strip())
    removed = tuple(Removed(shown[key], count) for key, count in found.items())
    return ["".join(lines) for lines in kept], removed


def _first(lines: Sequence[str]) -> int | None:
    return next((place for place, line in enumerate(lines) if line.strip()), None)


def _last(lines: Sequence[str]) -> int | None:
    return next((place for place in reversed(range(len(lines))) if lines[place].strip()), None)


def _key(line: str, page: int) -> str:
    """What two lines have in common that are one header; a page number counts from its own page."""
    if any(character.isalpha() for character in line):
        return line
    own: Callable[[re.Match[str]], str] = lambda number: f"<{int(number[0]) - page}>"  # noqa: E731
    return _NUMBER.sub(own, line, count=1)


def _shortened(blank: re.Match[str]) -> str:
    """A run of white space that is as blank but shorter; line and page breaks are kept first."""
    breaks = "".join(character for character in blank[0] if character in "\n\f")
    return breaks[:LONGEST_BLANK] or blank[0][:LONGEST_BLANK]
