"""The real OpenAI client of LlamaIndex: streams, and calls that outlive the deadline."""

from __future__ import annotations

import pytest
from chat_server import Chat, ChatServer, Request
from llama_index.core import VectorStoreIndex
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_lara import RefineInThrees, lara_query_engine
from openai_replies import (
    ANSWER,
    PROSE,
    STEP,
    UNCHANGED,
    WHOLE,
    answering,
    apieces,
    client,
    hanging,
    in_turn,
    pieces,
    refining,
    typed,
    wanted,
)
from support_traces import facts, lara
from towers import LOOKUP

from lara_plugins import QueryClock

LISTING = "Which towers were completed?"

both = pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])


def given(nodes: list[TextNode]) -> list[NodeWithScore]:
    return [NodeWithScore(node=node) for node in nodes]


@both
async def test_a_call_that_outlives_the_deadline(index: VectorStoreIndex, tools: bool) -> None:
    with hanging() as event, ChatServer(lambda request: Chat(withhold=event, silent=True)) as server:
        llm = client(server, tools)
        responses = [
            refining(index, llm, afford=0.5).query(LOOKUP),
            await refining(index, llm, afford=0.5).aquery(LOOKUP),
        ]
        stream = refining(index, llm, afford=0.5, streaming=True).query(LOOKUP)
        text = "".join(pieces(stream))
        astream = await refining(index, llm, afford=0.5, streaming=True).aquery(LOOKUP)
        atext = "".join(await apieces(astream))
    assert text == atext == str(responses[0]) == str(responses[1])
    assert "the time ran out" in text
    for response in (*responses, stream, astream):
        assert facts(response, "answer")["outcome"] == "out_of_time"
        assert len(response.source_nodes) == 3


async def test_the_last_whole_answer_stands_at_the_deadline(index: VectorStoreIndex) -> None:
    for asynchronous in (False, True):
        with hanging() as event, ChatServer(in_turn(answering, Chat(withhold=event))) as server:
            engine = refining(index, client(server, tools=True), afford=1.0, top_k=9)
            response = await engine.aquery(LOOKUP) if asynchronous else engine.query(LOOKUP)
        # p0 is the first node whatever the retriever's order of the others.
        assert str(response) == ANSWER
        assert facts(response, "answer")["outcome"] == "stopped_early 1/3"
        assert len(response.source_nodes) == 9


@both
async def test_a_deadline_amid_a_stream(index: VectorStoreIndex, tools: bool) -> None:
    with hanging() as event, ChatServer(lambda r: typed(r, wanted(r), withhold=event, pieces=70)) as server:
        engine = refining(index, client(server, tools), afford=0.5, streaming=True)
        response = engine.query(LOOKUP)
        shown = "".join(pieces(response))
        later = await engine.aquery(LOOKUP)
        ashown = "".join(await apieces(later))
    for each, text in ((response, shown), (later, ashown)):
        assert text
        assert ANSWER.startswith(text)
        assert facts(each, "answer")["outcome"] == "truncated"
        assert len(each.source_nodes) == 3


@both
async def test_usage_of_a_stream(nodes: list[TextNode], tools: bool) -> None:
    with ChatServer(answering) as server:
        asking = client(server, tools, additional_kwargs={"stream_options": {"include_usage": True}})
        for llm, reported in ((asking, (120, 15)), (client(server, tools), (None, None))):
            synthesizer = RefineInThrees(llm, streaming=True)
            response = synthesizer.synthesize(LOOKUP, given(nodes[:3]))
            list(pieces(response))
            later = await synthesizer.asynthesize(LOOKUP, given(nodes[:3]))
            await apieces(later)
            for each in (response, later):
                answered = facts(each, "answer")
                assert (answered["input_tokens"], answered["output_tokens"]) == reported


@both
@pytest.mark.parametrize("question", [LOOKUP, LISTING], ids=["refine", "batch"])
async def test_streaming_is_real(
    index: VectorStoreIndex, nodes: list[TextNode], tools: bool, question: str
) -> None:
    """The end of the reply is withheld until its beginning has been shown."""
    reply = {**WHOLE, "evidence": [{"passage": 1, "quote": "Tokyo Tower is 333 metres tall."}]}

    def respond(request: Request) -> Chat:
        return typed(request, STEP if question == LOOKUP else reply, withhold=event, pieces=5)

    with hanging() as event, ChatServer(respond) as server:
        llm = client(server, tools)
        engine = (
            refining(index, llm, streaming=True)
            if question == LOOKUP
            else lara_query_engine(
                index.as_retriever(similarity_top_k=50), llm, 600.0, "embedded", streaming=True
            )
        )
        response = engine.query(question)
        stream = pieces(response)
        first = next(stream)
        assert first
        assert not event.is_set()
        event.set()
        rest = list(stream)
        assert len(rest) > 2
        assert first + "".join(rest) == ANSWER
        assert facts(response, "answer")["replayed"] is False

        event.clear()
        later = await engine.aquery(question)
        assert isinstance(later, AsyncStreamingResponse)
        astream = later.async_response_gen()
        first = await anext(astream)
        assert first
        assert not event.is_set()
        event.set()
        assert first + "".join([text async for text in astream]) == ANSWER
        assert facts(later, "answer")["outcome"] == "complete"


@both
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_fragments_of_any_size(nodes: list[TextNode], tools: bool, size: int) -> None:
    answer = 'The “tower” \\ is 330 metres\n tall: "✓" [1].'
    step = {**STEP, "answer": answer}
    with ChatServer(lambda request: typed(request, step, pieces=size)) as server:
        synthesizer = RefineInThrees(client(server, tools), streaming=True)
        response = synthesizer.synthesize(LOOKUP, given(nodes[:3]))
        assert "".join(pieces(response)) == answer
        later = await synthesizer.asynthesize(LOOKUP, given(nodes[:3]))
        assert "".join(await apieces(later)) == answer


def test_only_the_last_window_is_streamed(nodes: list[TextNode]) -> None:
    with ChatServer(answering) as server:
        response = RefineInThrees(client(server, tools=True), streaming=True).synthesize(
            LOOKUP, given(nodes[:9])
        )
        assert "".join(pieces(response)) == ANSWER
        assert [bool(request.get("stream")) for request in server.requests] == [False, False, True]


def test_an_unchanged_last_window_replays_the_answer(nodes: list[TextNode]) -> None:
    with ChatServer(in_turn(answering, lambda request: typed(request, UNCHANGED))) as server:
        response = RefineInThrees(client(server, tools=True), streaming=True).synthesize(
            LOOKUP, given(nodes[:6])
        )
        assert "".join(pieces(response)) == ANSWER
    assert facts(response, "answer")["replayed"] is True


def test_a_repair_must_fit_the_time(nodes: list[TextNode]) -> None:
    now = 100.0

    def slow(request: Request) -> Chat:
        nonlocal now
        now += 3.8
        return PROSE

    with ChatServer(slow) as server, QueryClock(afford=4.0, now=lambda: now):
        response = RefineInThrees(client(server, tools=True)).synthesize(LOOKUP, given(nodes[:6]))
        assert len(server.requests) == 1
    assert facts(response, "answer")["repairs"] == 0
    assert facts(response, "answer")["outcome"] == "stopped_early 1/2"
    assert any("it was not repaired" in note for note in lara(response)["notes"])
