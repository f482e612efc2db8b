"""Queries do not mix: what is one query, and what are two."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.chains import create_history_aware_retriever
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
)
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    chain,
)
from langchain_lara import HybridRetriever, LatencyBudget, ThresholdGate
from langchain_parts import (
    WHOLE_QUERY,
    StateRecorder,
    WatchedRetriever,
    gated_query,
    nothing,
    phases,
)
from towers import COMPARISON, LISTING, LOOKUP

from lara_plugins import EmbeddedIndex, QueryClock


def asked(*questions: str) -> list[dict[str, Any]]:
    return [{"input": question} for question in questions]


def test_each_explicit_clock_has_queries_of_its_own(recorder: StateRecorder) -> None:
    gate = ThresholdGate(scorer="embedded")

    @chain
    def two(given: dict[str, Any]) -> None:
        for _ in range(2):
            with QueryClock(60.0):
                gate.invoke({**given, "context": []})
                recorder.invoke(given)

    two.invoke({"input": LOOKUP})
    first, second = recorder.states
    assert first.clock is not second.clock
    assert phases(first) == phases(second) == ["gate", "answer"]


def map_over(query: Runnable[dict[str, Any], dict[str, Any]]) -> Runnable[Any, Any]:
    return query.map()


def loop_over(query: Runnable[dict[str, Any], dict[str, Any]]) -> Runnable[Any, Any]:
    return RunnableLambda(lambda given: [query.invoke(each) for each in given])


def batch_over(query: Runnable[dict[str, Any], dict[str, Any]]) -> Runnable[Any, Any]:
    return RunnableLambda(query.batch)


def gather_over(query: Runnable[dict[str, Any], dict[str, Any]]) -> Runnable[Any, Any]:
    async def gather(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return await asyncio.gather(*(query.ainvoke(each) for each in given))

    return RunnableLambda(lambda given: [], afunc=gather)


def parts_in_one_function(query: Runnable[dict[str, Any], dict[str, Any]]) -> Runnable[Any, Any]:
    """All parts of all queries are children of one run."""
    retriever = WatchedRetriever(during=nothing)
    gate, budget = ThresholdGate(scorer="embedded"), LatencyBudget(afford=60.0)
    recorder = query.steps[-1]  # type: ignore[attr-defined]  # it is a sequence

    async def one(given: dict[str, Any]) -> dict[str, Any]:
        context = await retriever.ainvoke(given["input"])
        context = await gate.ainvoke({**given, "context": context})
        context = await budget.ainvoke({**given, "context": context})
        return await recorder.ainvoke({**given, "context": context})  # type: ignore[no-any-return]

    async def gather(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return await asyncio.gather(*(one(each) for each in given))

    return RunnableLambda(lambda given: [], afunc=gather)


@pytest.mark.parametrize("over", [map_over, loop_over, batch_over, gather_over, parts_in_one_function])
async def test_queries_under_one_root_share_its_clock_and_do_not_mix(
    over: Callable[[Runnable[dict[str, Any], dict[str, Any]]], Runnable[Any, Any]], recorder: StateRecorder
) -> None:
    questions = [LOOKUP, LISTING, LOOKUP, LOOKUP, COMPARISON]
    query = over(gated_query(WatchedRetriever(during=nothing), recorder))
    outputs = await query.ainvoke(asked(*questions))
    states = [output["state"] for output in outputs]
    assert len({id(state) for state in states}) == len(questions)
    assert len({id(state.clock) for state in states}) == 1
    for question, output in zip(questions, outputs, strict=True):
        state = output["state"]
        assert phases(state) == WHOLE_QUERY
        assert state.trace.last("answer").reason == question
        assert set(state.scores) >= {document.id for document in output["context"]}


async def test_batches_and_concurrent_calls_have_clocks_of_their_own(recorder: StateRecorder) -> None:
    query = gated_query(WatchedRetriever(during=nothing), recorder)
    query.batch(asked(*[LOOKUP] * 4))
    await query.abatch(asked(*[LOOKUP] * 4))
    await asyncio.gather(*(query.ainvoke({"input": LOOKUP}) for _ in range(4)))
    threads = [threading.Thread(target=query.invoke, args=({"input": LOOKUP},)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [phases(state) for state in recorder.states] == [WHOLE_QUERY] * 16
    assert len({id(state.clock) for state in recorder.states}) == 16
    assert all(state.closed for state in recorder.states)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_branches_that_ask_the_same_question_do_not_mix(kind: str) -> None:
    """Two indexes, one question: an abstention in one branch must not show the other's sources."""
    left, right = StateRecorder(), StateRecorder()
    some = [Document(id="left", page_content="Bread rises because yeast makes gas.")]
    other = [Document(id="right", page_content="The Eiffel Tower is 330 metres tall.")]
    branches = RunnableParallel(
        left=gated_query(WatchedRetriever(during=nothing, documents=some), left),
        right=gated_query(WatchedRetriever(during=nothing, documents=other), right),
    )
    for _ in range(5):
        branches.invoke({"input": LOOKUP}) if kind == "sync" else await branches.ainvoke({"input": LOOKUP})
    for recorder, identity in ((left, "left"), (right, "right")):
        for state in recorder.states:
            assert [passage.id for passage in state.best] == [identity]
            assert phases(state) == WHOLE_QUERY
    assert all(state.empty_reason for state in left.states)
    assert not any(state.empty_reason for state in right.states)


