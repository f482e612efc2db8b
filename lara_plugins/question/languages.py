"""Which of the supported languages a question is written in."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache

from lara_plugins.question.lexicon import FOLDER, Lexicon
from lara_plugins.question.rules import fold

UNSUPPORTED = "und"
"""ISO 639-2 code for a language that is not determined."""

_READ = 2_000
_MARKER, _CONTENT = 2, 1
"""Votes of a frequent word or its slip, and of a word of a vocabulary: names travel between languages.

A slip that is a word of another language ("wat") counts as one of a vocabulary."""
_FIRST_WORD = 3
"""How many times the first word counts: names and titles in another language stand further back."""

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = (
    ("latin", re.compile(r"[A-Za-z\u00c0-\u024f]")),
    ("kana", re.compile(r"[\u3041-\u30ff]")),
    ("han", re.compile(r"[\u3400-\u9fff]")),
    ("devanagari", re.compile(r"[\u0900-\u097f]")),
    ("letter", re.compile(r"[^\W\d_]")),
)
_BY_SCRIPT = {"kana": "ja", "han": "zh", "devanagari": "hi"}


class LanguageDetector:
    """Tells the languages of some lexicons apart.

    Kana, Han and Devanagari tell by themselves. Among languages in Latin script the one with
    the most marker words, and words of its vocabularies, wins; those of unsupported languages
    take part, so that they are not taken for a supported one. Between languages that are left
    equal the ends of words decide, then the order; so do words that mark no language at all,
    and "session timeout" is English.

    Args:
        lexicons: one a language.
    """

    def __init__(self, lexicons: Sequence[Lexicon]) -> None:
        supported = {lexicon.language: lexicon.markers for lexicon in lexicons}
        # English first, then as given: of two languages with equal votes the earlier wins.
        self._languages = sorted(supported, key=lambda language: language != "en")
        self._lexicons = {lexicon.language: lexicon for lexicon in lexicons}
        self._votes_of: dict[str, list[tuple[str, int]]] = {}
        for language, markers in (*supported.items(), *_unsupported_markers().items()):
            self._count(markers, language, _MARKER)
        known = frozenset(self._votes_of)
        for lexicon in lexicons:
            slips = frozenset(fold(slip) for slip, word in lexicon.typos.items() if slip != word)
            self._count(slips - known, lexicon.language, _MARKER)
            self._count(slips & known, lexicon.language, _CONTENT)
            self._count(lexicon.content_words - lexicon.markers, lexicon.language, _CONTENT)

    def detect(self, text: str) -> str:
        """The language of ``text``: ISO 639-1 code of one of the lexicons, or "und"."""
        text = text[:_READ]
        if text.isascii():
            return self._by_markers(text)
        count = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS}
        if 2 * (count["kana"] + count["han"]) >= count["latin"] and count["kana"] + count["han"] > 0:
            return self._if_supported(_BY_SCRIPT["kana" if count["kana"] else "han"])
        if 2 * count["devanagari"] >= count["latin"] and count["devanagari"] > 0:
            return self._if_supported("hi")
        if "¿" in text:
            return self._if_supported("es")
        if 2 * count["latin"] < count["letter"]:
            votes = self._votes(text)
            return next((language for language in self._languages if language in votes), UNSUPPORTED)
        return self._by_markers(text)

    def _count(self, words: Iterable[str], language: str, votes: int) -> None:
        for word in words:
            # A letter by itself is as often a name ("plan A", "y/n").
            self._votes_of.setdefault(word, []).append((language, votes if len(word) > 1 else _CONTENT))

    def _if_supported(self, language: str) -> str:
        return language if language in self._languages else UNSUPPORTED

    def _by_markers(self, text: str) -> str:
        votes = self._votes(text)
        best = max(votes.values(), default=0)
        winners = [language for language in self._languages if votes.get(language, 0) == best]
        if not winners or (best == 0 and "en" not in winners):
            return UNSUPPORTED
        if len(winners) == 1:
            return winners[0]
        words = _WORD.findall(fold(text))
        return max(winners, key=lambda language: _told(words, self._lexicons[language].ending))

    def _votes(self, text: str) -> dict[str, int]:
        votes: dict[str, int] = {}
        times = _FIRST_WORD
        for word in _WORD.findall(fold(text)):
            for language, count in self._votes_of.get(word, ()):
                votes[language] = votes.get(language, 0) + times * count
            times = 1
        return votes


def _told(words: Iterable[str], ending: re.Pattern[str]) -> int:
    """What the ends of some words tell of a language: the letters of the longest of each word."""
    return sum(len(match[0]) for word in words if (match := ending.search(word)))


@cache
def _unsupported_markers() -> dict[str, frozenset[str]]:
    place = FOLDER / "unsupported" / "markers.toml"
    lists: dict[str, list[str]] = tomllib.loads(place.read_text(encoding="utf-8"))
    return {f"{UNSUPPORTED}-{language}": frozenset(map(fold, words)) for language, words in lists.items()}
