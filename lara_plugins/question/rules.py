"""A rule: a name, what it says about a question, and the words that fire it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from lara_plugins.errors import InvalidArgument
from lara_plugins.question.shape import AnswerShape, Decomposition

ASK = "¶"
"""Stands in a reading where an ask begins; patterns write it as ``{ask}``."""

_ANSWER_SHAPES = frozenset(get_args(AnswerShape))
_DECOMPOSITIONS = frozenset(get_args(Decomposition))

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MOST_EXPANSIONS = 1_000


@dataclass(frozen=True, slots=True)
class Rule:
    r"""One line of the rule table.

    Patterns are regular expressions over a *reading*: the question in lower case without
    accents, typing errors mended, quoted words replaced by ``quoted``, one sentence a line and
    ``{ask}`` where an ask begins. ``{name}`` stands for a vocabulary or a phrase of the
    lexicon; built in are ``{ask}``, ``{word}`` (a run of characters without a space) and
    ``{gap}`` (as little as possible, at most 80 characters of the same sentence).

    Args:
        name: what ``QuestionShape.rule`` shows.
        pattern: the words that fire the rule.
        answer_shape: what a question with these words asks for; or
        decomposition: how many asks it holds. A rule says one of the two.
        unless: words that, in the same sentence, keep it from firing.
        needs: words, signs or ``{vocabularies}`` of which a question must hold one for the rule
            to be tried at all; none for a rule that is tried on every question.

    Raises:
        InvalidArgument: the rule says neither or both, or something that there is not.
    """

    name: str
    pattern: str
    answer_shape: AnswerShape | None = None
    decomposition: Decomposition | None = None
    unless: str = ""
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.answer_shape is None) == (self.decomposition is None):
            raise InvalidArgument("rule", self.name, "give either an answer_shape or a decomposition")
        if self.answer_shape is not None and self.answer_shape not in _ANSWER_SHAPES:
            raise InvalidArgument("answer_shape", self.answer_shape, f"give one of {sorted(_ANSWER_SHAPES)}")
        if self.decomposition is not None and self.decomposition not in _DECOMPOSITIONS:
            raise InvalidArgument(
                "decomposition", self.decomposition, f"give one of {sorted(_DECOMPOSITIONS)}"
            )


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule whose patterns are ready to be searched.

    Args:
        rule: the rule.
        pattern: what fires it.
        unless: what keeps it from firing.
        needs: a question without any of these words cannot fire it; empty where any can.
    """

    rule: Rule
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    needs: frozenset[str]

    def find(self, reading: str) -> tuple[int, int] | None:
        """Start and end of the first words in ``reading`` that fire the rule, or None."""
        match = self.pattern.search(reading)
        while match:
            start, end = match.span()
            if start < end and not self._kept_from_firing(reading, start, end):
                return start, end
            match = self.pattern.search(reading, max(end, start + 1))
        return None

    def _kept_from_firing(self, reading: str, start: int, end: int) -> bool:
        if self.unless is None:
            return False
        sentence = reading.rfind("\n", 0, start) + 1, reading.find("\n", end - 1) + 1
        return self.unless.search(reading, sentence[0], sentence[1] or len(reading)) is not None


class PatternCompiler:
    """Turns the patterns of one lexicon into regular expressions.

    Args:
        vocabularies: words and word groups by name; ``*`` in a word stands for any letters.
        phrases: regular expressions by name; they may use vocabularies and other phrases.
        spaced: whether the script puts spaces between words.
    """

    def __init__(
        self, vocabularies: Mapping[str, tuple[str, ...]], phrases: Mapping[str, str], spaced: bool
    ) -> None:
        self._vocabularies = vocabularies
        self._parts = {"ask": ASK, "word": r"[^\s,;:?¶]+", "gap": r"[^\n¶]{0,80}?", **phrases}
        for name, words in vocabularies.items():
            any_of = _any_of(map(fold, words))
            self._parts[name] = rf"(?<!\w)(?:{any_of})(?!\w)" if spaced else f"(?:{any_of})"

    def compile(self, pattern: str) -> re.Pattern[str]:
        """The regular expression that ``pattern`` stands for.

        Raises:
            InvalidArgument: it is no regular expression, or names an unknown vocabulary.
        """
        expanded = pattern
        expansions = 0
        while match := _PLACEHOLDER.search(expanded):
            expansions += 1
            if match[1] not in self._parts or expansions > _MOST_EXPANSIONS:
                raise InvalidArgument(
                    "pattern", pattern, f"{match[0]} names no vocabulary or phrase, or one that holds itself"
                )
            expanded = expanded[: match.start()] + f"(?:{self._parts[match[1]]})" + expanded[match.end() :]
        try:
            return re.compile(fold(expanded, lower=False))
        except re.error as error:
            raise InvalidArgument("pattern", pattern, f"write a regular expression ({error})") from error

    def compile_rule(self, rule: Rule) -> CompiledRule:
        """``rule``, ready to be searched."""
        return CompiledRule(
            rule,
            self.compile(rule.pattern),
            self.compile(rule.unless) if rule.unless else None,
            frozenset(self._needed(rule)),
        )

    def _needed(self, rule: Rule) -> Iterator[str]:
        for word in rule.needs:
            name = _PLACEHOLDER.fullmatch(word)
            if name is None:
                yield fold(word)
            elif name[1] in self._vocabularies:
                # Of a group of words the first one tells, up to a hyphen.
                yield from (_TOKEN.findall(fold(group))[0] for group in self._vocabularies[name[1]])
            else:
                raise InvalidArgument("needs", word, "it names no vocabulary")


def fold(text: str, *, lower: bool = True) -> str:
    """``text`` without accents on Latin letters and, by default, in lower case."""
    if text.isascii():
        return text.lower() if lower else text
    return "".join(fold_character(character, lower=lower) for character in text)


@lru_cache(maxsize=4096)
def fold_character(character: str, *, lower: bool = True) -> str:
    """One character, folded: none for a combining accent or an invisible sign, else exactly one."""
    if "\u0300" <= character <= "\u036f" or unicodedata.category(character) == "Cf":
        return ""
    base = unicodedata.normalize("NFD", _plain(character))[0] if character > "\x7f" else character
    folded = base if base.isascii() and base.isalnum() else character
    lowered = folded.lower() if lower else folded
    return lowered if len(lowered) == 1 else folded


def _plain(character: str) -> str:
    """A styled letter or digit (full width, mathematical bold) as the plain one, else the character."""
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 and character.isalnum() else character


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of some words, the longest first; ``*`` in one stands for any letters.

    Words that begin alike share their beginning: a search then tries a few letters a place and
    not hundreds of words.
    """
    rests: dict[str, list[str]] = {}
    ends = False
    for word in words:
        if word:
            rests.setdefault(word[0], []).append(word[1:])
        else:
            ends = True
    branches = [_letter(first) + _any_of(rest) for first, rest in rests.items()]
    if not branches:
        return ""
    return f"(?:{'|'.join(branches)}){'?' if ends else ''}" if len(branches) > 1 or ends else branches[0]


def _letter(letter: str) -> str:
    return r"\w*" if letter == "*" else re.escape(letter)
