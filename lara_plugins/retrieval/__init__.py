"""Hybrid retrieval: how to search a corpus of a given size, the encoders, and the indexes."""

from lara_plugins.retrieval.bm25 import Bm25Encoder, DocumentFrequencies
from lara_plugins.retrieval.embedded import EmbeddedIndex
from lara_plugins.retrieval.encoders import DenseEncoder, SparseEncoder, SparseVector
from lara_plugins.retrieval.index import CONTENT_HASH, HybridIndex, Match
from lara_plugins.retrieval.plan import PoolRule, RetrievalPlan, retrieval_plan
from lara_plugins.retrieval.tokens import terms
from lara_plugins.retrieval.word_vectors import WordLlamaEncoder

__all__ = [
    "CONTENT_HASH",
    "Bm25Encoder",
    "DenseEncoder",
    "DocumentFrequencies",
    "EmbeddedIndex",
    "HybridIndex",
    "Match",
    "PoolRule",
    "RetrievalPlan",
    "SparseEncoder",
    "SparseVector",
    "WordLlamaEncoder",
    "retrieval_plan",
    "terms",
]
