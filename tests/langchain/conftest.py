from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lara.state import open_runs
from langchain_parts import DOCUMENTS, StateRecorder, WordEmbeddings
from towers import PASSAGES

from lara_plugins import EmbeddedIndex


@pytest.fixture
def documents() -> list[Document]:
    return [document.model_copy(deep=True) for document in DOCUMENTS]


@pytest.fixture
def retriever(documents: list[Document]) -> BaseRetriever:
    """An application's own retriever, over vectors in memory."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(documents)
    return store.as_retriever(search_kwargs={"k": 50})


@pytest.fixture
def hybrid(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index") as hybrid_index:
        hybrid_index.upsert(PASSAGES)
        yield hybrid_index


@pytest.fixture
def recorder() -> StateRecorder:
    return StateRecorder()


@pytest.fixture(autouse=True)
def _no_run_is_left_open() -> Iterator[None]:
    yield
    assert open_runs() == 0, "what has ended, failed or was cancelled is forgotten"
