"""The plug-ins inside applications as users build them: one executed test for each host."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, TypedDict

import pytest
from chat_server import ChatServer
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_application import as_documents, langchain_client
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough
from langchain_core.tools import BaseTool, create_retriever_tool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_lara import HybridRetriever, LatencyBudget, RefineInThrees, ThresholdGate
from langchain_parts import Decisions, ToolCallingModel, calls_tool, descendants, tool_messages
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from openai_replies import ANSWER, answering
from towers import LOOKUP, PASSAGES, UNANSWERABLE

from lara_plugins import EmbeddedIndex

PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Answer from:\n{context}"), ("placeholder", "{chat_history}"), ("human", "{input}")]
)
KINDS = ["sync", "async"]


@pytest.fixture
def gated(hybrid: EmbeddedIndex) -> BaseRetriever:
    """Retrieve, gate and budget as one retriever."""
    parts = [ThresholdGate(scorer="embedded"), LatencyBudget(afford=60.0)]
    retriever: BaseRetriever = ContextualCompressionRetriever(
        base_retriever=HybridRetriever(hybrid),
        base_compressor=DocumentCompressorPipeline(transformers=parts),
    )
    return retriever


async def run(host: Runnable[Any, Any], kind: str, given: object, *handlers: BaseCallbackHandler) -> Any:  # noqa: ANN401 - hosts return documents, messages or a mapping
    config: RunnableConfig = {"callbacks": list(handlers)}
    return host.invoke(given, config) if kind == "sync" else await host.ainvoke(given, config)


def tower_and_its_builder(documents: list[Document]) -> None:
    """What the gate keeps of the towers for LOOKUP, scored, best first."""
    assert [document.id for document in documents][:1] == ["p0"]
    assert len(documents) < 5
    scores = [document.metadata["relevance_score"] for document in documents]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.3


@pytest.mark.parametrize("kind", KINDS)
async def test_contextual_compression(retriever: BaseRetriever, kind: str) -> None:
    host = ContextualCompressionRetriever(
        base_retriever=retriever, base_compressor=ThresholdGate(scorer="embedded")
    )
    tower_and_its_builder(await run(host, kind, LOOKUP))
    assert await run(host, kind, UNANSWERABLE) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_compressor_pipeline(gated: BaseRetriever, kind: str) -> None:
    decisions, collector = Decisions(), RunCollectorCallbackHandler()
    tower_and_its_builder(await run(gated, kind, LOOKUP, decisions, collector))
    assert [data["phase"] for data in decisions.told] == ["gate", "budget"]
    assert decisions.facts("gate")["candidates"] == 12
    [root] = collector.traced_runs
    assert [below.name for below in descendants(root)] == [
        *("ContextualCompressionRetriever", "HybridRetriever", "ThresholdGate", "LatencyBudget")
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_retriever_tool(gated: BaseRetriever, kind: str) -> None:
    tool = create_retriever_tool(gated, "towers", "About towers.", response_format="content_and_artifact")
    call = {"name": "towers", "args": {"query": LOOKUP}, "id": "1", "type": "tool_call"}
    message = await run(tool, kind, call)
    assert "330 metres" in message.content
    tower_and_its_builder(message.artifact)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_retrieval_chain_with_a_stock_combine_step(gated: BaseRetriever, kind: str) -> None:
    combine = create_stuff_documents_chain(FakeListChatModel(responses=["330 metres."]), PROMPT)
    answer = await run(create_retrieval_chain(gated, combine), kind, {"input": LOOKUP})
    assert answer["answer"] == "330 metres."
    tower_and_its_builder(answer["context"])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_chain_of_runnables(retriever: BaseRetriever, kind: str) -> None:
    query = (
        RunnablePassthrough.assign(context=itemgetter("input") | retriever)
        .assign(context=ThresholdGate(scorer="embedded"))
        .assign(context=LatencyBudget(afford=60.0))
        .with_config(run_name="question")
    )
    collector = RunCollectorCallbackHandler()
    tower_and_its_builder((await run(query, kind, {"input": LOOKUP}, collector))["context"])
    [root] = collector.traced_runs
    assert root.name == "question"
    names = [below.name for below in descendants(root)]
    steps = [names.index(name) for name in ("VectorStoreRetriever", "ThresholdGate", "LatencyBudget")]
    assert steps == sorted(steps)


async def test_a_stream_of_events_tells_the_decisions_with_the_runs_that_made_them(
    gated: BaseRetriever,
) -> None:
    told: list[tuple[Any, str]] = [
        (event["data"], event["metadata"]["tenant"])
        async for event in gated.astream_events(LOOKUP, {"metadata": {"tenant": "a"}}, version="v2")
        if event["event"] == "on_custom_event" and event["name"] == "lara_decision"
    ]
    assert [(data["phase"], tenant) for data, tenant in told] == [("gate", "a"), ("budget", "a")]


@pytest.mark.parametrize("kind", KINDS)
async def test_history_aware_retrieval(gated: BaseRetriever, kind: str) -> None:
    rephrasing = create_history_aware_retriever(FakeListChatModel(responses=[LOOKUP]), gated, PROMPT)
    combine = create_stuff_documents_chain(FakeListChatModel(responses=["330 metres."]), PROMPT)
    host = create_retrieval_chain(rephrasing, combine)
    history = [HumanMessage("What stands in Paris?"), AIMessage("The Eiffel Tower.")]
    given = {"input": "How tall is it?", "chat_history": history, "context": []}
    tower_and_its_builder((await run(host, kind, given))["context"])


class Conversation(MessagesState):
    """A chat with the documents that its last question is about."""

    context: list[Document]


@pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])
@pytest.mark.parametrize("asks", [1, 3])
async def test_a_graphs_message_stream_shows_the_answer_alone(asks: int, tools: bool) -> None:
    """And neither a draft nor the JSON that the model writes."""
    question = {"input": lambda state: state["messages"][-1].content, "context": itemgetter("context")}
    with ChatServer(answering) as server:
        refine = RefineInThrees(langchain_client(server, tools))
        graph = StateGraph(Conversation)
        graph.add_node("answer", question | refine | (lambda text: {"messages": [AIMessage(text)]}))
        graph.add_edge(START, "answer")
        graph.add_edge("answer", END)
        compiled = graph.compile()
        given: Any = {"messages": [("user", LOOKUP)], "context": as_documents(PASSAGES[: 3 * asks])}
        parts: list[Any] = list(compiled.stream(given, stream_mode="messages"))
        aparts: list[Any] = [part async for part in compiled.astream(given, stream_mode="messages")]
    for shown in (parts, aparts):
        assert [message.text for message, _ in shown] == [ANSWER]
    assert len(server.requests) == 2 * asks


async def test_a_graph_streams_the_answer_in_pieces_where_its_node_writes_them() -> None:
    async def answer(state: GraphState) -> dict[str, object]:
        write = get_stream_writer()
        async for piece in refine.astream({**state}):
            write(piece)
        return {}

    with ChatServer(answering) as server:
        refine = RefineInThrees(langchain_client(server, tools=True))
        graph = StateGraph(GraphState)
        graph.add_node("answer", answer)
        graph.add_edge(START, "answer")
        graph.add_edge("answer", END)
        given: Any = {"input": LOOKUP, "context": as_documents(PASSAGES[:3])}
        pieces: list[Any] = [piece async for piece in graph.compile().astream(given, stream_mode="custom")]
    assert len(pieces) > 1
    assert "".join(pieces) == ANSWER


class GraphState(TypedDict, total=False):
    """What the nodes of a graph share."""

    input: str
    context: list[Document]


@pytest.mark.parametrize("kind", KINDS)
async def test_nodes_of_a_graph(hybrid: EmbeddedIndex, kind: str) -> None:
    retriever, gate, budget = (
        HybridRetriever(hybrid),
        ThresholdGate(scorer="embedded"),
        LatencyBudget(afford=60.0),
    )
    graph = StateGraph(GraphState)
    graph.add_node("retrieve", itemgetter("input") | retriever | (lambda found: {"context": found}))
    graph.add_node("gate", gate | (lambda kept: {"context": kept}))  # type: ignore[type-var]
    graph.add_node("budget", budget | (lambda sent: {"context": sent}))  # type: ignore[type-var]
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "gate")
    graph.add_edge("gate", "budget")
    graph.add_edge("budget", END)
    decisions = Decisions()
    tower_and_its_builder((await run(graph.compile(), kind, {"input": LOOKUP}, decisions))["context"])
    assert decisions.facts("budget")["sent"] == decisions.facts("gate")["kept"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["tools", "middleware"])
async def test_an_agents_retrieval_tool(gated: BaseRetriever, kind: str, by: str) -> None:
    """Two tool calls in one message run at once; each is a query of its own."""
    model = ToolCallingModel(
        responses=[calls_tool("towers", LOOKUP, UNANSWERABLE), AIMessage("It is 330 metres tall.")]
    )
    retrieval = create_retriever_tool(
        gated, "towers", "About towers.", response_format="content_and_artifact"
    )

    class Retrieval(AgentMiddleware):
        """Brings the tool with it."""

        tools: list[BaseTool] = [retrieval]  # noqa: RUF012 - as the framework declares it

    agent = (
        create_agent(model, tools=[retrieval])
        if by == "tools"
        else create_agent(model, middleware=[Retrieval()])
    )
    decisions = Decisions()
    answer = await run(agent, kind, {"messages": [HumanMessage("The towers?")]}, decisions)
    found, missed = tool_messages(answer["messages"])
    tower_and_its_builder(found.artifact)  # type: ignore[attr-defined]  # it is a ToolMessage
    assert missed.artifact == []  # type: ignore[attr-defined]  # it is a ToolMessage
    assert answer["messages"][-1].content == "It is 330 metres tall."
    assert sorted(data["phase"] for data in decisions.told) == ["budget", "budget", "gate", "gate"]
    affords = [data["facts"]["time_left"] for data in decisions.told if data["phase"] == "budget"]
    assert all(50.0 < left <= 60.0 for left in affords)
