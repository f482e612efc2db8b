"""Both frameworks' HybridRetriever and its tool, called in the same words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import langchain_lara
import llama_index_lara
from chat_server import ChatServer
from langchain.agents import create_agent
from langchain_application import langchain_client
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.utils.function_calling import convert_to_openai_tool
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.prompts import PromptTemplate
from llama_index_application import llama_index_client
from support_traces import lara

from lara_plugins import HybridIndex


@dataclass(frozen=True)
class Used:
    """One use of a tool: what the agent reads, the ids behind it, and whether it was refused."""

    text: str
    ids: list[str | None]
    refused: bool


class Retrieval(ABC):
    """A framework's retriever over an index."""

    own_prompt: object
    """Some template of the user's for the hypothetical answer."""

    @abstractmethod
    def retriever(self, index: HybridIndex, **arguments: object) -> Any:  # noqa: ANN401 - the framework's
        """The retriever."""

    @abstractmethod
    def llm(self, server: ChatServer, **settings: object) -> Any:  # noqa: ANN401
        """The framework's real OpenAI client."""

    @abstractmethod
    async def ids(self, kind: str, retriever: Any, question: str, **narrowing: object) -> list[str]:  # noqa: ANN401
        """What a call finds."""

    @abstractmethod
    def tool(self, retriever: Any, gate: bool = False, **arguments: object) -> Any:  # noqa: ANN401
        """The retriever as the tool ``search``; with a gate and a budget behind it, or not."""

    @abstractmethod
    async def trace(self, retriever: Any, question: str, afford: float) -> dict[str, Any]:  # noqa: ANN401
        """What an application on all five phases says of a question."""

    @abstractmethod
    def schema(self, tool: Any) -> dict[str, Any]:  # noqa: ANN401
        """The tool as an LLM is told of it."""

    @abstractmethod
    async def use(self, kind: str, tool: Any, **arguments: object) -> Used:  # noqa: ANN401
        """Call the tool as an agent does."""

    @abstractmethod
    async def agent(self, server: ChatServer, tool: Any, question: str) -> tuple[str, list[Used]]:  # noqa: ANN401
        """A real agent's turn: its answer, and what its uses of the tool brought."""


class LlamaIndexRetrieval(Retrieval):
    """LlamaIndex."""

    own_prompt = PromptTemplate("Imagine a document about: {query_str}")

    def retriever(self, index: HybridIndex, **arguments: object) -> Any:  # noqa: ANN401
        if "hyde_prompt" in arguments:
            arguments["hyde_template"] = arguments.pop("hyde_prompt")
        return llama_index_lara.HybridRetriever(index, **arguments)  # type: ignore[arg-type]

    def llm(self, server: ChatServer, **settings: object) -> Any:  # noqa: ANN401
        return llama_index_client(server, tools=True, **settings)

    async def ids(self, kind: str, retriever: Any, question: str, **narrowing: object) -> list[str]:  # noqa: ANN401
        narrowed = retriever.narrowed(**narrowing)
        found = narrowed.retrieve(question) if kind == "sync" else await narrowed.aretrieve(question)
        return [node.node_id for node in found]

    def tool(self, retriever: Any, gate: bool = False, **arguments: object) -> Any:  # noqa: ANN401
        behind: list[Any] = []
        if gate:
            behind = [llama_index_lara.ThresholdGate("embedded"), llama_index_lara.LatencyBudget(60.0)]
        return llama_index_lara.retriever_tool(
            retriever,
            "search",
            "Searches.",
            node_postprocessors=behind,
            **arguments,  # type: ignore[arg-type]
        )

    async def trace(self, retriever: Any, question: str, afford: float) -> dict[str, Any]:  # noqa: ANN401
        llm = llama_index_lara.ExtractiveLLM()
        engine = llama_index_lara.lara_query_engine(retriever, llm, afford, "embedded")
        return lara(await engine.aquery(question))

    def schema(self, tool: Any) -> dict[str, Any]:  # noqa: ANN401
        function: dict[str, Any] = tool.metadata.to_openai_tool()["function"]
        return function

    async def use(self, kind: str, tool: Any, **arguments: object) -> Used:  # noqa: ANN401
        return self._used(tool.call(**arguments) if kind == "sync" else await tool.acall(**arguments))

    async def agent(self, server: ChatServer, tool: Any, question: str) -> tuple[str, list[Used]]:  # noqa: ANN401
        handler = FunctionAgent(tools=[tool], llm=self.llm(server)).run(question)
        used = [
            self._used(event.tool_output)
            async for event in handler.stream_events()
            if isinstance(event, ToolCallResult)
        ]
        return str(await handler), used

    def _used(self, output: Any) -> Used:  # noqa: ANN401
        return Used(output.content, [node.node_id for node in output.raw_output], output.is_error)


class LangChainRetrieval(Retrieval):
    """LangChain."""

    own_prompt = ChatPromptTemplate.from_messages([("human", "Imagine a document about: {input}")])

    def retriever(self, index: HybridIndex, **arguments: object) -> Any:  # noqa: ANN401
        return langchain_lara.HybridRetriever(index, **arguments)  # type: ignore[arg-type]

    def llm(self, server: ChatServer, **settings: object) -> Any:  # noqa: ANN401
        return langchain_client(server, tools=True, **settings)

    async def ids(self, kind: str, retriever: Any, question: str, **narrowing: object) -> list[str]:  # noqa: ANN401
        found = (
            retriever.invoke(question, **narrowing)
            if kind == "sync"
            else await retriever.ainvoke(question, **narrowing)
        )
        return [document.id for document in found]

    def tool(self, retriever: Any, gate: bool = False, **arguments: object) -> Any:  # noqa: ANN401
        behind: list[Any] = []
        if gate:
            behind = [langchain_lara.ThresholdGate("embedded"), langchain_lara.LatencyBudget(60.0)]
        return langchain_lara.retriever_tool(
            retriever,
            "search",
            "Searches.",
            compressors=behind,
            **arguments,  # type: ignore[arg-type]
        )

    async def trace(self, retriever: Any, question: str, afford: float) -> dict[str, Any]:  # noqa: ANN401
        model = langchain_lara.ExtractiveChatModel()
        chain = langchain_lara.lara_chain(retriever, model, afford, "embedded")
        trace: dict[str, Any] = (await chain.ainvoke({"input": question}))["lara"]
        return trace

    def schema(self, tool: Any) -> dict[str, Any]:  # noqa: ANN401
        function: dict[str, Any] = convert_to_openai_tool(tool)["function"]
        return function

    async def use(self, kind: str, tool: Any, **arguments: object) -> Used:  # noqa: ANN401
        call = {"name": "search", "args": arguments, "id": "1", "type": "tool_call"}
        return self._used(tool.invoke(call) if kind == "sync" else await tool.ainvoke(call))

    async def agent(self, server: ChatServer, tool: Any, question: str) -> tuple[str, list[Used]]:  # noqa: ANN401
        answered = await create_agent(self.llm(server), tools=[tool]).ainvoke(
            {"messages": [HumanMessage(question)]}
        )
        used = [self._used(each) for each in answered["messages"] if isinstance(each, ToolMessage)]
        return str(answered["messages"][-1].text), used

    def _used(self, message: ToolMessage) -> Used:
        found = message.artifact or []
        return Used(str(message.text), [document.id for document in found], message.status == "error")


RETRIEVALS: dict[str, Retrieval] = {"llama-index": LlamaIndexRetrieval(), "langchain": LangChainRetrieval()}
