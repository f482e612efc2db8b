"""A real embedding model for LlamaIndex applications in tests: no account, no download."""

from __future__ import annotations

from llama_index.core.embeddings import BaseEmbedding

from lara_plugins.retrieval import WordLlamaEncoder

_encoder = WordLlamaEncoder()


class WordEmbedding(BaseEmbedding):
    """WordLlama vectors."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return _encoder.encode_query(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)
