"""What is known of a language: its words, its phrases and its ordered rules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from lara_plugins.errors import InvalidArgument
from lara_plugins.question.rules import CompiledRule, PatternCompiler, Rule, fold

FOLDER = Path(__file__).with_name("lexicons")
"""Where the lexicons of the package lie."""

_KINDS = {
    "language": "a text",
    "spaced": "true or false",
    "markers": "a list of texts",
    "mend": "a list of texts",
    "typos": "a table of texts",
    "contractions": "a table of texts",
    "vocabularies": "a table of lists of texts",
    "phrases": "a table of texts",
    "rules": "a list of tables",
}
"""The fields of a lexicon's file, and of what kind each is."""

_LANGUAGE_CODE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*", re.IGNORECASE)
_RULE_NEEDS = {"name", "pattern"}
_RULE_FIELDS = _RULE_NEEDS | {"answer_shape", "decomposition", "unless", "needs"}
_MEND_FROM = 4

NEVER = r"(?!)"
"""A pattern that matches nothing."""


class Openings(NamedTuple):
    """The phrases of a lexicon that say where asks begin; see ``Lexicon``."""

    opening: re.Pattern[str]
    request: re.Pattern[str]
    start: re.Pattern[str]
    further: re.Pattern[str]
    indirect: re.Pattern[str]


@dataclass(frozen=True)
class Lexicon:
    """One language. Its file under ``lexicons/`` holds the same fields.

    Args:
        language: ISO 639-1 code; of "pt-BR" or "PT" the language alone is kept, "pt".
        rules: the rule table; the first rule that fires decides.
        spaced: whether words are separated by spaces.
        markers: frequent words by which the language is recognised.
        mend: words in which one slip of the keyboard is mended.
        typos: misspelt word to right word, for slips that ``mend`` does not see.
        contractions: short form to full form ("isn't" to "is not").
        vocabularies: lists of words by the name that patterns use.
        phrases: regular expressions by the name that patterns use. Six are also read by
            themselves: ``opening`` (skipped before an ask), ``request`` (skipped too, and an ask
            follows), ``start`` (begins an ask at the head of a sentence), ``further`` (the words
            after which another ask begins within a sentence), ``indirect`` (the words after which
            an ask begins where the others find none), ``ending`` (ends of words by which the
            language is recognised where frequent words leave several; a long one tells more).

    Raises:
        InvalidArgument: ``language`` is no language code.
    """

    language: str
    rules: tuple[Rule, ...]
    spaced: bool = True
    markers: frozenset[str] = frozenset()
    mend: tuple[str, ...] = ()
    typos: Mapping[str, str] = field(default_factory=dict)
    contractions: Mapping[str, str] = field(default_factory=dict)
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "language", primary_language(self.language))

    def with_rules(self, *rules: Rule) -> Lexicon:
        """A copy in which ``rules`` are tried before all others."""
        return replace(self, rules=(*rules, *self.rules))

    @cached_property
    def shape_rules(self) -> tuple[CompiledRule, ...]:
        """The rules that say what is asked for, ready to be searched."""
        return self._compiled(rule for rule in self.rules if rule.answer_shape is not None)

    @cached_property
    def decomposition_rules(self) -> tuple[CompiledRule, ...]:
        """The rules that say how many asks there are, ready to be searched."""
        return self._compiled(rule for rule in self.rules if rule.decomposition is not None)

    def load(self) -> None:
        """Compile everything now, so that no question pays for it.

        Raises:
            InvalidArgument: a pattern is wrong.
        """
        _ = self.shape_rules, self.decomposition_rules, self.substitutes, self.openings, self.ending

    @cached_property
    def content_words(self) -> frozenset[str]:
        """The single words of the vocabularies, which tell of a language too."""
        words = (fold(word) for words in self.vocabularies.values() for word in words)
        return frozenset(word for word in words if word.isalpha())

    @cached_property
    def substitutes(self) -> dict[str, str]:
        """What is read in the place of a word: mended slips and full forms."""
        full = {fold(short): fold(long) for short, long in {**self.typos, **self.contractions}.items()}
        slips = {
            slip: full.get(word, word) for word in map(fold, reversed(self.mend)) for slip in _slips(word)
        }
        return {slip: word for slip, word in slips.items() if slip not in self._mended} | full

    @cached_property
    def _mended(self) -> frozenset[str]:
        return frozenset(map(fold, self.mend))

    @cached_property
    def openings(self) -> Openings:
        """The phrases with which asks begin, ready to be searched."""
        return Openings(*(self._compiler.compile(self.phrases.get(name, NEVER)) for name in Openings._fields))

    @cached_property
    def ending(self) -> re.Pattern[str]:
        """The ends of words that tell of the language, ready to be searched."""
        return self._compiler.compile(f"(?:{self.phrases.get('ending', NEVER)})$")

    def _compiled(self, rules: Iterable[Rule]) -> tuple[CompiledRule, ...]:
        return tuple(self._compiler.compile_rule(rule) for rule in rules)

    @cached_property
    def _compiler(self) -> PatternCompiler:
        return PatternCompiler(self.vocabularies, self.phrases, self.spaced)


