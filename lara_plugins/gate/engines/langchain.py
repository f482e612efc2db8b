"""LangChain's cross-encoders as scorers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, get_args

from lara_plugins.arguments import check_choice
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate.engines.blocks import blocks_of_distinct, raw_scores
from lara_plugins.gate.scorer import Block, ScoreKind


class PairEncoder(Protocol):
    """What ``langchain_core.cross_encoders.BaseCrossEncoder`` offers; LangChain itself is not needed."""

    def score(self, text_pairs: list[tuple[str, str]]) -> Iterable[float]:
        """One score for each pair of query and passage."""


class LangChainScorer:
    """Any LangChain ``BaseCrossEncoder``, or another object with its ``score``, as a scorer.

    Args:
        encoder: scores pairs of query and passage.
        score_kind: whether it returns logits or probabilities. ``HuggingFaceCrossEncoder``
            applies the model's own activation: a sigmoid, hence ``"probability"``, unless the
            model's config names another, such as ms-marco MiniLM's identity, hence ``"logit"``.
        scale_known: whether 0.3 is known to be a sensible threshold for its scores.
        fingerprint: tells this encoder from others, with its revision; by default its class
            and its ``model_name``, where it has one.
        name: what ``load_scorer`` makes it again from, where it can.

    Raises:
        InvalidArgument: the encoder has no ``score``, or the kind is unknown.
    """

    def __init__(
        self,
        encoder: PairEncoder,
        score_kind: ScoreKind,
        *,
        scale_known: bool = False,
        fingerprint: str | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(getattr(encoder, "score", None)):
            raise InvalidArgument("encoder", encoder, "give a BaseCrossEncoder: an object with score(pairs)")
        check_choice("score_kind", score_kind, get_args(ScoreKind))
        self._encoder = encoder
        self.score_kind = score_kind
        self.scale_known = scale_known
        self.fingerprint = fingerprint or f"langchain/{_described(encoder)}/{score_kind}"
        self.name = name

    def load(self) -> None:
        """Nothing to load: LangChain's encoders load when they are made."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Call the encoder once for every 64 ``texts``; equal texts are scored once.

        Raises:
            ScoreError: it returned more or fewer scores than it was given pairs, or no numbers.
        """
        return blocks_of_distinct(
            texts, lambda fresh: raw_scores(self._encoder.score([(query, text) for text in fresh]))
        )

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """What the encoder returns for all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]


def _described(encoder: PairEncoder) -> str:
    model = getattr(encoder, "model_name", None)
    described = f"{type(encoder).__module__}.{type(encoder).__qualname__}"
    return f"{described}/{model}" if isinstance(model, str) else described
