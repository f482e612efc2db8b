"""The real OpenAI client of LlamaIndex against a server that speaks its protocol on loopback."""

from __future__ import annotations

import json

import openai
import pytest
from chat_server import Chat, ChatServer
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_lara import RefineInThrees, lara_query_engine
from openai_replies import (
    ANSWER,
    PROSE,
    QUOTE,
    SOON,
    STEP,
    UNCHANGED,
    answering,
    apieces,
    client,
    in_turn,
    pieces,
    prompt,
    refining,
    typed,
)
from support_traces import facts, lara
from towers import LOOKUP

both = pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])


def given(nodes: list[TextNode]) -> list[NodeWithScore]:
    return [NodeWithScore(node=node) for node in nodes]


@both
async def test_a_typed_reply(index: VectorStoreIndex, tools: bool) -> None:
    with ChatServer(answering) as server:
        retriever = index.as_retriever(similarity_top_k=50)
        for streaming in (False, True):
            engine = lara_query_engine(
                retriever, client(server, tools), 600.0, "embedded", streaming=streaming
            )
            sync, later = engine.query(LOOKUP), await engine.aquery(LOOKUP)
            if streaming:
                assert "".join(pieces(sync)) == ANSWER
                assert "".join(await apieces(later)) == ANSWER
            else:
                assert str(sync) == str(later) == ANSWER
            for response in (sync, later):
                assert facts(response, "answer")["outcome"] == "sufficient"
                assert facts(response, "answer")["citations"]["1"][0]["quote"] == QUOTE
                assert (facts(response, "answer")["calls"], facts(response, "answer")["repairs"]) == (1, 0)
        assert len(server.requests) == 4


def test_the_contract_goes_beside_the_template(nodes: list[TextNode]) -> None:
    with ChatServer(answering) as server:
        RefineInThrees(client(server, tools=True)).synthesize(LOOKUP, given(nodes[:1]))
        RefineInThrees(client(server, tools=False)).synthesize(LOOKUP, given(nodes[:1]))
        as_tool, as_text = server.requests
    [tool] = as_tool["tools"]
    assert tool["function"]["name"] == "refine_answer"
    assert set(tool["function"]["parameters"]["properties"]) == {"changed", "answer", "complete", "evidence"}
    assert as_tool["tool_choice"] == "required"
    assert "reply_contract" not in prompt(as_tool)
    assert "tools" not in as_text
    assert '<reply_contract name="StepReply">' in prompt(as_text)
    for request in (as_tool, as_text):
        assert '<passage number="1"' in prompt(request)
        assert LOOKUP in prompt(request)


@both
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
async def test_prose_is_repaired_once(nodes: list[TextNode], tools: bool, streaming: bool) -> None:
    for asynchronous in (False, True):
        with ChatServer(in_turn(PROSE, answering)) as server:
            synthesizer = RefineInThrees(client(server, tools), streaming=streaming)
            if asynchronous:
                response = await synthesizer.asynthesize(LOOKUP, given(nodes[:3]))
                text = "".join(await apieces(response)) if streaming else str(response)
            else:
                response = synthesizer.synthesize(LOOKUP, given(nodes[:3]))
                text = "".join(pieces(response)) if streaming else str(response)
            _, repair = server.requests
        assert text == ANSWER
        assert (facts(response, "answer")["calls"], facts(response, "answer")["repairs"]) == (1, 1)
        assert "could not be used: the reply is not a StepReply: it holds no JSON object" in prompt(repair)
        assert "rather tall" in prompt(repair)
        assert any("asked again" in note for note in lara(response)["notes"])


@pytest.mark.parametrize(
    "malformed",
    [
        '{"changed": true, "answer": "The Eiff',
        '{"changed": "perhaps"}',
        '{"changed": true, "answer": ""}',
        "[1, 2]",
        "",
    ],
)
async def test_malformed_tool_arguments_are_repaired_once(nodes: list[TextNode], malformed: str) -> None:
    with ChatServer(in_turn(Chat(arguments=malformed), answering)) as server:
        response = RefineInThrees(client(server, tools=True)).synthesize(LOOKUP, given(nodes[:3]))
    assert str(response) == ANSWER
    assert facts(response, "answer")["repairs"] == 1
    with ChatServer(in_turn(Chat(arguments=malformed), answering)) as server:
        synthesizer = RefineInThrees(client(server, tools=True))
        assert str(await synthesizer.asynthesize(LOOKUP, given(nodes[:3]))) == ANSWER


@both
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
async def test_two_unreadable_replies_are_an_outcome(
    nodes: list[TextNode], tools: bool, streaming: bool
) -> None:
    with ChatServer(in_turn(PROSE)) as server:
        synthesizer = RefineInThrees(client(server, tools), streaming=streaming)
        response = synthesizer.synthesize(LOOKUP, given(nodes[:3]))
        text = "".join(pieces(response)) if streaming else str(response)
        later = await synthesizer.asynthesize(LOOKUP, given(nodes[:3]))
        atext = "".join(await apieces(later)) if streaming else str(later)
        assert len(server.requests) == 4
    assert text == atext
    assert "could not be read as a typed answer" in text
    assert facts(response, "answer")["outcome"] == "unparsable"
    assert any("rather tall" in note for note in lara(response)["notes"]), "what was said stands in the trace"
    assert len(response.source_nodes) == 3