def load_lexicon(source: str | Path) -> Lexicon:
    """Read a lexicon from its TOML file.

    Args:
        source: the code of a language that comes with the package ("en"), or a path.

    Raises:
        InvalidArgument: there is no such lexicon, the file is no TOML, has a field that a lexicon
            has not, or a field of the wrong kind.
    """
    place = FOLDER / f"{source}.toml" if isinstance(source, str) else source
    if not place.is_file():
        raise InvalidArgument(
            "source", str(source), "give a language of the package or the Path of a TOML file"
        )
    try:
        entries = tomllib.loads(place.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument("source", str(source), f"write the file as TOML in UTF-8 ({error})") from error
    if unknown := set(entries) - set(_KINDS):
        raise InvalidArgument("source", str(source), f"{', '.join(sorted(unknown))} is no field of a lexicon")
    if not isinstance(entries.get("language"), str):
        raise InvalidArgument("source", str(source), 'give the file a line such as language = "nl"')
    for name, value in entries.items():
        if not _is(value, _KINDS[name]):
            raise InvalidArgument("source", str(source), f"make {name} {_KINDS[name]}, not {value!r}")
    for rule in entries.get("rules", []):
        if not _RULE_NEEDS <= set(rule) <= _RULE_FIELDS:
            raise InvalidArgument(
                "source", str(source), f"give each rule a name, a pattern and what it says: {rule}"
            )
        for name, value in rule.items():
            kind = "a list of texts" if name == "needs" else "a text"
            if not _is(value, kind):
                raise InvalidArgument("source", str(source), f"make {name} of a rule {kind}, not {value!r}")
    return Lexicon(
        language=entries["language"],
        rules=tuple(_rule(**rule) for rule in entries.get("rules", [])),
        spaced=entries.get("spaced", True),
        markers=frozenset(fold(word) for word in entries.get("markers", [])),
        mend=tuple(entries.get("mend", [])),
        typos=entries.get("typos", {}),
        contractions=entries.get("contractions", {}),
        vocabularies={name: tuple(words) for name, words in entries.get("vocabularies", {}).items()},
        phrases=entries.get("phrases", {}),
    )


def primary_language(code: str) -> str:
    """The language of a code such as "de-AT", in lower case.

    Raises:
        InvalidArgument: ``code`` is no language code.
    """
    match = _LANGUAGE_CODE.fullmatch(code) if isinstance(code, str) else None
    if match is None:
        raise InvalidArgument("language", code, 'give an ISO 639-1 code such as "en"')
    return match[1].lower()


@cache
def default_lexicons() -> tuple[Lexicon, ...]:
    """The lexicons that come with the package, read once a process."""
    names = sorted(file.stem for file in FOLDER.glob("*.toml"))
    return tuple(load_lexicon(name) for name in names)


def _is(value: object, kind: str) -> bool:
    """Whether a value of a lexicon's file is of the kind that ``_KINDS`` names."""
    if kind == "true or false":
        return isinstance(value, bool)
    if kind.startswith("a list of "):
        member = {"texts": str, "tables": dict}[kind.removeprefix("a list of ")]
        return isinstance(value, list) and all(isinstance(item, member) for item in value)
    if kind.startswith("a table of "):
        member_kind = "a list of texts" if "lists" in kind else "a text"
        return isinstance(value, dict) and all(_is(item, member_kind) for item in value.values())
    return isinstance(value, str)


def _rule(needs: Iterable[str] = (), **fields: str) -> Rule:
    return Rule(**fields, needs=tuple(needs))  # type: ignore[arg-type]  # Rule checks what a file says


def _slips(word: str) -> Iterable[str]:
    """The spellings of ``word`` with two letters swapped, one doubled or one left out.

    A letter is only left out of words of six letters or more: shorter ones turn into other words.
    """
    if len(word) < _MEND_FROM:
        return
    for i in range(1, len(word) + 1):
        yield word[:i] + word[i - 1] + word[i:]
    for i in range(len(word) - 1):
        if word[i] != word[i + 1]:
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    if len(word) >= 6:
        for i in range(1, len(word) - 1):
            yield word[:i] + word[i + 1 :]
