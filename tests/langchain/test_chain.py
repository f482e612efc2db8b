"""lara_chain and the answering steps in chains, graphs and tools."""

from __future__ import annotations

import copy
import json
from functools import reduce
from math import ceil
from operator import add, itemgetter
from typing import Any

import pytest
from chat_server import ChatServer
from langchain_application import FoundDocuments, as_documents, langchain_client
from langchain_classic.chains import create_retrieval_chain
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_lara import (
    ExtractiveChatModel,
    HybridRetriever,
    LatencyBudget,
    RefineInThrees,
    ThresholdGate,
    lara_chain,
)
from langchain_parts import Decisions, descendants
from openai_replies import ANSWER, answering
from towers import COMPARISON, LISTING, LOOKUP, PASSAGES, UNANSWERABLE

from lara_plugins import EmbeddedIndex, InvalidArgument

QUESTIONS = [LOOKUP, LISTING, COMPARISON, UNANSWERABLE]


@pytest.fixture
def chain(retriever: BaseRetriever) -> Runnable[Any, dict[str, Any]]:
    return lara_chain(retriever, ExtractiveChatModel(), 60.0, "embedded")


def timeless(answered: dict[str, Any]) -> dict[str, Any]:
    """An output without what differs from run to run."""
    said = copy.deepcopy(answered)
    for phase in said["lara"]["phases"]:
        for name in ("seconds", "time_left", "predicted", "plan", "asks", "replayed"):
            phase.pop(name, None)
        phase["reason"] = phase["reason"].partition(" s with ")[0]
    return said


@pytest.mark.parametrize("question", QUESTIONS)
async def test_every_way_gives_the_same(chain: Runnable[Any, dict[str, Any]], question: str) -> None:
    given = {"input": question}
    answered = chain.invoke(given)
    assert list(answered) == ["input", "context", "answer", "lara"]
    assert json.loads(json.dumps(answered["lara"])) == answered["lara"]
    expected = timeless(answered)
    assert timeless(await chain.ainvoke(given)) == expected
    assert timeless(reduce(add, chain.stream(given))) == expected
    assert timeless(reduce(add, [chunk async for chunk in chain.astream(given)])) == expected
    assert [timeless(each) for each in chain.batch([given, given])] == [expected] * 2
    assert [timeless(each) for each in await chain.abatch([given, given])] == [expected] * 2


def test_a_stream_shows_question_sources_answer_and_trace_in_this_order(
    chain: Runnable[Any, dict[str, Any]],
) -> None:
    for question in (LOOKUP, UNANSWERABLE):
        keys = [key for chunk in chain.stream({"input": question}) for key in chunk]
        assert keys[:3] == ["input", "context", "answer"]
        assert keys[-1] == "lara"
        assert set(keys[2:-1]) == {"answer"}


def test_what_the_answer_cites_is_the_context(chain: Runnable[Any, dict[str, Any]]) -> None:
    answered = chain.invoke({"input": LOOKUP})
    assert answered["answer"] == "The Eiffel Tower is 330 metres tall. [1]"
    assert answered["context"][0].id == "p0"
    [evidence] = answered["lara"]["answer"]["evidence"]
    start, end = evidence["start"], evidence["end"]
    assert answered["context"][0].page_content[start:end] == evidence["quote"]
    assert [phase["phase"] for phase in answered["lara"]["phases"]] == [
        *("retrieval", "gate", "budget", "route", "answer")
    ]


def test_an_abstention_shows_the_best_documents(chain: Runnable[Any, dict[str, Any]]) -> None:
    answered = chain.invoke({"input": UNANSWERABLE})
    assert "reaches theta 0.3" in answered["answer"]
    assert "among the sources" in answered["answer"]
    scores = [document.metadata["relevance_score"] for document in answered["context"]]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_a_trace_viewer_sees_question_gate_budget_and_windows(documents: list[Document]) -> None:
    collector = RunCollectorCallbackHandler()
    with ChatServer(answering) as server:
        chain = lara_chain(
            FoundDocuments(documents=documents), langchain_client(server, True), 60.0, "embedded"
        )
        chain.invoke({"input": LISTING}, {"callbacks": [collector], "tags": ["mine"], "run_name": "question"})
    [run] = collector.traced_runs
    names = ["question", "FoundDocuments", "ThresholdGate", "LatencyBudget", "QuestionShapeRouter"]
    assert [below.name for below in descendants(run)] == [*names, "ChatOpenAI"]
    *_, asked = descendants(run)
    assert {"mine", "window:1"} <= set(asked.tags or [])


async def test_events_tell_the_answers_pieces_and_the_decisions(
    chain: Runnable[Any, dict[str, Any]],
) -> None:
    events = [event async for event in chain.astream_events({"input": LISTING}, version="v2")]
    pieces = [
        event["data"]["chunk"].get("answer", "")
        for event in events
        if event["event"] == "on_chain_stream" and event["name"] == "lara_chain"
    ]
    assert "".join(pieces) == chain.invoke({"input": LISTING})["answer"]
    told: list[Any] = [event["data"] for event in events if event["name"] == "lara_decision"]
    decided = [data["phase"] for data in told]
    assert decided == ["gate", "budget", "route", "answer"]


