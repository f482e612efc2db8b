"""Any function as a scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import get_args
from uuid import uuid4

from lara_plugins.arguments import check_choice
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate.engines.blocks import blocks_of_distinct, raw_scores
from lara_plugins.gate.scorer import Block, ScoreKind

ScoringFunction = Callable[[str, Sequence[str]], Iterable[float]]


class CallableScorer:
    """A function of a query and some texts, as a scorer.

    Args:
        function: returns one raw score a text.
        score_kind: whether those are logits or probabilities.
        scale_known: whether 0.3 is known to be a sensible threshold for them.
        fingerprint: tells this function from others, with its version; by default its module and
            name, for an object its class's, which do not change when its code or state does. What
            has no name that others could find, such as a lambda, a ``partial`` or a function within
            another, is told from all others of this process and of later ones: give a fingerprint
            where a calibration is to be kept.
        name: what ``load_scorer`` makes it again from, where it can.

    Raises:
        InvalidArgument: the function cannot be called, or the kind is unknown.
    """

    def __init__(
        self,
        function: ScoringFunction,
        score_kind: ScoreKind,
        *,
        scale_known: bool = False,
        fingerprint: str | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidArgument("function", function, "give a function of a query and texts")
        check_choice("score_kind", score_kind, get_args(ScoreKind))
        self._function = function
        self.score_kind = score_kind
        self.scale_known = scale_known
        self.fingerprint = fingerprint or f"callable/{_identity(function)}/{score_kind}"
        self.name = name

    def load(self) -> None:
        """Nothing to load."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Call the function once for every 64 ``texts``; equal texts are scored once.

        Raises:
            ScoreError: it returned more or fewer scores than it was given texts, or no numbers.
        """
        return blocks_of_distinct(texts, lambda fresh: raw_scores(self._function(query, fresh)))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """What the function returns for all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]


def _identity(function: ScoringFunction) -> str:
    """The function's name, for an object its class's; a new one where that could be any of several."""
    named = function if hasattr(function, "__qualname__") else type(function)
    name = f"{named.__module__}.{named.__qualname__}"
    return f"{name}/{uuid4().hex[:12]}" if "<" in name or isinstance(function, partial) else name
