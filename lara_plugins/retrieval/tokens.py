"""Text to the terms that lexical search compares."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

TOKENIZER_VERSION = "unicode-words-1"
"""Part of the fingerprint of what is built on it: change it with the rules below."""

# Scripts that put no space between words: a run of them is indexed by its overlapping pairs of
# characters. Han, kana, Thai, Lao, Myanmar, Khmer; no punctuation is matched, since only
# runs of letters, digits and marks are looked at.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_PIECES = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
_SOFT_HYPHEN = "\u00ad"


def terms(text: str) -> list[str]:
    """The terms of a text, in order, repetitions included.

    Words of letters, digits and combining marks, compatibility-normalised (NFKC) and case-folded;
    ``max_length`` is two words, as people ask for it. Scripts without spaces give pairs of
    characters. Words are not stemmed and none is left out: a light English stemmer changed
    recall within the first 50 by less than 0.1 points, and stop words weigh next to nothing by
    their inverse document frequency.
    """
    plain = unicodedata.normalize("NFKC", text).replace(_SOFT_HYPHEN, "").replace("_", " ").casefold()
    found: list[str] = []
    for run in _word_pattern().findall(plain):
        if run.isascii():
            found.append(run)
        else:
            found += _split(run)
    return found


def _split(run: str) -> list[str]:
    """A run of word characters as words and, where the script has no spaces, pairs."""
    found: list[str] = []
    for piece in _PIECES.findall(run):
        if _UNSPACED_START.match(piece) and len(piece) > 1:
            found += [piece[start : start + 2] for start in range(len(piece) - 1)]
        else:
            found.append(piece)
    return found


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    r"""One or more word characters; ``\w`` alone would cut Indic words at their vowel signs."""
    marks = "".join(
        re.escape(chr(code))
        for code in range(0x300, 0x20000)
        if unicodedata.category(chr(code)).startswith("M")
    )
    return re.compile(rf"[\w{marks}]+")
