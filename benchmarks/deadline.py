"""Whether a deadline is kept over loopback by both frameworks' real OpenAI clients, and what is left behind.

    PYTHONPATH=.:integrations/llama-index:integrations/langchain:tests/support python benchmarks/deadline.py

200 queries each, sync (8 at once) and async. Of the calls, an eighth hangs, an eighth trickles on past
the deadline, and one in sixteen answers 429 with a Retry-After beyond it; the others answer at once. A
query is timed from its start to its answer, or to its error. Threads of calls and connections are
counted a second after the server lets go of what hangs, while it lives: a connection that the client
keeps idle for its next call is told apart.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Protocol

from chat_server import Chat, ChatServer, Request
from langchain_application import as_documents, langchain_client
from langchain_lara import RefineInThrees
from langchain_parts import Decisions
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_application import llama_index_client
from llama_index_lara import RefineInThrees as RefineNodesInThrees
from open_connections import CountedClients
from openai import APIError
from openai_replies import answering

from lara_plugins import Passage, QueryClock, TooManyAbandonedCalls

QUESTION = "How tall is the Eiffel Tower?"
TOWER = Passage("p1", "The Eiffel Tower is 330 metres tall.")
HELLO = "Hello."


class Asks(Protocol):
    """Answers the question with one framework's client, and says how that ended."""

    def ask(self) -> str:
        """How a query ended."""

    async def aask(self) -> str:
        """As ``ask``, without blocking the event loop."""

    def warm(self) -> None:
        """Make the client's first call, which makes the client."""

    async def awarm(self) -> None:
        """As ``warm``, of the client's asynchronous half."""


class LlamaIndex:
    """The synthesizer over ``OpenAILike``."""

    def __init__(self, server: ChatServer, clients: CountedClients, retries: int) -> None:
        self._llm = llama_index_client(
            server,
            tools=True,
            max_retries=retries,
            timeout=60.0,
            http_client=clients.http,
            async_http_client=clients.async_http,
        )
        self._refine = RefineNodesInThrees(self._llm, latency=0.001)
        self._nodes = [NodeWithScore(node=TextNode(id_=TOWER.id, text=TOWER.text))]

    def ask(self) -> str:
        """How a query ended."""
        return _outcome((self._refine.synthesize(QUESTION, self._nodes).metadata or {})["lara"]["phases"])

    async def aask(self) -> str:
        """As ``ask``, without blocking the event loop."""
        response = await self._refine.asynthesize(QUESTION, self._nodes)
        return _outcome((response.metadata or {})["lara"]["phases"])

    def warm(self) -> None:
        """Make the client's first call."""
        self._llm.chat([ChatMessage(role="user", content=HELLO)])

    async def awarm(self) -> None:
        """As ``warm``, asynchronously."""
        await self._llm.achat([ChatMessage(role="user", content=HELLO)])


class LangChain:
    """The runnable over ``ChatOpenAI``."""

    def __init__(self, server: ChatServer, clients: CountedClients, retries: int) -> None:
        self._llm = langchain_client(
            server,
            tools=True,
            max_retries=retries,
            timeout=60.0,
            http_client=clients.http,
            http_async_client=clients.async_http,
        )
        self._refine = RefineInThrees(self._llm, latency=0.001)
        self._given = {"input": QUESTION, "context": as_documents([TOWER])}

    def ask(self) -> str:
        """How a query ended."""
        heard = Decisions()
        self._refine.invoke(self._given, {"callbacks": [heard]})
        return str(heard.facts("answer")["outcome"])

    async def aask(self) -> str:
        """As ``ask``, without blocking the event loop."""
        heard = Decisions()
        await self._refine.ainvoke(self._given, {"callbacks": [heard]})
        return str(heard.facts("answer")["outcome"])

    def warm(self) -> None:
        """Make the client's first call."""
        self._llm.invoke(HELLO)

    async def awarm(self) -> None:
        """As ``warm``, asynchronously."""
        await self._llm.ainvoke(HELLO)


FRAMEWORKS: dict[str, Callable[[ChatServer, CountedClients, int], Asks]] = {
    "llama-index": LlamaIndex,
    "langchain": LangChain,
}


def responding(event: threading.Event) -> Callable[[Request], Chat]:
    """Faults by turns, the same in every run."""
    numbers = itertools.count()

    def respond(request: Request) -> Chat:
        if "Eiffel" not in str(request):
            return Chat(text="Hello.")
        number = next(numbers) % 16
        whole = answering(request)
        if number in {1, 9}:
            return Chat(**{**vars(whole), "withhold": event})
        if number in {5, 13}:
            return Chat(**{**vars(whole), "withhold": event, "trickles": True})
        if number == 3:
            return Chat(status=429, headers={"Retry-After": "30"})
        return whole

    return respond


def main() -> None:
    """Print how late queries return and what is left a second after the server lets go."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--afford", type=float, default=1.0)
    parser.add_argument("--retries", type=int, default=2, help="of the client, for each call")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {arguments.retries} retries of the client")
    for framework, make in FRAMEWORKS.items():
        for name, run in (("sync, 8 at once", _sync), ("async, 8 at once", _async)):
            event, clients = threading.Event(), CountedClients()
            with ChatServer(responding(event)) as server:
                ended: Counter[str] = Counter()
                asks = make(server, clients, arguments.retries)
                seconds = run(asks, arguments.queries, arguments.afford, ended)
                event.set()
                time.sleep(1.0)
                threads = sum(one.name == "lara-call" for one in threading.enumerate())
            late = [one - arguments.afford for one in seconds]
            kept = sum(one <= 0.1 for one in late) / len(late)
            print(
                f"{framework}, {name}: {kept:.1%} of {len(late)} return within 100 ms of the deadline, "
                f"the latest {1000 * max(late):.0f} ms after it, the median query "
                f"{1000 * median(seconds):.0f} ms; {dict(ended.most_common())}; "
                f"a second after the server let go: {threads} threads of calls, "
                f"{clients.in_use()} connections in use, {clients.idle()} idle"
            )


def _sync(asks: Asks, queries: int, afford: float, ended: Counter[str]) -> list[float]:
    def ask(number: int) -> float:
        began = time.monotonic()
        try:
            with QueryClock(afford):
                ended[asks.ask()] += 1
        except (TooManyAbandonedCalls, APIError) as error:
            ended[type(error).__name__] += 1
        return time.monotonic() - began

    asks.warm()
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(ask, range(queries)))


def _async(asks: Asks, queries: int, afford: float, ended: Counter[str]) -> list[float]:
    async def ask(turns: asyncio.Semaphore) -> float:
        async with turns:
            began = time.monotonic()
            try:
                with QueryClock(afford):
                    ended[await asks.aask()] += 1
            except APIError as error:
                ended[type(error).__name__] += 1
            return time.monotonic() - began

    async def all_of_them() -> list[float]:
        await asks.awarm()
        turns = asyncio.Semaphore(8)
        return list(await asyncio.gather(*(ask(turns) for _ in range(queries))))

    return asyncio.run(all_of_them())


def _outcome(phases: list[dict[str, object]]) -> str:
    return str(next(phase["outcome"] for phase in phases if phase["phase"] == "answer"))


if __name__ == "__main__":
    main()
