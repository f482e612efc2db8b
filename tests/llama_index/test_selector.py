"""The selector inside LlamaIndex's own router engine and router retriever."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.retrievers import RouterRetriever
from llama_index.core.schema import BaseComponent
from llama_index.core.tools import QueryEngineTool, RetrieverTool, ToolMetadata
from llama_index_lara import (
    ExtractiveLLM,
    LaraDecisionEvent,
    QuestionShapeSelector,
    RefineInThrees,
    lara_query_engine,
)
from recorded_events import recorded_events
from towers import COMPARISON, LISTING, LOOKUP

from lara_plugins import InvalidArgument, Lexicon, NotSerializable, QuestionParser, Rule

CHOICES: Mapping[Any, str] = {"sequential": "lookup", "batch": "overview"}
TOOLS = [ToolMetadata("everything at once", name="overview"), ToolMetadata("one value", name="lookup")]

ALL_ARE_LISTS = QuestionParser([Lexicon("en", (Rule("any", r"\w", answer_shape="list"),))])


@pytest.fixture
def router(index: VectorStoreIndex, llm: ExtractiveLLM) -> RouterQueryEngine:
    lookup = lara_query_engine(index.as_retriever(similarity_top_k=50), llm, 600.0, "embedded")
    overview = index.as_query_engine(
        llm=llm, similarity_top_k=6, response_synthesizer=RefineInThrees(llm, latency=0.001)
    )
    return RouterQueryEngine(
        selector=QuestionShapeSelector(CHOICES),
        query_engine_tools=[
            QueryEngineTool.from_defaults(overview, name="overview", description="everything at once"),
            QueryEngineTool.from_defaults(lookup, name="lookup", description="one value"),
        ],
        llm=llm,
    )


async def test_the_router_engine_takes_the_tool_of_the_shape(router: RouterQueryEngine) -> None:
    for question, chosen in ((LOOKUP, 1), (LISTING, 0), (COMPARISON, 0)):
        for response in (router.query(question), await router.aquery(question)):
            assert response.metadata is not None
            result = response.metadata["selector_result"]
            assert result.ind == chosen
            assert result.reason.endswith(".")
    assert "330" in str(router.query(LOOKUP))


async def test_the_router_retriever_takes_the_tool_of_the_shape(
    index: VectorStoreIndex, llm: ExtractiveLLM
) -> None:
    def tool(name: str, count: int) -> RetrieverTool:
        return RetrieverTool.from_defaults(
            index.as_retriever(similarity_top_k=count), name=name, description=name
        )

    retriever = RouterRetriever(
        selector=QuestionShapeSelector(CHOICES),
        retriever_tools=[tool("lookup", 1), tool("overview", 5)],
        llm=llm,
    )
    assert len(retriever.retrieve(LOOKUP)) == len(await retriever.aretrieve(LOOKUP)) == 1
    assert len(retriever.retrieve(LISTING)) == len(await retriever.aretrieve(LISTING)) == 5
    engine = RetrieverQueryEngine(retriever, RefineInThrees(llm))
    response = engine.query(LISTING)
    assert response.metadata is not None
    assert [entry["phase"] for entry in response.metadata["lara"]["phases"]] == [
        "route",
        "retrieval",
        "answer",
    ]


async def test_select_says_why(caplog: pytest.LogCaptureFixture) -> None:
    selector = QuestionShapeSelector(CHOICES)
    with caplog.at_level("INFO", logger="lara_plugins.question"):
        sync, later = selector.select(TOOLS, LOOKUP), await selector.aselect(TOOLS, LOOKUP)
    assert sync == later
    assert (sync.ind, selector.select(TOOLS, LISTING).ind) == (1, 0)
    assert "amount" in sync.reason
    assert [record.getMessage().split()[1] for record in caplog.records] == ["regime=sequential"] * 2


def test_the_decision_is_an_event(router: RouterQueryEngine) -> None:
    with recorded_events() as events:
        router.query(LISTING)
    decisions = [event for event in events if isinstance(event, LaraDecisionEvent)]
    assert [event.facts["regime"] for event in decisions if event.phase == "route"] == ["batch"]


def test_a_parser_of_ones_own_chooses() -> None:
    assert QuestionShapeSelector(CHOICES, parser=ALL_ARE_LISTS).select(TOOLS, LOOKUP).ind == 0


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"sequential": "lookup"},
        {"sequential": "lookup", "batch": "overview", "refine": "third"},
        {"lookup": "sequential", "overview": "batch"},
        ["lookup", "overview"],
        {"sequential": "lookup", "batch": None},
        {"sequential": "", "batch": "overview"},
    ],
)
def test_choices_name_a_tool_for_each_regime(choices: dict[Any, Any]) -> None:
    with pytest.raises(InvalidArgument, match="choices="):
        QuestionShapeSelector(choices)


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        (TOOLS[:1], "'overview'"),
        ([*TOOLS, TOOLS[1]], "'overview', 'lookup', 'lookup'"),
        ([], "none"),
        (["a text that has no name", *TOOLS[:1]], "None, 'overview'"),
    ],
    ids=["missing", "twice", "no tools", "without a name"],
)
async def test_a_tool_that_is_not_there_is_named(tools: list[Any], named: str) -> None:
    selector = QuestionShapeSelector(CHOICES)
    with pytest.raises(InvalidArgument, match=rf"choices\['sequential'\]='lookup'.* named {named}"):
        selector.select(tools, LOOKUP)
    with pytest.raises(InvalidArgument, match="exactly one tool"):
        await selector.aselect(tools, LISTING)


def test_an_empty_question_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="question="):
        QuestionShapeSelector(CHOICES).select(TOOLS, " ")


WAYS: dict[str, Callable[[QuestionShapeSelector], BaseComponent]] = {
    "dict": lambda part: QuestionShapeSelector.from_dict(part.to_dict()),
    "json": lambda part: QuestionShapeSelector.from_json(part.to_json()),
    "pickle": lambda part: pickle.loads(pickle.dumps(part)),  # noqa: S301 - our own bytes
    "deepcopy": copy.deepcopy,
    "model_copy": lambda part: part.model_copy(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_selector_chooses_alike(way: str) -> None:
    again = WAYS[way](QuestionShapeSelector(CHOICES))
    assert isinstance(again, QuestionShapeSelector)
    assert [again.select(TOOLS, question).ind for question in (LOOKUP, LISTING)] == [1, 0]


def test_it_is_saved_by_its_names_alone() -> None:
    assert QuestionShapeSelector(CHOICES).to_dict() == {
        "choices": dict(CHOICES),
        "class_name": "LaraQuestionShapeSelector",
    }


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "model_copy"])
def test_a_parser_of_ones_own_is_copied_and_not_saved(way: str) -> None:
    selector = QuestionShapeSelector(CHOICES, parser=ALL_ARE_LISTS)
    again = WAYS[way](selector)
    assert isinstance(again, QuestionShapeSelector)
    assert again.select(TOOLS, LOOKUP).ind == 0
    for save in (selector.to_dict, selector.to_json):
        with pytest.raises(NotSerializable, match="a parser of one's own"):
            save()


def test_it_is_what_the_framework_takes_it_for() -> None:
    assert BaseSelector in QuestionShapeSelector.__mro__
    assert not issubclass(QuestionShapeSelector, (LLM, BaseRetriever))
