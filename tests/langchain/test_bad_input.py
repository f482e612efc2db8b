"""Bad input ends in one clear sentence, before any work is lost."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_lara import (
    ExtractiveChatModel,
    LatencyBudget,
    QuestionShapeRouter,
    RefineInThrees,
    ThresholdGate,
    lara_chain,
)
from langchain_parts import Decisions, StateRecorder
from towers import LOOKUP, UNANSWERABLE

from lara_plugins import BudgetExhausted, CallableScorer, InvalidArgument, NothingKept, ScoreError

GATE: Any = ThresholdGate  # wrong types are the point
BUDGET: Any = LatencyBudget


@pytest.mark.parametrize(
    ("make", "argument", "value"),
    [
        *[(lambda v: GATE(scorer="embedded", theta=v), "theta", v) for v in (-0.1, 1.5, math.nan, True, "x")],
        *[(lambda v: GATE(scorer="embedded", max_k=v), "max_k", v) for v in (0, -1, True, 2.5, "3")],
        *[(lambda v: GATE(scorer="embedded", on_empty=v), "on_empty", v) for v in ("ignore", 1)],
        *[
            (lambda v: GATE(scorer="embedded", afford=v), "afford", v)
            for v in (0, -1.0, math.nan, math.inf, True, "4")
        ],
        *[(lambda v: GATE(scorer=v), "scorer", v) for v in ("", "  ", "onnx:", "pinecone:", 3, None)],
        *[(lambda v: BUDGET(afford=v), "afford", v) for v in (0, -1.0, math.nan, math.inf, True, "4", None)],
        *[(lambda v: BUDGET(latency=v), "latency", v) for v in (0, -0.1, math.nan, True, "x")],
        *[(lambda v: BUDGET(on_exhausted=v), "on_exhausted", v) for v in ("stop", None)],
        *[(lambda v: BUDGET(calls=v), "calls", v) for v in ("two", None)],
    ],
)
def test_an_argument_out_of_its_range(make: Callable[[object], object], argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make(value)
    assert refused.type is InvalidArgument
    assert str(refused.value).startswith(f"{argument}={value!r}: ")
    assert "\n" not in str(refused.value)
    assert refused.value.remedy


def test_an_argument_that_does_not_exist() -> None:
    with pytest.raises(TypeError, match="threshold"):
        GATE(scorer="embedded", threshold=0.5)
    with pytest.raises(TypeError, match="seconds"):
        BUDGET(seconds=4.0)


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        (lambda n: [math.nan] * n, "a probability of nan"),
        (lambda n: [7.5] * n, "outside 0..1"),
        (lambda n: [0.5] * (n - 1), "returned 11 scores for 12 passages"),
        (lambda n: [], "returned 0 scores for 12 passages"),
    ],
)
async def test_scores_that_are_none(
    documents: list[Document], scores: Callable[[int], list[float]], sentence: str
) -> None:
    gate = ThresholdGate(scorer=CallableScorer(lambda query, texts: scores(len(texts)), "probability"))
    with pytest.raises(ScoreError, match=sentence):
        gate.invoke({"input": LOOKUP, "context": documents})
    with pytest.raises(ScoreError, match=sentence):
        await gate.acompress_documents(documents, LOOKUP)


def test_policies_that_raise(documents: list[Document]) -> None:
    strict = ThresholdGate(scorer="embedded", on_empty="raise")
    with pytest.raises(NothingKept, match=r"theta 0.3.*remedy: calibrate theta"):
        strict.invoke({"input": UNANSWERABLE, "context": documents})
    with pytest.raises(BudgetExhausted):
        LatencyBudget(afford=0.001, on_exhausted="raise").invoke({"input": LOOKUP, "context": documents})


def test_why_nothing_is_left_stands_in_state_log_and_event(
    documents: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    recorder, decisions = StateRecorder(), Decisions()
    query = RunnablePassthrough.assign(context=ThresholdGate(scorer="embedded")) | recorder
    query.invoke({"input": UNANSWERABLE, "context": documents}, {"callbacks": [decisions]})
    [state] = recorder.states
    assert state.empty_reason is not None
    assert "none of 12 scored passages reaches theta 0.3" in state.empty_reason
    assert state.empty_reason in caplog.text
    assert {passage.id for passage in state.best} == set(state.originals)
    [told] = decisions.told
    assert told["reason"] in state.empty_reason
    assert told["facts"]["remedy"]
    assert UNANSWERABLE not in caplog.text, "no question is logged"


def test_of_equal_scores_the_earlier_comes_first_and_theta_itself_is_reached(
    documents: list[Document],
) -> None:
    gate = ThresholdGate(scorer=CallableScorer(lambda query, texts: [0.3] * len(texts), "probability"))
    kept = gate.invoke({"input": LOOKUP, "context": documents})
    assert [document.id for document in kept] == [document.id for document in documents]
    assert {document.metadata["relevance_score"] for document in kept} == {0.3}


def test_a_budget_keeps_the_first_in_their_order(documents: list[Document]) -> None:
    budget = LatencyBudget(afford=600.0, latency=200.0)
    kept = budget.invoke({"input": LOOKUP, "context": documents})
    assert [document.id for document in kept] == [document.id for document in documents[:2]]
    one = LatencyBudget(afford=0.001, on_exhausted="send_best")
    assert len(one.invoke({"input": LOOKUP, "context": documents})) == 1


def test_scoring_stops_in_its_share_of_what_is_affordable(documents: list[Document]) -> None:
    decisions = Decisions()
    gate = ThresholdGate(scorer="embedded", afford=0.000001)
    many = [document.model_copy(update={"id": f"{n}"}) for n, document in enumerate(documents * 20)]
    gate.invoke({"input": LOOKUP, "context": many}, {"callbacks": [decisions]})
    assert 0 < decisions.facts("gate")["unscored"] < len(many)


@pytest.mark.parametrize(
    "llm", [None, "gpt-4.1-mini", 3, lambda prompt: "text"], ids=lambda it: type(it).__name__
)
def test_what_is_no_model(llm: Any, retriever: BaseRetriever) -> None:  # noqa: ANN401 - wrong types are the point
    for make in (RefineInThrees, QuestionShapeRouter, lambda llm: lara_chain(retriever, llm)):
        with pytest.raises(InvalidArgument, match=r"^llm=.*: give a chat model"):
            make(llm)


@pytest.mark.parametrize("question", [None, 3, HumanMessage(LOOKUP), [HumanMessage(LOOKUP)]], ids=str)
def test_a_question_that_is_no_text(
    question: object, retriever: BaseRetriever, documents: list[Document]
) -> None:
    llm = ExtractiveChatModel()
    parts: list[Runnable[Any, Any]] = [
        ThresholdGate(scorer="embedded"),
        LatencyBudget(),
        RefineInThrees(llm),
        QuestionShapeRouter(llm),
        lara_chain(retriever, llm, scorer="embedded"),
    ]
    for part in parts:
        with pytest.raises(InvalidArgument, match=r"^question=.*: ask something, as a text$"):
            part.invoke({"input": question, "context": documents})


@pytest.mark.parametrize("found", [None, "index", lambda question: []], ids=lambda it: type(it).__name__)
def test_what_is_no_retriever(found: Any) -> None:  # noqa: ANN401 - wrong types are the point
    with pytest.raises(InvalidArgument, match=r"^retriever=.*: give a retriever"):
        lara_chain(found, ExtractiveChatModel())


@pytest.mark.parametrize("prompt", [None, "{context} {input}"])
@pytest.mark.parametrize("argument", ["prompt", "refine_prompt"])
def test_what_is_no_prompt(argument: str, prompt: Any) -> None:  # noqa: ANN401 - wrong types are the point
    for make in (RefineInThrees, QuestionShapeRouter):
        with pytest.raises(InvalidArgument, match=rf"^{argument}=.*: give a prompt template"):
            make(ExtractiveChatModel(), **{argument: prompt})


@pytest.mark.parametrize("reply", [None, 3, {"answer": "text"}], ids=str)
async def test_a_model_whose_reply_is_parsed_already(reply: object, documents: list[Document]) -> None:
    llm: Any = RunnableLambda(lambda prompt: reply)
    given = {"input": LOOKUP, "context": documents}
    for answerer in (RefineInThrees(llm), QuestionShapeRouter(llm)):
        with pytest.raises(InvalidArgument, match="without an output parser"):
            answerer.invoke(given)
        with pytest.raises(InvalidArgument, match="without an output parser"):
            await answerer.ainvoke(given)
        with pytest.raises(InvalidArgument, match="without an output parser"):
            list(answerer.stream(given))


@pytest.mark.parametrize("sources", [None, 3, "a.md", ["a.md", "b.md"]], ids=str)
def test_sources_that_are_the_applications_own(sources: object) -> None:
    for answerer in (RefineInThrees(ExtractiveChatModel()), QuestionShapeRouter(ExtractiveChatModel())):
        answer = answerer.invoke({"input": LOOKUP, "context": [], "sources": sources})
        assert answer.startswith("No answer")
        assert "among the sources" not in answer
