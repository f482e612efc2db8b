from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import TextNode
from llama_index_lara import ExtractiveLLM
from towers import PASSAGES
from word_embedding import WordEmbedding

from lara_plugins import EmbeddedIndex


@pytest.fixture
def nodes() -> list[TextNode]:
    return [
        TextNode(id_=passage.id, text=passage.text, metadata={"title": passage.heading})
        for passage in PASSAGES
    ]


@pytest.fixture
def index(nodes: list[TextNode]) -> VectorStoreIndex:
    """An application's own index, in memory."""
    return VectorStoreIndex(nodes, embed_model=WordEmbedding())


@pytest.fixture
def hybrid(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index") as hybrid_index:
        hybrid_index.upsert(PASSAGES)
        yield hybrid_index


@pytest.fixture
def llm() -> ExtractiveLLM:
    return ExtractiveLLM()


@pytest.fixture(autouse=True)
def _no_global_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr(Settings, "_callback_manager", CallbackManager())
