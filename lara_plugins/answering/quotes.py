"""Evidence is verbatim or it is no evidence: quotes are looked up in the passages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lara_plugins.answering.contract import Quote
from lara_plugins.answering.fences import restore
from lara_plugins.passages import Passage, Span

CITATION = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")
# Letters and digits of scripts that put spaces between words; in others a quote may end anywhere.
_LETTER = "[0-9A-Za-z\u00c0-\u024f\u0370-\u052f]"
_SUPPORTS = re.compile(r"\d|\w\w|[\u0900-\uffff]")
QUOTATION_MARKS = "\"'“”„«»‘’`"


@dataclass(frozen=True, slots=True)
class Verified:
    """The quotes that stand in the passages, and what is to be said of the others."""

    spans: tuple[Span, ...]
    caveats: tuple[str, ...]


def verify_quotes(quotes: Sequence[Quote], sent: Mapping[int, Passage]) -> Verified:
    """Look every quote up in the passages that were sent.

    White space is folded. A quote that stands in another passage than the one named is
    re-attributed with a caveat; one that stands in none, or is stitched together, is removed
    with a caveat.

    Args:
        quotes: the evidence as the LLM gave it.
        sent: the passages by number.
    """
    spans: list[Span] = []
    caveats: list[str] = []
    for quote in quotes:
        named = sent.get(quote.passage)
        span = find_quote(quote.quote, named) if named else None
        if span is None:
            others = ((number, find_quote(quote.quote, passage)) for number, passage in sent.items())
            number, span = next(((number, found) for number, found in others if found), (0, None))
            caveats.append(
                f"a quote given for passage [{quote.passage}] stands in passage [{number}]"
                if span
                else f"a quote given for passage [{quote.passage}] stands in no passage and was removed"
            )
        if span and span not in spans:
            spans.append(span)
    return Verified(tuple(spans), tuple(dict.fromkeys(caveats)))


def find_quote(quote: str, passage: Passage) -> Span | None:
    """The first place where a quote stands in a passage as whole words, or None.

    White space is folded. What holds no word, or one letter alone, supports nothing and is
    found nowhere.
    """
    # As it is; with what the fences changed undone; without quotation marks that are the model's.
    for attempt in (quote, restore(quote), restore(quote).strip().strip(QUOTATION_MARKS)):
        pattern = _pattern(attempt.split())
        match = pattern.search(passage.text) if pattern else None
        if match is not None:
            return Span(passage.id, match.start(), match.end(), match.group())
    return None


def _pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    if not words or not _SUPPORTS.search(" ".join(words)):
        return None
    body = r"\s+".join(map(re.escape, words))
    before = rf"(?<!{_LETTER})" if re.match(_LETTER, words[0]) else ""
    after = rf"(?!{_LETTER})" if re.match(_LETTER, words[-1][-1]) else ""
    return re.compile(before + body + after)


def cited_numbers(text: str) -> tuple[int, ...]:
    """The numbers that a text cites as ``[n]`` or ``[n, m]``, each once, in order."""
    numbers = (int(number) for match in CITATION.finditer(text) for number in match.group(1).split(","))
    return tuple(dict.fromkeys(numbers))


def citation_caveats(value: str, spans: Sequence[Span], sent: Mapping[int, Passage]) -> tuple[str, ...]:
    """What is to be said of the numbers that an answer cites.

    A number in brackets that stands in a quote itself, as footnotes do, is no citation.
    """
    supported = {span.passage_id for span in spans}
    quoted = {number for span in spans for number in cited_numbers(span.quote)}
    caveats = []
    for number in cited_numbers(value):
        if number not in sent:
            if number not in quoted:
                caveats.append(f"the answer cites [{number}], which was not sent")
        elif sent[number].id not in supported:
            caveats.append(f"the answer cites [{number}] without a verified quote of it")
    return tuple(caveats)


def without_citations(text: str) -> str:
    """The text without numbers in brackets, so that a footnote is not taken for a citation."""
    return CITATION.sub("", text)
