"""Hybrid retrieval: how to search a corpus of a given size, the encoders, and the indexes."""

from lara_plugins.retrieval.bm25 import Bm25Encoder, DocumentFrequencies
from lara_plugins.retrieval.embedded import EmbeddedIndex
from lara_plugins.retrieval.embedding import EmbeddingEncoder
from lara_plugins.retrieval.encoders import DenseEncoder, SparseEncoder, SparseVector
from lara_plugins.retrieval.filters import Filter
from lara_plugins.retrieval.hyde import HYDE_TEMPLATE
from lara_plugins.retrieval.index import CONTENT_HASH, HybridIndex, Match
from lara_plugins.retrieval.pinecone import PineconeDenseEncoder, PineconeIndex, PineconeSparseEncoder
from lara_plugins.retrieval.plan import PoolRule, RetrievalPlan, retrieval_plan
from lara_plugins.retrieval.settings import Namespaced, Namespaces, SearchSettings
from lara_plugins.retrieval.splade import SpladeEncoder
from lara_plugins.retrieval.tokens import terms
from lara_plugins.retrieval.word_vectors import WordLlamaEncoder

__all__ = [
    "CONTENT_HASH",
    "HYDE_TEMPLATE",
    "Bm25Encoder",
    "DenseEncoder",
    "DocumentFrequencies",
    "EmbeddedIndex",
    "EmbeddingEncoder",
    "Filter",
    "HybridIndex",
    "Match",
    "Namespaced",
    "Namespaces",
    "PineconeDenseEncoder",
    "PineconeIndex",
    "PineconeSparseEncoder",
    "PoolRule",
    "RetrievalPlan",
    "SearchSettings",
    "SparseEncoder",
    "SparseVector",
    "SpladeEncoder",
    "WordLlamaEncoder",
    "retrieval_plan",
    "terms",
]
