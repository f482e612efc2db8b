"""Pinecone's hosted rerankers, through the inference call of the official SDK (7 to 10)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from lara_plugins.errors import InvalidArgument, MissingExtra, ScoreError
from lara_plugins.gate.engines.blocks import RawScore, blocks_of_distinct, readable
from lara_plugins.gate.scorer import Block, ScoreKind

RERANKER = "bge-reranker-v2-m3"
API_KEY = "PINECONE_API_KEY"

DOCUMENTS_A_REQUEST = 100
"""The service's limit, and so the size of a block."""

WINDOW = 1024
"""Most tokens of a pair, by Pinecone's documentation of its reranker."""

TRUNCATING = ("bge-reranker-v2-m3", "pinecone-rerank-v0")
"""Models that refuse a request for one long passage unless they are told to cut it."""


class Ranked(Protocol):
    """One document's score, and its position in the request."""

    @property
    def index(self) -> int: ...
    @property
    def score(self) -> float: ...


class RerankResult(Protocol):
    """What a request comes back with; ``data`` is in order of score."""

    @property
    def model(self) -> str: ...
    @property
    def data(self) -> Sequence[Ranked]: ...


class Inference(Protocol):
    """The part of ``Pinecone(...).inference`` that is used, by keyword only."""

    def rerank(
        self,
        *,
        model: str,
        query: str,
        documents: list[str],
        top_n: int,
        return_documents: bool,
        parameters: dict[str, str] | None,
    ) -> RerankResult:
        """Score the documents against the query."""


class PineconeClient(Protocol):
    """A ``pinecone.Pinecone``."""

    @property
    def inference(self) -> Inference: ...


class PineconeReranker:
    """A reranker that Pinecone hosts; one request for every 100 distinct passages.

    Its scores are probabilities on a scale of its own: calibrate theta before relying on it. The
    service cuts a passage that is longer than the model's window and does not say so, hence no
    passage is reported as truncated. What the SDK raises is passed on.

    Args:
        model: the hosted model's name.
        client: a ``pinecone.Pinecone``; by default one with the key in the environment's
            ``PINECONE_API_KEY``, made at the first request.

    Raises:
        InvalidArgument: the model's name is empty.
    """

    score_kind: ScoreKind = "probability"
    scale_known = False

    def __init__(self, model: str = RERANKER, *, client: PineconeClient | None = None) -> None:
        if not isinstance(model, str) or not model.strip():
            raise InvalidArgument("model", model, f"name a hosted reranker, such as {RERANKER}")
        self.model = model
        self._client = client
        self.name: str | None = f"pinecone:{model}" if client is None else None

    @property
    def fingerprint(self) -> str:
        """Service and model, whose revision and precision Pinecone does not tell, and its window."""
        return f"pinecone/{self.model}/hosted/{WINDOW}"

    def load(self) -> None:
        """Make the client now; nothing is sent.

        Raises:
            MissingExtra: the SDK is not installed.
            InvalidArgument: there is no client, and no key in the environment.
        """
        self._inference()

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the scores of successive blocks of 100 ``texts``; equal texts are sent once.

        Raises:
            ScoreError: the reply lacks a passage, or another model has answered.
        """
        inference = self._inference()
        return blocks_of_distinct(
            texts, lambda fresh: self._rerank(inference, query, fresh), DOCUMENTS_A_REQUEST
        )

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The scores of all ``texts``, in order."""
        return [score for block in self.blocks(query, texts) for score in block.scores]

    def _rerank(self, inference: Inference, query: str, texts: Sequence[str]) -> list[RawScore]:
        question, _ = readable(query, WINDOW)
        sent = [readable(text, WINDOW) for text in texts]
        result = inference.rerank(
            model=self.model,
            query=question,
            documents=[text for text, _ in sent],
            top_n=len(sent),
            return_documents=False,
            parameters={"truncate": "END"} if self.model in TRUNCATING else None,
        )
        if result.model != self.model:
            raise ScoreError(f"Pinecone scored with {result.model} instead of {self.model}: name that one")
        if sorted(int(ranked.index) for ranked in result.data) != list(range(len(sent))):
            returned = f"{len(result.data)} scores for {len(sent)} passages"
            raise ScoreError(f"Pinecone returned {returned}, or not one for each")
        scores = {int(ranked.index): float(ranked.score) for ranked in result.data}
        return [RawScore(scores[position], cut) for position, (_, cut) in enumerate(sent)]

    def _inference(self) -> Inference:
        if self._client is not None:
            return self._client.inference
        key = os.environ.get(API_KEY)
        if not key:
            raise InvalidArgument(API_KEY, key, "set it to the account's key, or give a client")
        return _shared_client(key, os.getpid()).inference


@lru_cache(maxsize=2)
def _shared_client(key: str, _process: int) -> PineconeClient:
    """One client a process and key, so that instances copy, pickle and share connections."""
    try:
        from pinecone import Pinecone  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("pinecone", "lara-plugins[pinecone]") from error
    client: PineconeClient = Pinecone(api_key=key)
    return client
