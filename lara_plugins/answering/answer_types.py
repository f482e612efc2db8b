"""How clearly a sentence holds a value of the kind that a question asks for.

The kinds are finer than an ``AnswerShape`` where the question word tells more ("who" and "where"
both ask for an entity). The patterns are made for English; digits, ISO dates, currency signs and
the dates of Chinese and Japanese are found in any language.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal, TypeAlias

from lara_plugins.question import AnswerShape

AnswerKind: TypeAlias = Literal["number", "quantity", "date", "duration", "person", "place", "reason", "any"]
"""What a sentence must hold to answer; "any" where every sentence could."""

CLEAR = 1.0
WEAK = 0.5
ABSENT = 0.0

_NUMBER_WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|"
    "trillion|dozens?|half|third|twice|once|both|none|single|several"
)
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|januar|februar|märz|mai|juni|juli|oktober|dezember|"
    "janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|"
    "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_YEAR = r"\b(?:1\d|20)\d\d\b"
_PERIODS = (
    "seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|quarters?|years?|decades?|centur(?:y|ies)"
)
# Repetitions are bounded throughout, so that no text makes a search quadratic.
_NUMBER = rf"(?:\d[\d.,]{{0,15}}|\b(?:an?|{_NUMBER_WORDS})\b)"
_CJK_DATE = r"\d{1,9}\s?[年月日]"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_CLEARLY: dict[AnswerKind, re.Pattern[str]] = {
    "number": _any_of(r"\d", rf"\b(?:{_NUMBER_WORDS})\b", r"[一二三四五六七八九十百千万]"),
    "quantity": _any_of(
        r"[%$€£¥₹]\s?\d",
        r"\d[\d.,]{0,15}[\s-]?(?:[%$€£¥₹°]|[a-zµ円元])",
        rf"\b(?:{_NUMBER_WORDS})\s\w",
        r"[一二三四五六七八九十百千万]+[円元]",
    ),
    "date": _any_of(
        _YEAR,
        r"\b(?:1\d|20)\d0s\b",
        rf"\b\d{{1,2}}(?:st|nd|rd|th)?\.?\s(?:of\s)?(?:{_MONTHS})\b",
        rf"\b(?:{_MONTHS})\.?\s\d",
        r"\b\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b",
        r"\b\d+\s?(?:bc|ad|bce|ce)\b",
        r"\b\d{1,2}(?::\d\d)?\s?[ap]\.?m\b",
        _CJK_DATE,
    ),
    "duration": _any_of(
        rf"{_NUMBER}[\s-]+(?:\w+[\s-]+)?(?:{_PERIODS})\b",
        r"\d\s?(?:ms|s|min|h)\b",
        _CJK_DATE,
        r"\d{1,9}\s?(?:時間|小时|分|秒|週間|周)",
    ),
    "person": re.compile(
        r"\b(?:[A-ZÀ-Þ][\w.'’-]{0,30}\s(?:(?:de|van|von|der|of|the|al|bin|la)\s){0,2}){1,4}[A-ZÀ-Þ]\w{1,40}"
    ),
    "place": re.compile(
        r"\b(?:in|at|near|from|of|to|on|off|between|outside|inside|within|through|across|along|north|south|east|west)"
        r"\s(?:the\s)?(?:\w+\s)?[A-ZÀ-Þ]\w+"
    ),
    "reason": _any_of(
        r"\b(?:because|due\sto|since|caus(?:e|es|ed|ing)|reasons?|therefore|thus|so\sthat|in\sorder\sto|as\sa\sresult|"
        r"result(?:s|ed|ing)?\s(?:in|from)|led\sto|to\s(?:avoid|prevent|allow)|weil|damit|parce\sque|porque)\b"
    ),
}
_WEAKLY: dict[AnswerKind, re.Pattern[str]] = {
    "quantity": _CLEARLY["number"],
    "date": _any_of(
        rf"\b(?!may\b|mar\b|mars\b)(?:{_MONTHS})\b",
        r"\bcentur(?:y|ies)\b",
        r"\bseasons?\b",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
        rf"{_NUMBER}\s(?:\w+\s)?(?:{_PERIODS})\b",
    ),
    "duration": _any_of(rf"{_YEAR}.+{_YEAR}", rf"\b(?:{_PERIODS})\b"),
    "person": re.compile(r"\b[A-ZÀ-Þ]\w+"),
    "place": re.compile(r"\b[A-ZÀ-Þ]\w+"),
}

_BY_QUESTION_WORD: tuple[tuple[re.Pattern[str], AnswerKind], ...] = (
    (_any_of(r"\bhow (?:long|old)\b", r"\bwie lange\b"), "duration"),
    (_any_of(r"\b(?:how (?:many|often)|number of|population)\b", r"\bwie viele\b"), "number"),
    (
        _any_of(
            r"\bhow (?:much|far|big|large|tall|high|deep|fast|heavy|wide|hot|cold)\b",
            r"\bwhat (?:percent\w*|proportion|fraction|share)\b",
        ),
        "quantity",
    ),
    (
        _any_of(
            r"\b(?:when|wann|quand|cuándo)\b",
            r"\b(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade)\b",
        ),
        "date",
    ),
    (
        _any_of(
            r"\b(?:where|wo|où|dónde)\b", r"\b(?:what|which) (?:city|country|state|town|place)\b", "哪里|どこ"
        ),
        "place",
    ),
    (_any_of(r"\b(?:who|whom|whose|wer|wen|wem|qui|quién)\b", "谁|誰"), "person"),
    (_any_of(r"\b(?:why|warum|pourquoi|por qué)\b"), "reason"),
)
_BY_SHAPE: dict[AnswerShape, AnswerKind] = {
    "amount": "quantity",
    "count": "number",
    "date": "date",
    "duration": "duration",
}
_WORD = re.compile(r"[\w’'.-]*\w")


def expected_kind(question: str, shape: AnswerShape) -> AnswerKind:
    """The kind of value that answers a question.

    The shape decides where it names a kind; for an entity, and where the shape is unknown, the
    question word does ("who": a person, "where": a place).
    """
    if shape in _BY_SHAPE:
        return _BY_SHAPE[shape]
    if shape not in ("entity", "unknown"):
        return "any"
    return next((kind for word, kind in _BY_QUESTION_WORD if word.search(question)), "any")


def holds(sentence: str, kind: AnswerKind, known: Set[str] = frozenset()) -> float:
    """How clearly a sentence holds a value of a kind: ``CLEAR``, ``WEAK`` or ``ABSENT``.

    A date is clear with a year or a day and weak with a month alone; a person is clear with a
    name of several words and weak with one. Of "any" every sentence holds nothing: ``ABSENT``.

    Args:
        sentence: the sentence.
        kind: what is looked for.
        known: lower-case words of the question: what it says itself is not its answer.
    """
    if kind == "any":
        return ABSENT
    if _is_news(_CLEARLY[kind], sentence, known):
        return CLEAR
    weakly = _WEAKLY.get(kind)
    return WEAK if weakly is not None and _is_news(weakly, sentence, known) else ABSENT


def _is_news(pattern: re.Pattern[str], sentence: str, known: Set[str]) -> bool:
    """Whether the pattern matches something that has a word which is not known already."""
    return any(not known >= set(_WORD.findall(match[0].lower())) for match in pattern.finditer(sentence))
