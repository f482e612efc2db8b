"""The application in LlamaIndex, over its real OpenAI client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any, ClassVar

from applications import AMPLE, HELLO, Application, Framework
from chat_server import ChatServer
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, StreamingResponse
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike  # type: ignore[import-untyped]
from llama_index_lara import QuestionShapeQueryEngine, RefineInThrees, lara_query_engine, observe_latency
from towers import PASSAGES

from lara_plugins import CalibratedLatency, LatencyModel, Limits, Passage
from lara_plugins.question import DEFAULT_LIMITS


class FoundNodes(BaseRetriever):
    """Finds the same nodes whatever is asked."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        super().__init__()
        self._nodes = [
            TextNode(id_=passage.id, text=passage.text, metadata={"title": passage.heading})
            for passage in passages
        ]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node) for node in self._nodes]


class _LlamaIndexApplication(Application):
    def __init__(
        self,
        ask: Callable[[str, bool], RESPONSE_TYPE],
        aask: Callable[[str, bool], Any],
    ) -> None:
        self._ask, self._aask = ask, aask
        self.response: RESPONSE_TYPE | None = None

    def whole(self, question: str) -> str:
        self.response = self._ask(question, False)
        return str(self.response)

    async def awhole(self, question: str) -> str:
        self.response = await self._aask(question, False)
        return str(self.response)

    def stream(self, question: str) -> Generator[str, None, None]:
        self.response = self._ask(question, True)
        assert isinstance(self.response, StreamingResponse)
        yield from self.response.response_gen

    async def astream(self, question: str) -> AsyncGenerator[str, None]:
        self.response = await self._aask(question, True)
        assert isinstance(self.response, AsyncStreamingResponse)
        async for piece in self.response.async_response_gen():
            yield piece

    @property
    def _lara(self) -> dict[str, Any]:
        assert self.response is not None
        assert self.response.metadata is not None
        lara: dict[str, Any] = self.response.metadata["lara"]
        return lara

    @property
    def decisions(self) -> list[dict[str, Any]]:
        decisions: list[dict[str, Any]] = self._lara["phases"]
        return decisions

    @property
    def notes(self) -> list[str]:
        notes: list[str] = self._lara["notes"]
        return notes

    @property
    def sources(self) -> list[str | None]:
        assert self.response is not None
        return [node.node_id for node in self.response.source_nodes]


class LlamaIndex(Framework):
    """LlamaIndex with ``OpenAILike``."""

    reports_usage: ClassVar = {"additional_kwargs": {"stream_options": {"include_usage": True}}}
    http_clients: ClassVar = ("http_client", "async_http_client")

    def observe(
        self, server: ChatServer, latency: CalibratedLatency | None = None, **client: object
    ) -> CalibratedLatency:
        return observe_latency(llama_index_client(server, False, **client), latency)

    async def chat(self, server: ChatServer, way: str, **client: object) -> None:
        llm, hello = llama_index_client(server, False, **client), [ChatMessage(role="user", content=HELLO)]
        match way:
            case "whole":
                llm.chat(hello)
            case "awhole":
                await llm.achat(hello)
            case "stream":
                list(llm.stream_chat(hello))
            case _:
                [_ async for _ in await llm.astream_chat(hello)]

    def refine(
        self,
        server: ChatServer,
        tools: bool = True,
        passages: Sequence[Passage] = PASSAGES[:3],
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        **client: object,
    ) -> Application:
        llm = llama_index_client(server, tools, **client)
        answer = {
            streaming: RefineInThrees(llm, streaming=streaming, latency=latency, at_once=at_once)
            for streaming in (False, True)
        }
        found = FoundNodes(passages)

        def ask(question: str, streaming: bool) -> RESPONSE_TYPE:
            return answer[streaming].synthesize(question, found.retrieve(question))

        async def aask(question: str, streaming: bool) -> RESPONSE_TYPE:
            return await answer[streaming].asynthesize(question, await found.aretrieve(question))

        return _LlamaIndexApplication(ask, aask)

    def route(
        self,
        server: ChatServer,
        tools: bool = True,
        passages: Sequence[Passage] = PASSAGES[:3],
        limits: Limits = DEFAULT_LIMITS,
        escalate: bool = False,
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        **client: object,
    ) -> Application:
        llm = llama_index_client(server, tools, **client)
        found = FoundNodes(passages)
        return _of_engines(
            lambda streaming: QuestionShapeQueryEngine(
                found,
                llm,
                latency=latency,
                at_once=at_once,
                streaming=streaming,
                limits=limits,
                escalate=escalate,
            )
        )

    def pipeline(
        self,
        server: ChatServer,
        tools: bool = True,
        afford: float = AMPLE,
        latency: float | LatencyModel | None = None,
        **client: object,
    ) -> Application:
        llm = llama_index_client(server, tools, **client)
        found = FoundNodes(PASSAGES)
        return _of_engines(
            lambda streaming: lara_query_engine(
                found, llm, afford, "embedded", latency=latency, streaming=streaming
            )
        )


def _of_engines(make: Callable[[bool], QuestionShapeQueryEngine]) -> Application:
    engines = {streaming: make(streaming) for streaming in (False, True)}
    return _LlamaIndexApplication(
        lambda question, streaming: engines[streaming].query(question),
        lambda question, streaming: engines[streaming].aquery(question),
    )


def llama_index_client(server: ChatServer, tools: bool, **settings: object) -> OpenAILike:
    defaults: dict[str, object] = {
        "model": "test",
        "api_base": server.url,
        "api_key": "x",
        "is_chat_model": True,
        "is_function_calling_model": tools,
        "context_window": 32_000,
        "max_retries": 0,
        "timeout": 20.0,
    }
    return OpenAILike(**{**defaults, **settings})
