"""What the same application in both frameworks has to offer its tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, ClassVar

from chat_server import ChatServer
from towers import PASSAGES

from lara_plugins import CalibratedLatency, LatencyModel, Limits, Passage
from lara_plugins.question import DEFAULT_LIMITS

AMPLE = 600.0
"""Seconds that no test takes."""

HELLO = "Hello, how tall is the tower?"

WAYS = ("whole", "awhole", "stream", "astream")


class Application(ABC):
    """Answers questions in four ways, and tells what LARA wrote about the last one."""

    @abstractmethod
    def whole(self, question: str) -> str:
        """The answer."""

    @abstractmethod
    async def awhole(self, question: str) -> str:
        """The answer, asynchronously."""

    @abstractmethod
    def stream(self, question: str) -> Generator[str, None, None]:
        """The answer's pieces."""

    @abstractmethod
    def astream(self, question: str) -> AsyncGenerator[str, None]:
        """The answer's pieces, asynchronously."""

    @property
    @abstractmethod
    def decisions(self) -> list[dict[str, Any]]:
        """What was decided about the last question."""

    @property
    @abstractmethod
    def notes(self) -> list[str]:
        """What else was noted about it."""

    @property
    @abstractmethod
    def sources(self) -> list[str | None]:
        """Ids of what the answer cites, or of the best seen."""

    def facts(self, phase: str) -> dict[str, Any]:
        """The facts of a phase's latest decision, without its duration."""
        latest = [decided for decided in self.decisions if decided["phase"] == phase][-1]
        return {key: value for key, value in latest.items() if key not in {"phase", "reason", "seconds"}}

    async def told(self, way: str, question: str) -> str:
        """The answer, whichever way."""
        match way:
            case "whole":
                return self.whole(question)
            case "awhole":
                return await self.awhole(question)
            case "stream":
                return "".join(self.stream(question))
            case _:
                return "".join([piece async for piece in self.astream(question)])


class Framework(ABC):
    """Makes applications over some passages; its client talks to a chat server."""

    reports_usage: ClassVar[dict[str, Any]]
    """Settings of a client that asks for the tokens of a stream."""

    http_clients: ClassVar[tuple[str, str]]
    """Settings of a client that give it HTTP clients, the synchronous and the asynchronous one."""

    @abstractmethod
    def observe(
        self, server: ChatServer, latency: CalibratedLatency | None = None, **client: object
    ) -> CalibratedLatency:
        """The latency model of a client."""

    @abstractmethod
    async def chat(self, server: ChatServer, way: str, **client: object) -> None:
        """Say hello to a client that LARA has no part in, in one of the ways; a stream is read to its end."""

    @abstractmethod
    def refine(
        self,
        server: ChatServer,
        tools: bool = True,
        passages: Sequence[Passage] = PASSAGES[:3],
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        **client: object,
    ) -> Application:
        """Refine in threes, over these passages."""

    @abstractmethod
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
        """The router, over these passages."""

    @abstractmethod
    def pipeline(
        self,
        server: ChatServer,
        tools: bool = True,
        afford: float = AMPLE,
        latency: float | LatencyModel | None = None,
        **client: object,
    ) -> Application:
        """All phases, over all the towers."""