def test_the_same_question_twice_without_a_retriever_is_two_queries(recorder: StateRecorder) -> None:
    gate, budget = ThresholdGate(scorer="embedded"), LatencyBudget(afford=60.0)

    @chain
    def several(given: dict[str, Any]) -> None:
        gate.invoke(given)
        recorder.invoke(given)
        for _ in range(2):
            gate.invoke(given)
            budget.invoke(given)
        recorder.invoke(given)

    several.invoke({"input": LOOKUP, "context": []})
    assert [phases(state) for state in recorder.states] == [["gate", "answer"], ["gate", "budget", "answer"]]


def test_all_inside_one_retriever_is_one_query(hybrid: EmbeddedIndex, recorder: StateRecorder) -> None:
    two = EnsembleRetriever(retrievers=[HybridRetriever(hybrid), WatchedRetriever(during=nothing)])
    parts = [ThresholdGate(scorer="embedded"), ThresholdGate(scorer="embedded", max_k=1)]
    whole = ContextualCompressionRetriever(
        base_retriever=two, base_compressor=DocumentCompressorPipeline(transformers=parts)
    )
    gated_query(whole, recorder).invoke({"input": LOOKUP})
    assert phases(recorder.states[0]) == [
        "retrieval",
        "retrieval",
        "gate",
        "gate",
        "gate",
        "budget",
        "answer",
    ]


def test_a_rephrased_question_is_the_same_query(recorder: StateRecorder) -> None:
    rephrasing = create_history_aware_retriever(
        FakeListChatModel(responses=[LOOKUP]),
        WatchedRetriever(during=nothing),
        ChatPromptTemplate.from_messages([("placeholder", "{chat_history}"), ("human", "{input}")]),
    )
    query = (
        RunnablePassthrough.assign(context=rephrasing).assign(context=ThresholdGate(scorer="embedded"))
        | recorder
    )
    history = [HumanMessage("What is in Paris?"), AIMessage("The Eiffel Tower.")]

    @chain
    def two_turns(given: dict[str, Any]) -> None:
        query.invoke({"input": "How tall is it?"})
        query.invoke({"input": "How tall is it?", "chat_history": history})

    query.invoke({"input": "How tall is it?", "chat_history": history})
    two_turns.invoke({})
    assert [phases(state) for state in recorder.states] == [["retrieval", "gate", "answer"]] * 3


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("rephrased", [False, True])
async def test_a_second_answer_has_a_trace_of_its_own_from_there_on(kind: str, rephrased: bool) -> None:
    short, long = StateRecorder(), StateRecorder()
    asked_for: RunnableLambda[dict[str, str], str] = RunnableLambda(
        lambda given: LISTING if rephrased else given["input"]
    )
    query = (
        RunnablePassthrough.assign(context=asked_for | WatchedRetriever(during=nothing))
        .assign(context=ThresholdGate(scorer="embedded", theta=1.0, on_empty="abstain"))
        .assign(short=short, long=long)
    )
    query.invoke({"input": LOOKUP}) if kind == "sync" else await query.ainvoke({"input": LOOKUP})
    [one], [two] = short.states, long.states
    assert one is not two
    assert phases(one) == phases(two) == ["retrieval", "gate", "answer"]
    assert one.empty_reason == two.empty_reason
    assert one.best == two.best
    assert one.best
