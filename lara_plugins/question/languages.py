"""Which of the supported languages a question is written in."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache

from lara_plugins.question.lexicon import FOLDER, Lexicon
from lara_plugins.question.rules import fold

UNSUPPORTED = "und"
"""ISO 639-2 code for a language that is not determined."""

_READ = 2_000
_FIRST_WORD = 3
"""Votes of the first word: names and titles in another language stand further back."""

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = (
    ("latin", re.compile(r"[A-Za-z\u00c0-\u024f]")),
    ("kana", re.compile(r"[\u3041-\u30ff]")),
    ("han", re.compile(r"[\u3400-\u9fff]")),
    ("devanagari", re.compile(r"[\u0900-\u097f]")),
    ("letter", re.compile(r"[^\W\d_]")),
)
_BY_SCRIPT = {"kana": "ja", "han": "zh", "devanagari": "hi"}


def detect_language(text: str, lexicons: Sequence[Lexicon]) -> str:
    """The language of ``text``: ISO 639-1 code of one of ``lexicons``, or "und".

    Kana, Han and Devanagari tell by themselves. Among languages in Latin script the one with
    the most marker words wins; those of unsupported languages take part, so that they are not
    taken for a supported one. Words that mark no language ("session timeout") count as English.
    """
    text = text[:_READ]
    supported = {lexicon.language for lexicon in lexicons}
    count = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS}
    if 2 * (count["kana"] + count["han"]) >= count["latin"] and count["kana"] + count["han"] > 0:
        found = _BY_SCRIPT["kana" if count["kana"] else "han"]
        return found if found in supported else UNSUPPORTED
    if 2 * count["devanagari"] >= count["latin"] and count["devanagari"] > 0:
        return "hi" if "hi" in supported else UNSUPPORTED
    if 2 * count["latin"] < count["letter"]:
        return next((x.language for x in lexicons if _votes(text, x.markers)), UNSUPPORTED)
    votes = {lexicon.language: _votes(text, lexicon.markers) for lexicon in lexicons}
    others = max((_votes(text, markers) for markers in _unsupported_markers()), default=0)
    best = max(votes.values(), default=0)
    if best < others or (best == 0 and "en" not in supported):
        return UNSUPPORTED
    return next(x for x in sorted(votes, key=lambda x: x != "en") if votes[x] == best)


def _votes(text: str, markers: frozenset[str]) -> int:
    words = [fold(word) for word in _WORD.findall(text)]
    first = sum(word in markers for word in words[:1])
    return first * _FIRST_WORD + sum(word in markers for word in words[1:])


@cache
def _unsupported_markers() -> tuple[frozenset[str], ...]:
    place = FOLDER / "unsupported" / "markers.toml"
    lists: dict[str, list[str]] = tomllib.loads(place.read_text(encoding="utf-8"))
    return tuple(frozenset(map(fold, words)) for words in lists.values())
