"""Pinecone's inference calls in the stand-in: embed and rerank.

They answer as the published specifications of the inference service say (2025-04 to 2026-04;
2026-07, which SDK 10 speaks, is taken to be the same). The models are made up, their documented
limits are not: 96 texts an embedding request; 100 documents a rerank request, 256 tokens of a
query and 1,024 of a pair, where longer ones are refused unless ``truncate`` is END. A token is
taken to be a word.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from typing import Any

from pinecone_http import Json
from pinecone_limits import bad

MOST_TEXTS = 96
MOST_DOCUMENTS = 100
MOST_QUERY_TOKENS = 256
MOST_PAIR_TOKENS = 1024

DENSE = {"llama-text-embed-v2": 1024, "multilingual-e5-large": 1024}
"""Dense models, and their dimension where none is asked for."""

SPARSE = ("pinecone-sparse-english-v0",)


def embed(request: Json) -> Json:
    """The embeddings of texts: of words, each a direction of its own.

    Dense vectors are three units long rather than one, and those of queries turned a little, so
    that a client which does not normalise, or which confuses the two, gives itself away.
    """
    model, parameters = request["model"], request.get("parameters") or {}
    texts = [item["text"] for item in request["inputs"]]
    if not 0 < len(texts) <= MOST_TEXTS:
        raise bad(f"{len(texts)} inputs: a request holds 1 to {MOST_TEXTS}")
    kind = parameters.get("input_type")
    if kind not in ("query", "passage"):
        raise bad(f"input_type={kind!r}: give query or passage")
    if model in DENSE:
        dimension = parameters.get("dimension", DENSE[model])
        data = [{"vector_type": "dense", "values": _dense(text, kind, dimension)} for text in texts]
    elif model in SPARSE:
        data = [{"vector_type": "sparse", **_sparse(text, kind)} for text in texts]
    else:
        raise bad(f"model {model} not found")
    tokens = sum(len(text.split()) for text in texts)
    return {
        "model": model,
        "vector_type": data[0]["vector_type"],
        "data": data,
        "usage": {"total_tokens": tokens},
    }


def rerank(request: Json) -> Json:
    """Documents by the share of the query's words that they hold."""
    documents = [document["text"] for document in request["documents"]]
    query = request["query"]
    if len(documents) > MOST_DOCUMENTS:
        raise bad(f"{len(documents)} documents exceed {MOST_DOCUMENTS}")
    asked = len(query.split())
    longest = asked + max(len(text.split()) for text in documents)
    cut = request.get("parameters", {}).get("truncate") == "END"
    if not cut and (asked > MOST_QUERY_TOKENS or longest > MOST_PAIR_TOKENS):
        raise bad(f"a pair of {longest} tokens is too long")
    ranked = sorted(
        ({"index": i, "score": word_overlap(query, text)} for i, text in enumerate(documents)),
        key=lambda document: -document["score"],
    )
    data = ranked[: request.get("top_n", len(ranked))]
    if request.get("return_documents", True):
        data = [document | {"document": request["documents"][document["index"]]} for document in data]
    return {"model": request["model"], "data": data, "usage": {"rerank_units": 1}}


def word_overlap(query: str, text: str) -> float:
    """The share of the query's words that the text holds."""
    words = set(query.split())
    return len(words & set(text.split())) / len(words)


def _dense(text: str, kind: str, dimension: int) -> list[float]:
    vector = [0.0] * dimension
    for word in text.lower().split():
        number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        vector[number % dimension] += 1.0 if number & (1 << 40) else -1.0
    vector[0] += 0.25 if kind == "query" else 0.5
    length = math.hypot(*vector) or 1.0
    return [3.0 * value / length for value in vector]


def _sparse(text: str, kind: str) -> dict[str, Any]:
    counts = Counter(
        int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") for word in text.lower().split()
    )
    weights = [1.0 if kind == "query" else 1.5 * count / (count + 0.5) for count in counts.values()]
    return {"sparse_indices": list(counts), "sparse_values": weights}