def test_an_unreadable_window_keeps_the_answer_before_it(nodes: list[TextNode]) -> None:
    with ChatServer(in_turn(answering, PROSE)) as server:
        response = RefineInThrees(client(server, tools=True)).synthesize(LOOKUP, given(nodes[:6]))
    assert str(response) == ANSWER
    assert [ask["brought"] for ask in facts(response, "answer")["asks"]] == ["changed", "reply", "unreadable"]


def test_json_amid_prose_or_in_a_fence(nodes: list[TextNode]) -> None:
    replies = (
        f"Here you are:\n```json\n{json.dumps(STEP)}\n```\nAnything else?",
        f"<think>braces {{ and }} </think>{json.dumps(STEP, indent=2)}",
    )
    for text in replies:
        for tools in (True, False):  # some models write the arguments of a tool as text
            with ChatServer(in_turn(Chat(text=text))) as server:
                response = RefineInThrees(client(server, tools)).synthesize(LOOKUP, given(nodes[:3]))
            assert str(response) == ANSWER
            assert facts(response, "answer")["repairs"] == 0


async def test_a_refused_call_is_the_clients_to_repeat(nodes: list[TextNode]) -> None:
    for status in (429, 500, 503):
        with ChatServer(in_turn(Chat(status=status, headers=SOON), answering)) as server:
            synthesizer = RefineInThrees(client(server, tools=True, max_retries=1))
            response = synthesizer.synthesize(LOOKUP, given(nodes[:3]))
            assert len(server.requests) == 2
        assert str(response) == ANSWER
        assert (facts(response, "answer")["calls"], facts(response, "answer")["repairs"]) == (1, 0)
    with ChatServer(in_turn(Chat(status=429, headers=SOON), answering)) as server:
        synthesizer = RefineInThrees(client(server, tools=True, max_retries=1))
        assert str(await synthesizer.asynthesize(LOOKUP, given(nodes[:3]))) == ANSWER


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, openai.InternalServerError),
        (429, openai.RateLimitError),
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
    ],
)
async def test_the_clients_error_comes_through(
    index: VectorStoreIndex, status: int, error: type[openai.APIStatusError]
) -> None:
    with ChatServer(in_turn(Chat(status=status, headers=SOON))) as server:
        llm = client(server, tools=True)
        with pytest.raises(error):
            refining(index, llm).query(LOOKUP)
        with pytest.raises(error):
            await refining(index, llm).aquery(LOOKUP)
        with pytest.raises(error):
            list(pieces(refining(index, llm, streaming=True).query(LOOKUP)))
        with pytest.raises(error):
            await apieces(await refining(index, llm, streaming=True).aquery(LOOKUP))
        assert len(server.requests) == 4, "a failed call is not a bad reply: it is not repaired"


async def test_a_server_that_is_gone(nodes: list[TextNode]) -> None:
    with ChatServer(answering) as server:
        llm = client(server, tools=True)
    with pytest.raises(openai.APIConnectionError):
        RefineInThrees(llm).synthesize(LOOKUP, given(nodes[:3]))
    with pytest.raises(openai.APIConnectionError):
        await RefineInThrees(llm).asynthesize(LOOKUP, given(nodes[:3]))


@both
def test_usage_is_what_the_provider_reports(nodes: list[TextNode], tools: bool) -> None:
    first = Chat(text="prose", usage=(1000, 1))
    with ChatServer(
        in_turn(
            first,
            lambda request: typed(request, STEP, usage=(200, 20)),
            lambda request: typed(request, UNCHANGED, usage=(30, 3)),
        )
    ) as server:
        response = RefineInThrees(client(server, tools)).synthesize(LOOKUP, given(nodes[:6]))
    answered = facts(response, "answer")
    assert (answered["input_tokens"], answered["output_tokens"]) == (1230, 24)
    with ChatServer(lambda request: typed(request, STEP, usage=None)) as server:
        response = RefineInThrees(client(server, tools)).synthesize(LOOKUP, given(nodes[:3]))
    assert facts(response, "answer")["input_tokens"] is None


def test_windows_too_big_for_the_context_are_split_in_order(nodes: list[TextNode]) -> None:
    long = [TextNode(id_=f"n{n}", text=f"Number {n}. " + "It is a tower. " * 120) for n in range(6)]
    with ChatServer(lambda request: typed(request, UNCHANGED)) as server:
        llm = client(server, tools=False, context_window=1600)
        response = RefineInThrees(llm).synthesize(LOOKUP, given(long))
        assert all(len(prompt(request)) / 3 < 1600 for request in server.requests)
    asks = facts(response, "answer")["asks"]
    assert len(asks) > 2
    assert [number for ask in asks for number in ask["passages"]] == sorted(
        number for ask in asks for number in ask["passages"]
    )
    assert any("too big for the model's context" in note for note in lara(response)["notes"])
