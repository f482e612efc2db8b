"""HybridRetriever in both frameworks, over a folder and at Pinecone: filter, namespace, pool, HyDE."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Chat, ChatServer
from hashed_words import HashedWords
from openai_replies import hanging, prompt
from retrievers import RETRIEVALS, Retrieval
from towers import LOOKUP, PASSAGES

from lara_plugins import Bm25Encoder, EmbeddedIndex, InvalidArgument, Patience, PineconeIndex, QueryClock
from lara_plugins.query import current_state

KINDS = ["sync", "async"]
DATED = [
    replace(passage, metadata={"year": 2000 + n, "lang": "de" if n % 2 else "en"})
    for n, passage in enumerate(PASSAGES)
]
SECRET = [replace(PASSAGES[0], id="secret", metadata={"year": 1999})]
BM25 = Bm25Encoder.fit(passage.content for passage in PASSAGES)


@pytest.fixture(params=RETRIEVALS)
def lib(request: pytest.FixtureRequest) -> Retrieval:
    return RETRIEVALS[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index", dense=HashedWords(64)) as index:
        index.upsert(DATED)
        yield index


@pytest.fixture
def pinecone() -> Iterator[PineconeIndex]:
    pytest.importorskip("pinecone", reason="needs lara-plugins[pinecone]")
    from pinecone_clients import client_of
    from pinecone_server import PineconeServer

    with PineconeServer() as server:
        index = PineconeIndex.create(
            client_of(server),
            "passages",
            dense=HashedWords(64),
            sparse=BM25,
            namespace="public",
            patience=Patience(first_pause=0.001),
        )
        index.upsert(DATED)
        index.wait_until_visible()
        secret = index.in_namespace("secret")
        secret.upsert(SECRET)
        secret.wait_until_visible()
        yield index


@pytest.fixture(params=["folder", "pinecone"])
def index(request: pytest.FixtureRequest) -> EmbeddedIndex | PineconeIndex:
    opened: EmbeddedIndex | PineconeIndex = request.getfixturevalue(request.param)
    return opened


Index = EmbeddedIndex | PineconeIndex


@pytest.mark.parametrize("kind", KINDS)
async def test_a_retrievers_filter_and_a_calls(lib: Retrieval, index: Index, kind: str) -> None:
    retriever = lib.retriever(index, filter={"year": {"$gte": 2008}}, alpha=0.5)
    assert sorted(await lib.ids(kind, retriever, LOOKUP)) == ["p10", "p11", "p8", "p9"]
    assert sorted(await lib.ids(kind, retriever, LOOKUP, filter={"lang": "de"})) == ["p11", "p9"]
    assert await lib.ids(kind, retriever, LOOKUP, filter={"year": 2000}) == [], "a call does not widen it"
    assert sorted(await lib.ids(kind, retriever, LOOKUP, filter={"source": "8.md"})) == ["p8"]
    assert len(await lib.ids(kind, retriever, LOOKUP)) == 4, "a call leaves the retriever as it is"


@pytest.mark.parametrize("kind", KINDS)
async def test_pool_top_k_and_limit(lib: Retrieval, index: Index, kind: str) -> None:
    matches = index.search(LOOKUP, limit=12, alpha=0.5)
    for arguments, count in (
        ({}, 12),
        ({"pool": "oversample", "top_k": 2}, 8),
        ({"pool": "proportional", "top_k": 3}, 3),
        ({"limit": 5, "pool": "oversample"}, 5),
    ):
        retriever = lib.retriever(index, alpha=0.5, **arguments)
        found = await lib.ids(kind, retriever, LOOKUP)
        assert found == [match.passage.id for match in matches[:count]]
        assert await lib.ids(kind, retriever, LOOKUP, limit=2) == found[:2]


@pytest.mark.parametrize("kind", KINDS)
async def test_namespaces(lib: Retrieval, pinecone: PineconeIndex, kind: str) -> None:
    retriever = lib.retriever(pinecone)
    assert len(await lib.ids(kind, retriever, LOOKUP)) == 12
    assert await lib.ids(kind, retriever, LOOKUP, namespace="secret") == ["secret"]
    assert len(await lib.ids(kind, retriever, LOOKUP)) == 12
    of_secret = lib.retriever(pinecone, namespace="secret")
    assert await lib.ids(kind, of_secret, LOOKUP) == ["secret"]
    assert len(await lib.ids(kind, of_secret, LOOKUP, namespace="public")) == 12
    assert await lib.ids(kind, of_secret, LOOKUP, namespace="none") == []
    trace = await lib.trace(lib.retriever(pinecone, namespace="none"), LOOKUP, afford=60.0)
    assert trace["phases"][0]["reason"] == "the namespace 'none' holds no passage"


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_not_there_to_choose(lib: Retrieval, folder: EmbeddedIndex, kind: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^namespace='a': EmbeddedIndex has none"):
        lib.retriever(folder, namespace="a")
    retriever = lib.retriever(folder)
    with pytest.raises(InvalidArgument, match=r"^namespace='a': EmbeddedIndex has none"):
        await lib.ids(kind, retriever, LOOKUP, namespace="a")
    with pytest.raises(InvalidArgument, match=r"^hyde=True: give the retriever an LLM"):
        await lib.ids(kind, retriever, LOOKUP, hyde=True)
    with pytest.raises(InvalidArgument, match=r"^filter\['year'\]='\$near': use one of"):
        await lib.ids(kind, retriever, LOOKUP, filter={"year": {"$near": 3}})
    with pytest.raises(InvalidArgument, match=r"^filter=\[\]: give a dict"):
        await lib.ids(kind, retriever, LOOKUP, filter=[])
    with pytest.raises(TypeError, match="top"):
        await lib.ids(kind, retriever, LOOKUP, top=3)


@pytest.mark.parametrize("index", [None, "./my-index", {}])
def test_what_is_no_index_is_refused(lib: Retrieval, index: Any) -> None:  # noqa: ANN401 - of no right type
    with pytest.raises(InvalidArgument, match=r"^index=.*give a hybrid index"):
        lib.retriever(index)


@pytest.mark.parametrize("llm", ["gpt-4.1-mini", True, ["a", "model"]])
def test_what_is_no_llm_is_refused(lib: Retrieval, folder: EmbeddedIndex, llm: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^hyde=.*: give a"):
        lib.retriever(folder, hyde=llm)


def imagined(request: dict[str, Any]) -> Chat:
    return Chat(text="Bread rises because yeast makes gas.")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_hypothetical_answer_is_searched_for(lib: Retrieval, index: Index, kind: str) -> None:
    expected = index.search(LOOKUP, limit=12, alpha=0.9, dense_text=imagined({}).text)
    literal = [match.passage.id for match in index.search(LOOKUP, limit=12, alpha=0.9)]
    with ChatServer(imagined) as server:
        retriever = lib.retriever(index, alpha=0.9, hyde=lib.llm(server))
        assert await lib.ids(kind, retriever, LOOKUP) == [match.passage.id for match in expected]
        assert len(server.requests) == 1
        assert await lib.ids(kind, retriever, LOOKUP, hyde=False) == literal
        assert len(server.requests) == 1
        own = lib.retriever(index, alpha=0.9, hyde=lib.llm(server), hyde_prompt=lib.own_prompt)
        await lib.ids(kind, own, LOOKUP)
        ours, theirs = map(prompt, server.requests)
    assert ours.rstrip().endswith(f"<question>\n{LOOKUP}\n</question>")
    assert "untrusted" in ours
    assert theirs == f"Imagine a document about: <question>\n{LOOKUP}\n</question>"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("chat", "reason"),
    [
        (Chat(status=500), "Error"),
        (Chat(status=429), "RateLimitError"),
        (Chat(body="no JSON"), "Error"),
        (Chat(text=" "), "said nothing"),
    ],
)
async def test_the_llms_failure_is_told_and_the_question_searched(
    lib: Retrieval,
    folder: EmbeddedIndex,
    kind: str,
    chat: Chat,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "lara_plugins")
    literal = [match.passage.id for match in folder.search(LOOKUP, limit=12, alpha=0.9)]
    with ChatServer(lambda request: chat) as server:
        retriever = lib.retriever(folder, alpha=0.9, hyde=lib.llm(server))
        assert await lib.ids(kind, retriever, LOOKUP) == literal
    assert "HyDE: the literal question is embedded: the LLM " in caplog.text
    assert reason in caplog.text


@pytest.mark.parametrize("kind", KINDS)
async def test_the_deadline_bounds_the_llm(
    lib: Retrieval, folder: EmbeddedIndex, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    literal = [match.passage.id for match in folder.search(LOOKUP, limit=12, alpha=0.9)]
    with hanging() as never, ChatServer(lambda request: Chat(text="x", withhold=never)) as server:
        retriever = lib.retriever(folder, alpha=0.9, hyde=lib.llm(server))
        with QueryClock(afford=0.8) as clock:
            assert await lib.ids(kind, retriever, LOOKUP) == literal
            assert clock.elapsed() >= 0.2
        never.set()
    assert "took longer than the 0.2 s that it may" in caplog.text
    assert current_state() is None


async def test_an_applications_budget_bounds_the_llm_and_its_trace_tells(
    lib: Retrieval, folder: EmbeddedIndex
) -> None:
    with hanging() as never, ChatServer(lambda request: Chat(text="x", withhold=never)) as server:
        trace = await lib.trace(lib.retriever(folder, alpha=0.9, hyde=lib.llm(server)), LOOKUP, afford=2.0)
        never.set()
    hyde, retrieval = trace["phases"][:2]
    assert (hyde["phase"], retrieval["phase"]) == ("hyde", "retrieval")
    assert hyde["reason"].endswith("the LLM took longer than the 0.5 s that it may")
    assert f"HyDE: {hyde['reason']}" in trace["notes"]


def test_a_prompt_without_the_question_is_refused(lib: Retrieval, folder: EmbeddedIndex) -> None:
    template = type(lib.own_prompt)
    bare = (
        template("Imagine.")  # type: ignore[call-arg]
        if lib is RETRIEVALS["llama-index"]
        else template.from_messages([("human", "Imagine.")])  # type: ignore[attr-defined]
    )
    with pytest.raises(InvalidArgument, match=r"^hyde_(template|prompt)=.* needs \{(query_str|input)\}"):
        lib.retriever(folder, hyde_prompt=bare)