def test_other_keys_reach_the_retriever_and_the_output(documents: list[Document]) -> None:
    seen: list[dict[str, Any]] = []

    def find(given: dict[str, Any]) -> list[Document]:
        seen.append(given)
        return documents

    chain = lara_chain(RunnableLambda(find), ExtractiveChatModel(), 60.0, "embedded")
    answered = chain.invoke({"input": LOOKUP, "chat_history": []})
    assert seen == [{"input": LOOKUP, "chat_history": []}]
    assert answered["chat_history"] == []
    assert "330" in answered["answer"]


@pytest.mark.parametrize("bad", [{}, {"input": " "}, {"question": LOOKUP}, "text", None])
def test_no_question_is_refused(chain: Runnable[Any, dict[str, Any]], bad: object) -> None:
    for call in (chain.invoke, lambda given: list(chain.stream(given))):
        with pytest.raises(InvalidArgument, match=r"ask something|give \{'input': the question\}"):
            call(bad)


def test_a_chain_is_a_tool_and_has_schemas(chain: Runnable[Any, dict[str, Any]]) -> None:
    assert set(chain.get_output_jsonschema()["properties"]) == {"input", "context", "answer", "lara"}
    tool = chain.as_tool(name="towers", description="knows towers")
    assert set(tool.args) == {"input"}
    assert "330" in tool.invoke({"input": LOOKUP})["answer"]
    assert len(chain.get_graph().nodes) == 3


def test_over_hybrid_retrieval(hybrid: EmbeddedIndex) -> None:
    chain = lara_chain(HybridRetriever(hybrid), ExtractiveChatModel(), 60.0, "embedded")
    answered = chain.invoke({"input": LOOKUP})
    assert "330" in answered["answer"]
    assert answered["lara"]["phases"][0]["corpus"] == len(PASSAGES)


async def test_the_combine_step_of_a_retrieval_chain(documents: list[Document]) -> None:
    with ChatServer(answering) as server:
        refine = RefineInThrees(langchain_client(server, tools=True))
        chain = create_retrieval_chain(FoundDocuments(documents=documents), refine)
        given = {"input": LOOKUP}
        assert chain.invoke(given)["answer"] == ANSWER
        assert len(server.requests) == 4, "twelve documents in threes"
        assert (await chain.ainvoke(given))["answer"] == ANSWER
        pieces = [chunk["answer"] for chunk in chain.stream(given) if "answer" in chunk]
        apieces = [chunk["answer"] async for chunk in chain.astream(given) if "answer" in chunk]
        assert len(pieces) > 2
        assert "".join(pieces) == "".join(apieces) == ANSWER


def test_an_existing_chain_changed_in_three_lines(documents: list[Document]) -> None:
    decisions = Decisions()
    with ChatServer(answering) as server:
        chain = (
            RunnablePassthrough.assign(context=itemgetter("input") | FoundDocuments(documents=documents))
            .assign(context=ThresholdGate(scorer="embedded"))
            .assign(context=LatencyBudget(afford=60.0))
            .assign(answer=RefineInThrees(langchain_client(server, tools=True)))
        )
        answered = chain.invoke({"input": LISTING}, {"callbacks": [decisions]})
        assert [chunk for chunk in chain.stream({"input": LISTING}) if "answer" in chunk]
    sent = decisions.facts("budget")["sent"]
    assert len(documents) > len(answered["context"]) == sent > 0
    assert decisions.facts("answer")["calls"] == ceil(sent / 3)


def test_where_the_gate_keeps_nothing_the_combine_step_says_why(documents: list[Document]) -> None:
    with ChatServer(answering) as server:
        chain = RunnablePassthrough.assign(context=ThresholdGate(scorer="embedded")).assign(
            answer=RefineInThrees(langchain_client(server, tools=True))
        )
        answered = chain.invoke({"input": UNANSWERABLE, "context": documents})
        assert not server.requests
    assert "none of 12 scored passages reaches theta 0.3" in answered["answer"]
    assert "among the sources" not in answered["answer"], "nobody shows them here"


def test_a_models_configurable_fields_are_the_steps(documents: list[Document]) -> None:
    with ChatServer(answering) as server:
        model = langchain_client(server, tools=True).configurable_fields(
            model_name=ConfigurableField(id="model")
        )
        step = RefineInThrees(model)
        assert [spec.id for spec in step.config_specs] == ["model"]
        given: Any = {"input": LOOKUP, "context": documents[:3]}
        step.invoke(given, {"configurable": {"model": "other"}})
        step.bind().invoke(given)
        assert [request["model"] for request in server.requests] == ["other", "test"]
        assert all("tools" in request for request in server.requests)


def test_documents_that_were_given_stay_as_they_are(documents: list[Document]) -> None:
    before = copy.deepcopy(documents)
    lara_chain(FoundDocuments(documents=documents), ExtractiveChatModel(), 60.0, "embedded").invoke(
        {"input": LISTING}
    )
    assert documents == before
    assert as_documents(PASSAGES)[0].id == documents[0].id
