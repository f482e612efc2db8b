"""A question's words -> the shape of its answer: ordered rules, no model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from lara_plugins.errors import InvalidArgument
from lara_plugins.question.languages import UNSUPPORTED, LanguageDetector
from lara_plugins.question.lexicon import Lexicon, default_lexicons, primary_language
from lara_plugins.question.reading import Reading, read
from lara_plugins.question.rules import CompiledRule, Rule
from lara_plugins.question.shape import QuestionShape


class QuestionParser:
    """Reads the shape of a question off its words.

    A new rule, a language or a changed lexicon is an argument::

        ticket = Rule("ticket", r"ticket number", answer_shape="entity")
        english = load_lexicon("en").with_rules(ticket)
        parser = QuestionParser([english, load_lexicon(Path("nl.toml"))])

    To keep the other languages, give ``default_lexicons()`` beside a new one. A lexicon's file is
    TOML with the fields of ``Lexicon``; those of the package, beside this module, are examples.

    Args:
        lexicons: one a language; by default those of the package.

    Raises:
        InvalidArgument: there is none, two are of one language, or a pattern is wrong.
    """

    def __init__(self, lexicons: Sequence[Lexicon] | None = None) -> None:
        self.lexicons = tuple(default_lexicons() if lexicons is None else lexicons)
        self._by_language = {lexicon.language: lexicon for lexicon in self.lexicons}
        if not self.lexicons or len(self._by_language) < len(self.lexicons):
            languages = [lexicon.language for lexicon in self.lexicons]
            raise InvalidArgument("lexicons", languages, "give at least one lexicon and one a language")
        self._detector = LanguageDetector(self.lexicons)
        if lexicons is not None:
            for lexicon in self.lexicons:
                lexicon.load()

    def parse(self, text: str, language: str | None = None) -> QuestionShape:
        """The shape of one question; see ``parse_question``."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument("text", text, "give the question's words")
        code = self._detector.detect(text) if language is None else primary_language(language)
        lexicon = self._by_language.get(code)
        if lexicon is None:
            return QuestionShape("unknown", "single", UNSUPPORTED, "unsupported-language", (0, len(text)))
        return _shape(text, lexicon)


def parse_question(text: str, language: str | None = None) -> QuestionShape:
    """Say what kind of answer a question asks for, by rules over its words.

    The same text always gives the same shape. Of a text longer than 4,000 characters the
    first and the last 2,000 are read.

    Args:
        text: the question as the user typed it.
        language: ISO 639-1 code ("de", "en-GB"); by default it is detected.

    Returns:
        The shape. Its ``rule`` and ``span`` are those of the rule that decides the route: the
        decomposition's where the question is not a single ask, else the answer shape's. An
        unsupported language gives the shape ``unknown`` and the language ``und``.

    Raises:
        InvalidArgument: ``text`` is empty, or ``language`` is no language code.
    """
    return default_parser().parse(text, language)


def load_parser() -> None:
    """Read and compile the lexicons now, so that no question pays for it."""
    for lexicon in default_parser().lexicons:
        lexicon.load()


@cache
def default_parser() -> QuestionParser:
    """The parser over the lexicons of the package."""
    return QuestionParser()


def _shape(text: str, lexicon: Lexicon) -> QuestionShape:
    reading = read(text, lexicon)
    words = reading.words
    asks_for = _first_to_fire(lexicon.shape_rules, reading, words)
    parts = _first_to_fire(lexicon.decomposition_rules, reading, words)
    answer_shape = asks_for[0].answer_shape if asks_for else None
    decomposition = parts[0].decomposition if parts else None
    decides = asks_for if decomposition in (None, "single") else parts
    name, span = (decides[0].name, decides[1]) if decides else ("no-rule", (0, len(text)))
    return QuestionShape(answer_shape or "unknown", decomposition or "single", lexicon.language, name, span)


def _first_to_fire(
    rules: Sequence[CompiledRule], reading: Reading, words: frozenset[str]
) -> tuple[Rule, tuple[int, int]] | None:
    """The first rule that fires and the place of its words in the question."""
    for compiled in rules:
        if compiled.needs and compiled.needs.isdisjoint(words):
            continue
        if found := compiled.find(reading.text):
            return compiled.rule, reading.span(*found)
    return None
