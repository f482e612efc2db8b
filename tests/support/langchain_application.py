"""The application in LangChain, over its real OpenAI client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, ClassVar

from applications import AMPLE, HELLO, Application, Framework
from chat_server import ChatServer
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_lara import QuestionShapeRouter, RefineInThrees, lara_chain, observe_latency
from langchain_openai import ChatOpenAI
from langchain_parts import Decisions
from towers import PASSAGES

from lara_plugins import CalibratedLatency, LatencyModel, Limits, Passage
from lara_plugins.question import DEFAULT_LIMITS


class FoundDocuments(BaseRetriever):
    """Finds the same documents whatever is asked."""

    documents: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return list(self.documents)


def as_documents(passages: Sequence[Passage]) -> list[Document]:
    return [
        Document(id=passage.id, page_content=passage.text, metadata={"heading": passage.heading})
        for passage in passages
    ]


class _LangChainApplication(Application):
    def __init__(self, runnable: Runnable[Any, Any], given: dict[str, object]) -> None:
        self._runnable, self._given = runnable, given
        self._heard = Decisions()
        self._context: list[Document] = []

    def _start(self, question: str) -> tuple[Any, Any]:
        self._heard = Decisions()
        return {"input": question, **self._given}, {"callbacks": [self._heard]}

    def whole(self, question: str) -> str:
        return self._read(self._runnable.invoke(*self._start(question)))

    async def awhole(self, question: str) -> str:
        return self._read(await self._runnable.ainvoke(*self._start(question)))

    def stream(self, question: str) -> Generator[str, None, None]:
        for chunk in self._runnable.stream(*self._start(question)):
            if text := self._read(chunk):
                yield text

    async def astream(self, question: str) -> AsyncGenerator[str, None]:
        async for chunk in self._runnable.astream(*self._start(question)):
            if text := self._read(chunk):
                yield text

    def _read(self, output: Any) -> str:  # noqa: ANN401 - a step's text, or a chain's mapping
        if isinstance(output, str):
            return output
        self._context = output.get("context", self._context)
        return str(output.get("answer", ""))

    @property
    def decisions(self) -> list[dict[str, Any]]:
        return [
            {"phase": told["phase"], "reason": told["reason"], **told["facts"]} for told in self._heard.told
        ]

    @property
    def notes(self) -> list[str]:
        notes: list[str] = self._heard.told[-1]["notes"]
        return notes

    @property
    def sources(self) -> list[str | None]:
        return [document.id for document in self._context]


class LangChain(Framework):
    """LangChain with ``ChatOpenAI``."""

    reports_usage: ClassVar = {"stream_usage": True}
    http_clients: ClassVar = ("http_client", "http_async_client")

    def observe(
        self, server: ChatServer, latency: CalibratedLatency | None = None, **client: object
    ) -> CalibratedLatency:
        return observe_latency(langchain_client(server, False, **client), latency)

    async def chat(self, server: ChatServer, way: str, **client: object) -> None:
        llm = langchain_client(server, False, **client)
        match way:
            case "whole":
                llm.invoke(HELLO)
            case "awhole":
                await llm.ainvoke(HELLO)
            case "stream":
                list(llm.stream(HELLO))
            case _:
                [_ async for _ in llm.astream(HELLO)]

    def refine(
        self,
        server: ChatServer,
        tools: bool = True,
        passages: Sequence[Passage] = PASSAGES[:3],
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        **client: object,
    ) -> Application:
        llm = langchain_client(server, tools, **client)
        return _LangChainApplication(
            RefineInThrees(llm, latency=latency, at_once=at_once), {"context": as_documents(passages)}
        )

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
        llm = langchain_client(server, tools, **client)
        router = QuestionShapeRouter(llm, latency=latency, at_once=at_once, limits=limits, escalate=escalate)
        return _LangChainApplication(router, {"context": as_documents(passages)})

    def pipeline(
        self,
        server: ChatServer,
        tools: bool = True,
        afford: float = AMPLE,
        latency: float | LatencyModel | None = None,
        **client: object,
    ) -> Application:
        llm = langchain_client(server, tools, **client)
        retriever = FoundDocuments(documents=as_documents(PASSAGES))
        return _LangChainApplication(lara_chain(retriever, llm, afford, "embedded", latency=latency), {})


def langchain_client(server: ChatServer, tools: bool, **settings: object) -> ChatOpenAI:
    window = settings.pop("context_window", 32_000)
    defaults: dict[str, object] = {
        "model": "test",
        "base_url": server.url,
        "api_key": "x",
        "profile": {"tool_calling": tools, "max_input_tokens": window},
        "max_retries": 0,
        "timeout": 20.0,
    }
    return ChatOpenAI(**{**defaults, **settings})  # type: ignore[arg-type]  # whatever a test sets
