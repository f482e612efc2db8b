"""What engines share: blocks of scores with equal texts scored once, and how much of a text is read."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from lara_plugins.errors import ScoreError
from lara_plugins.gate.scorer import BLOCK_SIZE, Block
from lara_plugins.passages import as_float

CHARACTERS_A_TOKEN = 32
"""No writing fills a window with tokens so long, so what is beyond is not even tokenised."""


class RawScore(NamedTuple):
    """A logit or a probability, and whether its passage was cut to fit the model's window."""

    value: float
    truncated: bool


def raw_scores(returned: Iterable[float]) -> list[RawScore]:
    """What somebody else's scorer returned, as floats.

    Raises:
        ScoreError: it is no series of numbers.
    """
    try:
        values = iter(returned)
    except TypeError:
        raise ScoreError(
            f"the scorer returned {reprlib.repr(returned)} instead of one number a passage"
        ) from None
    return [RawScore(as_float(value), False) for value in values]


def blocks_of_distinct(
    texts: Sequence[str], score: Callable[[Sequence[str]], Sequence[RawScore]], size: int = BLOCK_SIZE
) -> Iterator[Block]:
    """Yield blocks of ``size`` texts in order, each distinct text scored once.

    Args:
        texts: the passages, in retrieval order.
        score: one score a text; called at most once a block, and never without texts.
        size: passages in a block.

    Raises:
        ScoreError: ``score`` returned more or fewer scores than it was given texts.
    """
    known: dict[str, RawScore] = {}
    for start in range(0, len(texts), size):
        block = texts[start : start + size]
        fresh = [text for text in dict.fromkeys(block) if text not in known]
        if fresh:
            scores = score(fresh)
            if len(scores) != len(fresh):
                raise ScoreError(f"the scorer returned {len(scores)} scores for {len(fresh)} passages")
            known.update(zip(fresh, scores, strict=True))
        yield as_block([known[text] for text in block])


def as_block(scores: Sequence[RawScore]) -> Block:
    """Consecutive scores as a block."""
    truncated = tuple(position for position, score in enumerate(scores) if score.truncated)
    return Block([score.value for score in scores], truncated)


def readable(text: str, window: int) -> tuple[str, bool]:
    """As much of a text as a window of so many tokens can need, and whether that cut it.

    It bounds the time and memory that a passage of any length takes. A lone surrogate, which no
    tokenizer accepts, becomes a question mark.
    """
    longest = window * CHARACTERS_A_TOKEN
    return text[:longest].encode("utf-8", "replace").decode("utf-8"), len(text) > longest
