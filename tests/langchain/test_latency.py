from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from chat_server import ChatServer
from langchain_application import as_documents, langchain_client
from langchain_core.caches import InMemoryCache
from langchain_core.runnables import ConfigurableField
from langchain_lara import ExtractiveChatModel, RefineInThrees, observe_latency
from langchain_openai import ChatOpenAI
from openai_replies import answering, in_turn
from towers import LOOKUP, PASSAGES

from lara_plugins import InvalidArgument, PerChunkLatency, QueryClock
from lara_plugins.budget import Call

GIVEN = {"input": LOOKUP, "context": as_documents(PASSAGES[:3])}


class Capped(PerChunkLatency):
    """Affords twenty tokens."""

    def output_cap(self, call: Call, seconds: float) -> int | None:
        return 20


WRAPPED: dict[str, Callable[[ChatOpenAI], Any]] = {
    "bound": lambda llm: llm.bind(stop=["###"]),
    "configured": lambda llm: llm.with_config(tags=["mine"]),
    "retried": lambda llm: llm.with_retry(),
    "configurable": lambda llm: llm.configurable_fields(temperature=ConfigurableField(id="temperature")),
}


@pytest.mark.parametrize("wrapped", WRAPPED)
async def test_a_model_under_bindings_is_seen_and_limited(wrapped: str) -> None:
    with ChatServer(answering) as server:
        llm = langchain_client(server, tools=True)
        latency = observe_latency(WRAPPED[wrapped](llm))
        assert observe_latency(llm) is latency
        refine = RefineInThrees(WRAPPED[wrapped](llm), latency=Capped(0.001))
        with QueryClock(60.0):
            refine.invoke(GIVEN)
            await refine.ainvoke(GIVEN)
        assert latency.learned.observed == 2
        assert [request["max_completion_tokens"] for request in server.requests] == [20, 20]


@pytest.mark.parametrize(("own", "cap"), [(7, 7), (70, 20)])
def test_the_stricter_cap_counts(own: int, cap: int) -> None:
    with ChatServer(answering) as server, QueryClock(60.0):
        llm = langchain_client(server, tools=True)
        for limited in (llm.bind(max_tokens=own), langchain_client(server, tools=True, max_tokens=own)):
            RefineInThrees(limited, latency=Capped(0.001)).invoke(GIVEN)
            assert server.requests[-1]["max_completion_tokens"] == cap


def test_a_cache_finds_the_call_of_another_query() -> None:
    with ChatServer(in_turn(answering)) as server:
        llm = langchain_client(server, tools=True, cache=InMemoryCache())
        for afford in (60.0, 50.0):
            with QueryClock(afford):
                assert "330 metres" in RefineInThrees(llm).invoke(GIVEN)
        assert len(server.requests) == 1


def test_whoever_is_not_observed_is_passed_over_and_names_are_for_people() -> None:
    latency = observe_latency(ExtractiveChatModel())
    assert latency.name.startswith("ExtractiveChatModel")
    with pytest.raises(InvalidArgument, match="give a chat model"):
        observe_latency("gpt")  # type: ignore[arg-type]
