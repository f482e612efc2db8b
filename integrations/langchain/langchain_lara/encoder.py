"""LangChain's embedding models as dense encoders of a hybrid index."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from lara_plugins import EmbeddingEncoder, InvalidArgument


def dense_encoder(
    embeddings: Embeddings, *, dimension: int | None = None, name: str | None = None
) -> EmbeddingEncoder:
    """The dense encoder that an embedding model is.

    Args:
        embeddings: the application's embedding model, such as ``OpenAIEmbeddings``; it stays as it is.
        dimension: numbers in its vectors; if not given, one short text is embedded to find out.
        name: what tells it from other models; its ``model`` or ``model_name`` if not given.

    Raises:
        InvalidArgument: there is no name, or the dimension is no positive number.
    """
    named = (getattr(embeddings, key, None) for key in ("model", "model_name"))
    name = next((own for own in named if isinstance(own, str)), None) if name is None else name
    if name is None:
        raise InvalidArgument("name", name, f"{type(embeddings).__name__} tells none: name its model")
    if dimension is None:
        dimension = len(embeddings.embed_query("dimension"))
    return EmbeddingEncoder(embeddings.embed_documents, embeddings.embed_query, name, dimension)
