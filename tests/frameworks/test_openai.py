"""The real OpenAI client of each framework against a server that speaks its protocol on loopback.

Every outcome is the same in both frameworks, in all four ways of asking.
"""

from __future__ import annotations

import json

import openai
import pytest
from applications import WAYS, Framework
from both_frameworks import FRAMEWORKS
from chat_server import Chat, ChatServer, Request
from openai_replies import (
    ANSWER,
    PROSE,
    QUOTE,
    SOON,
    STEP,
    UNCHANGED,
    answering,
    in_turn,
    prompt,
    typed,
)
from towers import LISTING, LOOKUP, PASSAGES, UNANSWERABLE

from lara_plugins import Passage

both = pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])
each_way = pytest.mark.parametrize("way", WAYS)


@both
@each_way
async def test_a_typed_reply(framework: Framework, tools: bool, way: str) -> None:
    with ChatServer(answering) as server:
        application = framework.pipeline(server, tools)
        assert await application.told(way, LOOKUP) == ANSWER
        assert len(server.requests) == 1
    answered = application.facts("answer")
    assert answered["outcome"] == "sufficient"
    assert answered["citations"]["1"][0]["quote"] == QUOTE
    assert (answered["calls"], answered["repairs"]) == (1, 0)
    assert application.facts("route")["regime"] == "sequential"


def test_the_contract_goes_beside_the_template(framework: Framework) -> None:
    with ChatServer(answering) as server:
        framework.refine(server, tools=True).whole(LOOKUP)
        framework.refine(server, tools=False).whole(LOOKUP)
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
@each_way
async def test_prose_is_repaired_once(framework: Framework, tools: bool, way: str) -> None:
    with ChatServer(in_turn(PROSE, answering)) as server:
        application = framework.refine(server, tools)
        assert await application.told(way, LOOKUP) == ANSWER
        _, repair = server.requests
    answered = application.facts("answer")
    assert (answered["calls"], answered["repairs"]) == (1, 1)
    assert "could not be used: the reply is not a StepReply: it holds no JSON object" in prompt(repair)
    assert "rather tall" in prompt(repair)
    assert any("asked again" in note for note in application.notes)


@each_way
@pytest.mark.parametrize(
    "malformed",
    [
        '{"changed": true, "answer": "The Eiff',
        '{"changed": "perhaps"}',
        '{"changed": true, "answer": ""}',
        "{}",
        "",
    ],
)
async def test_malformed_tool_arguments_are_repaired_once(
    framework: Framework, way: str, malformed: str
) -> None:
    # An answer whose beginning has been shown is not taken back, so a stream hides this one.
    hidden = malformed.replace('"changed": true', '"changed": null') if "stream" in way else malformed
    with ChatServer(in_turn(Chat(arguments=hidden), answering)) as server:
        application = framework.refine(server)
        assert await application.told(way, LOOKUP) == ANSWER
    assert application.facts("answer")["repairs"] == 1


def test_two_tool_calls_that_differ_are_repaired_once() -> None:
    """LlamaIndex tells the provider to make one, and hides what comes besides."""

    def twice(request: Request) -> Chat:
        calls = [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {"name": "refine_answer", "arguments": json.dumps(arguments)},
            }
            for n, arguments in enumerate([STEP, {**STEP, "answer": "It is 331 metres tall [1]."}])
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "test", "choices": [choice]}
        return Chat(body=json.dumps(whole))

    with ChatServer(in_turn(twice, answering)) as server:
        application = FRAMEWORKS["langchain"].refine(server)
        assert application.whole(LOOKUP) == ANSWER
        assert "it holds 2 different ones; give one" in prompt(server.requests[1])
    assert application.facts("answer")["repairs"] == 1


@both
@each_way
async def test_two_unreadable_replies_are_an_outcome(framework: Framework, tools: bool, way: str) -> None:
    with ChatServer(in_turn(PROSE)) as server:
        application = framework.refine(server, tools)
        assert "could not be read as a typed answer" in await application.told(way, LOOKUP)
        assert len(server.requests) == 2
    assert application.facts("answer")["outcome"] == "unparsable"
    assert any("rather tall" in note for note in application.notes), "what was said stands in the trace"


