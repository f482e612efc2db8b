"""LlamaIndex's embedding models as dense encoders of a hybrid index."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding

from lara_plugins import EmbeddingEncoder


def dense_encoder(
    embed_model: BaseEmbedding, *, dimension: int | None = None, name: str | None = None
) -> EmbeddingEncoder:
    """The dense encoder that an embedding model is.

    Args:
        embed_model: the application's embedding model, such as ``OpenAIEmbedding``; it stays as it is.
        dimension: numbers in its vectors; if not given, one short text is embedded to find out.
        name: what tells it from other models; its ``model_name`` if not given.

    Raises:
        InvalidArgument: there is no name, or the dimension is no positive number.
    """
    if dimension is None:
        dimension = len(embed_model.get_text_embedding("dimension"))
    return EmbeddingEncoder(
        embed_model.get_text_embedding_batch,
        embed_model.get_query_embedding,
        embed_model.model_name if name is None else name,
        dimension,
    )
