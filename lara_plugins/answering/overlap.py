"""What a question and a sentence have in common, word by word."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from lara_plugins.answering.answer_types import AnswerKind, expected_kind
from lara_plugins.question import AnswerShape
from lara_plugins.retrieval import terms

FUNCTION_WORDS = frozenset(
    """
    a an the of in on at by for from to with and or but not no is are was were be been being do does did
    done have has had having it its he she they we you i his her their our your this that these those what
    which who whom whose when where why how many much can could will would shall should may might must as
    if than then so there here about into over under between during after before s t also any some all
    most more other such only own same too very just us me him them my name called mean
    der die das den dem des ein eine und oder ist sind wird wie wer wann wo warum zu im am mit für von auf
    le la les un une et ou est sont que qui quand où pourquoi comment de du des au aux pour dans
    el los las una y es son qué quién cuándo dónde cómo por para en del al
    """.split()  # noqa: SIM905 - a list of so many words reads best as text
)
"""Words that carry no topic; English, German, French and Spanish."""

STEM_LENGTH = 6
"""Characters of a word that count: "establish" and "established" are one term."""

_ENDINGS = ("ies", "ing", "ed", "es", "ly", "s", "d", "e")
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nor|without|cannot|unable|except|exclu\w*|lack\w*|fail\w*|reject\w*|refus\w*)\b|n['’]t\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class AskedFor:
    """A question, read for comparison with sentences.

    Args:
        kind: the kind of value that answers it.
        terms: its content terms, each once.
        words: all its words, lower-case.
        names: terms of its capitalised words, the first word left out.
        numbers: terms of its words with a digit.
        negated: whether it asks for what is not so.
    """

    kind: AnswerKind
    terms: tuple[str, ...]
    words: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    negated: bool


def read_question(question: str, shape: AnswerShape) -> AskedFor:
    """What a question says and asks for."""
    words = _WORD.findall(question)
    capitalised = [word for word in words[1:] if word[0].isupper()]
    return AskedFor(
        kind=expected_kind(question, shape),
        terms=tuple(dict.fromkeys(content_terms(question))),
        words=frozenset(word.lower() for word in words),
        names=frozenset(content_terms(" ".join(capitalised))),
        numbers=frozenset(stem(term) for term in terms(question) if _has_digit(term)),
        negated=is_negated(question),
    )


def content_terms(text: str) -> list[str]:
    """The stemmed terms of a text without its function words, in order."""
    return [stem(term) for term in terms(text) if term not in FUNCTION_WORDS]


def stem(term: str) -> str:
    """The part of a word that its forms share; of a term with a digit only the plural's s goes."""
    if _has_digit(term):
        return term.removesuffix("s")
    for ending in _ENDINGS:
        if term.endswith(ending) and len(term) - len(ending) >= 3:
            term = term.removesuffix(ending) + ("i" if ending == "ies" else "")
            break
    else:
        if term.endswith("y") and len(term) > 3:
            term = term[:-1] + "i"
    return term[:STEM_LENGTH]


def term_weights(asked: Iterable[str], sentences: Sequence[Set[str]]) -> dict[str, float]:
    """How telling each term of a question is among the sentences at hand; the weights sum to 1.

    The inverse document frequency over the sentences, log((N + 1) / (n + 1/2)), with a floor and
    a prior for long words and numbers, since a handful of sentences tells little about rarity.
    """
    count = len(sentences)
    weights = {}
    for term in asked:
        having = sum(term in sentence for sentence in sentences)
        prior = 0.5 + 0.1 * len(term) + _has_digit(term)
        weights[term] = math.log((count + 1) / (having + 0.5)) + prior
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def coverage(weights: Mapping[str, float], *found: Set[str]) -> float:
    """The weight of the question's terms that are in any of the sets, 0..1."""
    return sum(weight for term, weight in weights.items() if any(term in terms for terms in found))


def missing_share(wanted: Set[str], found: Set[str]) -> float:
    """The share of the wanted terms that are not found; 0 where none is wanted."""
    return len(wanted - found) / len(wanted) if wanted else 0.0


def is_negated(text: str) -> bool:
    """Whether a text denies something ("not", "never", "without", "failed")."""
    return _NEGATION.search(text) is not None


def _has_digit(term: str) -> bool:
    return any(character.isdigit() for character in term)