@each_way
async def test_an_unreadable_window_keeps_the_answer_before_it(framework: Framework, way: str) -> None:
    with ChatServer(in_turn(answering, PROSE)) as server:
        application = framework.refine(server, passages=PASSAGES[:6])
        assert await application.told(way, LOOKUP) == ANSWER
    brought = [ask["brought"] for ask in application.facts("answer")["asks"]]
    assert brought == ["changed", "reply", "unreadable"]


@both
def test_json_amid_prose_or_in_a_fence(framework: Framework, tools: bool) -> None:
    replies = (
        f"Here you are:\n```json\n{json.dumps(STEP)}\n```\nAnything else?",
        f"<think>braces {{ and }} </think>{json.dumps(STEP, indent=2)}",
    )
    for text in replies:  # some models write the arguments of a tool as text
        with ChatServer(in_turn(Chat(text=text))) as server:
            application = framework.refine(server, tools)
            assert application.whole(LOOKUP) == ANSWER
        assert application.facts("answer")["repairs"] == 0


@each_way
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_refused_call_is_the_clients_to_repeat(framework: Framework, way: str, status: int) -> None:
    with ChatServer(in_turn(Chat(status=status, headers=SOON), answering)) as server:
        application = framework.refine(server, max_retries=1)
        assert await application.told(way, LOOKUP) == ANSWER
        assert len(server.requests) == 2
    answered = application.facts("answer")
    assert (answered["calls"], answered["repairs"]) == (1, 0)


@each_way
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
    framework: Framework, way: str, status: int, error: type[openai.APIStatusError]
) -> None:
    with ChatServer(in_turn(Chat(status=status, headers=SOON))) as server:
        application = framework.refine(server)
        with pytest.raises(error):
            await application.told(way, LOOKUP)
        assert len(server.requests) == 1, "a failed call is not a bad reply: it is not repaired"


@each_way
async def test_a_server_that_is_gone(framework: Framework, way: str) -> None:
    with ChatServer(answering) as server:
        application = framework.refine(server)
    with pytest.raises(openai.APIConnectionError):
        await application.told(way, LOOKUP)


@both
def test_usage_is_what_the_provider_reports(framework: Framework, tools: bool) -> None:
    replies = in_turn(
        Chat(text="prose", usage=(1000, 1)),
        lambda request: typed(request, STEP, usage=(200, 20)),
        lambda request: typed(request, UNCHANGED, usage=(30, 3)),
    )
    with ChatServer(replies) as server:
        application = framework.refine(server, tools, PASSAGES[:6])
        application.whole(LOOKUP)
    answered = application.facts("answer")
    assert (answered["input_tokens"], answered["output_tokens"]) == (1230, 24)
    with ChatServer(lambda request: typed(request, STEP, usage=None)) as server:
        application = framework.refine(server, tools)
        application.whole(LOOKUP)
    assert application.facts("answer")["input_tokens"] is None


def test_windows_too_big_for_the_context_are_split_in_order(framework: Framework) -> None:
    long = [Passage(f"n{n}", f"Number {n}. " + "It is a tower. " * 120) for n in range(6)]
    with ChatServer(lambda request: typed(request, UNCHANGED)) as server:
        application = framework.refine(server, False, long, context_window=2200)
        application.whole(LOOKUP)
        assert all(len(prompt(request)) / 3 < 2200 for request in server.requests)
    asks = application.facts("answer")["asks"]
    assert len(asks) > 2
    shown = [number for ask in asks for number in ask["passages"]]
    assert shown == sorted(shown)
    assert any("too big for the model's context" in note for note in application.notes)


@each_way
async def test_no_passage_is_a_reason_and_no_call(framework: Framework, way: str) -> None:
    with ChatServer(answering) as server:
        for application in (framework.refine(server, passages=[]), framework.route(server, passages=[])):
            assert await application.told(way, LISTING) == "No answer: no passage came to the answer."
            assert application.facts("answer")["outcome"] == "no_passages"
        assert not server.requests


@each_way
async def test_an_abstention_says_why_and_shows_the_best_passages(framework: Framework, way: str) -> None:
    with ChatServer(answering) as server:
        application = framework.pipeline(server)
        text = await application.told(way, UNANSWERABLE)
        assert not server.requests
    assert "none of 12 scored passages reaches theta 0.3" in text
    assert "among the sources" in text
    assert len(application.sources) == 3
