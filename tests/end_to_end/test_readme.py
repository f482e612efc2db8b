"""The README's Python examples, executed as they stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lara import ExtractiveChatModel
from langchain_parts import DOCUMENTS, WordEmbeddings
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index_lara import ExtractiveLLM
from pinecone_server import PineconeServer
from towers import PASSAGES
from word_embedding import WordEmbedding

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def llama_index() -> dict[str, object]:
    """What a reader's application has already, and what an earlier example has imported."""
    nodes = [TextNode(id_=passage.id, text=passage.text) for passage in PASSAGES]
    index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
    application: dict[str, object] = {"index": index, "llm": ExtractiveLLM()}
    application |= {"embed_model": WordEmbedding(), "passages": PASSAGES}
    exec("from llama_index_lara import *", application)  # noqa: S102
    return application


def langchain() -> dict[str, object]:
    """The same for a reader of LangChain."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(DOCUMENTS)
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from the context. Context: {context}"), ("human", "{input}")]
    )
    retriever = store.as_retriever(search_kwargs={"k": 50})
    return {"retriever": retriever, "llm": ExtractiveChatModel(), "prompt": prompt}


@pytest.fixture
def pinecone() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example(
    example: str,
    pinecone: PineconeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PINECONE_API_KEY", "key")
    monkeypatch.setenv("PINECONE_CONTROLLER_HOST", pinecone.url)
    application = langchain() if "langchain" in example else llama_index()
    exec(compile(example, "README.md", "exec"), application)  # noqa: S102
    assert "330 metres" in capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
