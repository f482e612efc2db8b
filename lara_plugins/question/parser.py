"""A question's words -> the shape of its answer: ordered rules, no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from lara_plugins.errors import InvalidArgument
from lara_plugins.question.languages import UNSUPPORTED, detect_language
from lara_plugins.question.lexicon import Lexicon, default_lexicons
from lara_plugins.question.reading import read
from lara_plugins.question.shape import AnswerShape, Decomposition, QuestionShape

_LANGUAGE_CODE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*", re.IGNORECASE)


class QuestionParser:
    """Reads the shape of a question off its words.

    A new rule, a language or a changed lexicon is an argument::

        english = load_lexicon("en").with_rules(Rule("ticket", "entity", r"ticket number"))
        parser = QuestionParser([english, load_lexicon(Path("nl.toml"))])

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
        if lexicons is not None:
            for lexicon in self.lexicons:
                _ = lexicon.compiled

    def parse(self, text: str, language: str | None = None) -> QuestionShape:
        """The shape of one question; see ``parse_question``."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument("text", text, "give the question's words")
        code = detect_language(text, self.lexicons) if language is None else _primary(language)
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
    return _default_parser().parse(text, language)


def load_parser() -> None:
    """Read and compile the lexicons now, so that no question pays for it."""
    for lexicon in _default_parser().lexicons:
        _ = lexicon.compiled


@cache
def _default_parser() -> QuestionParser:
    return QuestionParser()


def _primary(language: str) -> str:
    match = _LANGUAGE_CODE.fullmatch(language) if isinstance(language, str) else None
    if match is None:
        raise InvalidArgument("language", language, 'give an ISO 639-1 code such as "en"')
    return match[1].lower()


def _shape(text: str, lexicon: Lexicon) -> QuestionShape:
    reading = read(text, lexicon)
    shape: AnswerShape | None = None
    decomposition: Decomposition | None = None
    shape_rule = parts_rule = ("no-rule", (0, len(text)))
    for compiled in lexicon.compiled:
        rule = compiled.rule
        decided = shape if rule.decomposition is None else decomposition
        if decided is None and (found := compiled.find(reading.text)):
            fired = rule.name, reading.span(*found)
            if rule.decomposition is None:
                shape, shape_rule = rule.answer_shape, fired
            else:
                decomposition, parts_rule = rule.decomposition, fired
    name, span = shape_rule if decomposition in (None, "single") else parts_rule
    return QuestionShape(shape or "unknown", decomposition or "single", lexicon.language, name, span)
