"""Passages, numbered and cut into the windows that one ask reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lara_plugins.answering.loop import Fits, Numbered, SecondsFor
from lara_plugins.arguments import check_count
from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import Passage


def numbered(passages: Sequence[Passage]) -> tuple[Numbered, ...]:
    """The passages under the numbers by which an answer cites them, from 1."""
    return tuple(Numbered(number, passage) for number, passage in enumerate(passages, start=1))


def split_in_order(passages: Sequence[Numbered], window: int, fits: Fits) -> tuple[tuple[Numbered, ...], ...]:
    """Windows of at most ``window`` passages, in order: ceil(n / window) where all fit.

    A window that does not fit one prompt becomes several, and a passage that does not fit alone
    is cut into pieces between its words; order is kept throughout.

    Raises:
        InvalidArgument: ``window`` is below 1, or nothing at all fits a prompt.
    """
    check_count("window", window, "give the passages of one window, 1 or more")
    windows: list[tuple[Numbered, ...]] = []
    for start in range(0, len(passages), window):
        windows.extend(_fitting(passages[start : start + window], fits))
    return tuple(windows)


def affordable(shown: Sequence[Numbered], seconds_for: SecondsFor, time_left: float) -> tuple[Numbered, ...]:
    """The longest prefix of some passages whose one ask fits the time left."""

    def cost(count: int) -> float:
        return seconds_for([item.passage for item in shown[:count]])

    return tuple(shown[: bisect_right(range(1, len(shown) + 1), time_left, key=cost)])


def _fitting(window: Sequence[Numbered], fits: Fits) -> Iterator[tuple[Numbered, ...]]:
    shown: list[Numbered] = []
    for piece in (piece for item in window for piece in _pieces(item, fits)):
        if shown and not fits([item.passage for item in (*shown, piece)]):
            yield tuple(shown)
            shown = []
        shown.append(piece)
    if shown:
        yield tuple(shown)


def _pieces(item: Numbered, fits: Fits) -> Iterator[Numbered]:
    """The passage whole, or its halves, and theirs, until each fits."""
    if fits([item.passage]):
        yield item
        return
    text = item.passage.text
    middle = text.rfind(" ", 1, len(text) // 2 + 1) + 1 or len(text) // 2
    if not 0 < middle < len(text):
        raise InvalidArgument(
            "context",
            len(text),
            "not one character fits the model's context: shorten the question or the prompt",
        )
    for half in (text[:middle], text[middle:]):
        yield from _pieces(replace(item, passage=replace(item.passage, text=half)), fits)
