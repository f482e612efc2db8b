"""Nodes of LlamaIndex in an order that is known, for gates and budgets."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore, TextNode

from lara_plugins import CallableScorer

SCORES = [0.31, 0.9, 0.3, 0.29999, 0.9, 0.05, 0.0, 1.0, 0.31, 0.2, 0.1, 0.4]
"""What the nodes score, as they are listed."""


def as_listed(query: str, texts: Sequence[str]) -> list[float]:
    return SCORES[: len(texts)]


def listed(known: bool = True) -> CallableScorer:
    return CallableScorer(as_listed, "probability", scale_known=known)


def given(nodes: Sequence[TextNode], score: float | None = 0.5) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=score) for node in nodes]


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [node.node_id for node in nodes]
