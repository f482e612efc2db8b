"""The retriever's tool among LangChain's own parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackManager, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_lara import HybridRetriever, LatencyBudget, ThresholdGate, retriever_tool
from langchain_lara.state import query_state
from langchain_parts import Decisions, ToolCallingModel, descendants, tool_messages
from pydantic import PrivateAttr
from towers import LOOKUP, UNANSWERABLE

from lara_plugins import EmbeddedIndex

KINDS = ["sync", "async"]


class Watching(BaseDocumentCompressor):
    """Keeps what counts as the query's start."""

    _clocks: list[str] = PrivateAttr(default_factory=list)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks = None
    ) -> Sequence[Document]:
        assert isinstance(callbacks, BaseCallbackManager)
        assert callbacks.parent_run_id is not None
        self._clocks.append(query_state(callbacks.parent_run_id, "gate", query).trace.clock)
        return documents


def calling(*arguments: dict[str, object]) -> AIMessage:
    """A message that calls the tool once for each."""
    calls: list[Any] = [{"name": "search", "args": each, "id": str(n)} for n, each in enumerate(arguments)]
    return AIMessage("", tool_calls=calls)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_agents_calls_are_queries_of_their_own_from_the_tools_run(
    hybrid: EmbeddedIndex, kind: str
) -> None:
    watching = Watching()
    behind = [watching, ThresholdGate(scorer="embedded"), LatencyBudget(afford=60.0)]
    tool = retriever_tool(
        HybridRetriever(hybrid), "search", "About towers.", compressors=behind, filters=True
    )
    assert isinstance(tool, StructuredTool)
    asked = calling(
        {"query": LOOKUP},
        {"query": UNANSWERABLE},
        {"query": LOOKUP, "filter": {"source": "1.md"}},
        {"query": LOOKUP, "filter": {"source": {"$is": "1.md"}}},
    )
    model = ToolCallingModel(responses=[asked, AIMessage("It is 330 metres tall.")])
    decisions = Decisions()
    config: Any = {"callbacks": [decisions]}
    given: Any = {"messages": [HumanMessage("The towers?")]}
    agent = create_agent(model, tools=[tool])
    turn = agent.invoke(given, config) if kind == "sync" else await agent.ainvoke(given, config)
    found, missed, narrowed, refused = tool_messages(turn["messages"])
    assert [document.id for document in found.artifact][:1] == ["p0"]  # type: ignore[attr-defined]
    assert missed.artifact == []  # type: ignore[attr-defined]
    assert str(missed.content).startswith("No passage answers this: ")
    assert {document.id for document in narrowed.artifact} <= {"p1"}  # type: ignore[attr-defined]
    assert refused.status == "error"  # type: ignore[attr-defined]
    assert refused.content == (
        "filter['source']='$is': use one of $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists"
    )
    assert turn["messages"][-1].content == "It is 330 metres tall."
    assert watching._clocks == ["tool run"] * 3
    left = [data["facts"]["time_left"] for data in decisions.told if data["phase"] == "budget"]
    assert len(left) == 3
    assert all(50.0 < seconds <= 60.0 for seconds in left)


@pytest.mark.parametrize("kind", KINDS)
async def test_it_is_called_by_hand_with_a_question_or_arguments(hybrid: EmbeddedIndex, kind: str) -> None:
    tool = retriever_tool(HybridRetriever(hybrid, limit=3), "search", "About towers.", filters=True)
    for given in (LOOKUP, {"query": LOOKUP}):
        text = tool.invoke(given) if kind == "sync" else await tool.ainvoke(given)
        assert "330 metres" in text


@pytest.mark.parametrize("kind", KINDS)
async def test_the_llm_for_hyde_runs_inside_the_retriever(hybrid: EmbeddedIndex, kind: str) -> None:
    model = FakeListChatModel(responses=["A tower of 330 metres."])
    retriever = HybridRetriever(hybrid, hyde=model)
    tool = retriever_tool(retriever, "search", "About towers.")
    collector = RunCollectorCallbackHandler()
    config: Any = {"callbacks": [collector]}
    tool.invoke(LOOKUP, config) if kind == "sync" else await tool.ainvoke(LOOKUP, config)
    [root] = collector.traced_runs
    assert [(run.name, run.run_type) for run in descendants(root)] == [
        ("search", "tool"),
        ("HybridRetriever", "retriever"),
        ("hyde", "llm"),
    ]
    assert "nostream" in list(descendants(root))[-1].tags  # type: ignore[operator]


async def test_a_call_is_narrowed_in_a_chain(hybrid: EmbeddedIndex) -> None:
    chain = HybridRetriever(hybrid).bind(filter={"source": "0.md"}, limit=3)
    assert [document.id for document in chain.invoke(LOOKUP)] == ["p0"]
    assert [document.id for document in await chain.ainvoke(LOOKUP)] == ["p0"]
