"""Evidence is verbatim or it is no evidence: quotes are looked up in the passages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lara_plugins.answering.contract import Quote
from lara_plugins.answering.fences import restore
from lara_plugins.passages import Passage, Span

CITATION = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")
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
    """The first place where a quote stands in a passage, white space folded, or None."""
    quote = restore(quote)
    pattern = _pattern(quote.split())
    if pattern is None:
        return None
    match = pattern.search(passage.text)
    if match is None:
        # Many models put the words themselves in quotation marks.
        pattern = _pattern(quote.strip().strip(QUOTATION_MARKS).split())
        match = pattern.search(passage.text) if pattern else None
    return Span(passage.id, match.start(), match.end(), match.group()) if match else None


def _pattern(words: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile(r"\s+".join(map(re.escape, words))) if words else None


def cited_numbers(text: str) -> tuple[int, ...]:
    """The numbers that a text cites as ``[n]`` or ``[n, m]``, each once, in order."""
    numbers = (int(number) for match in CITATION.finditer(text) for number in match.group(1).split(","))
    return tuple(dict.fromkeys(numbers))
