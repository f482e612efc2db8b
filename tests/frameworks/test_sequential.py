"""Passage by passage with the real OpenAI clients: the three exits, escalation, and what a stream shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from applications import AMPLE, WAYS, Framework
from chat_server import Chat, ChatServer, Request
from langchain_application import FoundDocuments, as_documents, langchain_client
from langchain_lara import lara_chain
from llama_index_application import FoundNodes, llama_index_client
from llama_index_lara import lara_query_engine
from openai_replies import ANSWER, WHOLE, in_turn, prompt, typed
from towers import LISTING, LOOKUP, PASSAGES

from lara_plugins import Limits, QuestionParser
from lara_plugins.question import Rule, load_lexicon

NOT_FOUND: Mapping[str, object] = {"answer_found": False}

both = pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])
each_way = pytest.mark.parametrize("way", WAYS)


def together_only(request: Request) -> Chat:
    """Finds the answer where it sees several passages, and never in one alone."""
    several = all(f'<passage number="{number}"' in prompt(request) for number in (1, 2))
    return typed(request, WHOLE if several else NOT_FOUND)


def nowhere(request: Request) -> Chat:
    return typed(request, NOT_FOUND)


@both
@each_way
async def test_sufficient(framework: Framework, tools: bool, way: str) -> None:
    with ChatServer(lambda request: typed(request, WHOLE)) as server:
        application = framework.route(server, tools)
        assert await application.told(way, LOOKUP) == ANSWER
        assert len(server.requests) == 1
    answered = application.facts("answer")
    assert (answered["outcome"], answered["calls"]) == ("sufficient", 1)


@both
@each_way
async def test_exhausted(framework: Framework, tools: bool, way: str) -> None:
    with ChatServer(nowhere) as server:
        application = framework.route(server, tools)
        assert await application.told(way, LOOKUP) == "No answer was found in the 3 passages."
        assert len(server.requests) == 3
    answered = application.facts("answer")
    assert (answered["outcome"], answered["calls"], answered["escalated"]) == ("exhausted", 3, False)


@both
@each_way
@pytest.mark.parametrize(
    ("limits", "calls"), [(Limits(sequential_calls=2), 2), (Limits(sequential_tokens=50), 1)]
)
async def test_budget(framework: Framework, tools: bool, way: str, limits: Limits, calls: int) -> None:
    with ChatServer(nowhere) as server:
        application = framework.route(server, tools, limits=limits, escalate=True)
        told = await application.told(way, LOOKUP)
        assert len(server.requests) == calls
    assert told.startswith(f"No answer: the budget ended after {calls} call")
    answered, routed = application.facts("answer"), application.facts("route")
    assert (answered["outcome"], answered["escalated"]) == ("budget", False)
    assert (routed["max_calls"], routed["max_tokens"]) == (limits.sequential_calls, limits.sequential_tokens)


@both
@each_way
async def test_an_exhausted_answer_is_escalated_once(framework: Framework, tools: bool, way: str) -> None:
    with ChatServer(together_only) as server:
        application = framework.route(server, tools, escalate=True)
        assert await application.told(way, LOOKUP) == ANSWER
        assert len(server.requests) == 4
    answered = application.facts("answer")
    assert (answered["outcome"], answered["calls"], answered["escalated"]) == ("sufficient", 4, True)
    assert answered["asks"][-1]["passages"] == [1, 2, 3]
    assert any(note.startswith("escalated") for note in application.notes)


@each_way
async def test_an_escalated_answer_may_be_none(framework: Framework, way: str) -> None:
    with ChatServer(nowhere) as server:
        application = framework.route(server, escalate=True)
        assert await application.told(way, LOOKUP) == "No answer was found in the 3 passages."
        assert len(server.requests) == 4
    answered = application.facts("answer")
    assert (answered["outcome"], answered["escalated"]) == ("exhausted", True)


@both
@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_an_answer_is_streamed_only_once_it_is_accepted(
    framework: Framework, tools: bool, way: str
) -> None:
    doubted = {**WHOLE, "complete_answer_found": False, "confidence": 0.2}
    sure = {**WHOLE, "value": "It is 330 metres tall [2].", "evidence": [{"passage": 2, "quote": "tall"}]}
    with ChatServer(
        in_turn(lambda request: typed(request, doubted), lambda request: typed(request, sure))
    ) as server:
        application = framework.route(server, tools)
        assert await application.told(way, LOOKUP) == "It is 330 metres tall [2]."
        assert not any(request.get("stream") for request in server.requests)
    assert application.facts("answer")["replayed"] is True


async def test_a_limit_of_ones_own_gathers_what_it_does_not_name(framework: Framework) -> None:
    with ChatServer(lambda request: typed(request, WHOLE)) as server:
        application = framework.route(server, limits=Limits(one_passage=frozenset({"date"})))
        for question in (LOOKUP, LISTING):
            await application.told("awhole", question)
            assert application.facts("route")["regime"] == "batch"


def test_parser_limits_and_escalation_reach_the_ready_made_engine_and_chain() -> None:
    mine = Rule("mine", "{word} towers", answer_shape="entity")
    arguments: dict[str, Any] = {
        "theta": 0.0,
        "parser": QuestionParser([load_lexicon("en").with_rules(mine)]),
        "limits": Limits(tight_minimum=20, sequential_calls=7),
        "escalate": True,
    }
    nodes, documents = FoundNodes(PASSAGES[:3]), FoundDocuments(documents=as_documents(PASSAGES[:3]))
    with ChatServer(nowhere) as server:
        engine = lara_query_engine(nodes, llama_index_client(server, True), AMPLE, "embedded", **arguments)
        chain = lara_chain(documents, langchain_client(server, True), AMPLE, "embedded", **arguments)
        response, answered = engine.query(LISTING), chain.invoke({"input": LISTING})
    assert response.metadata is not None
    for trace in (response.metadata["lara"], answered["lara"]):
        [routed] = [phase for phase in trace["phases"] if phase["phase"] == "route"]
        assert (routed["parsed_by"], routed["max_calls"]) == ("mine", 7)
        assert (trace["phases"][-1]["calls"], trace["phases"][-1]["escalated"]) == (4, True)
