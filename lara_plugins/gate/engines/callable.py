"""Any function as a scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lara_plugins.gate.scorer import BLOCK_SIZE, Block, ScoreKind

ScoringFunction = Callable[[str, Sequence[str]], Sequence[float]]


class CallableScorer:
    """A function of a query and some texts, as a scorer.

    What the function returns is passed on as it came; the gate refuses what is no score.

    Args:
        function: returns one raw score a text.
        score_kind: whether those are logits or probabilities.
        scale_known: whether 0.3 is known to be a sensible threshold for them.
        fingerprint: tells this function from others, with its version; by default its
            module and name, which do not change when its code does.
        name: what ``load_scorer`` makes it again from, where it can.
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
        self._function = function
        self.score_kind = score_kind
        self.scale_known = scale_known
        self.fingerprint = fingerprint or f"callable/{_qualified_name(function)}/{score_kind}"
        self.name = name

    def load(self) -> None:
        """Nothing to load."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Call the function once for every 64 ``texts``."""
        for start in range(0, len(texts), BLOCK_SIZE):
            yield Block(list(self._function(query, texts[start : start + BLOCK_SIZE])))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """What the function returns for all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]


def _qualified_name(function: ScoringFunction) -> str:
    """The function's name, or for a callable object its class's."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
