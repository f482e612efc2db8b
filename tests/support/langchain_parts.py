"""Small real parts of LangChain applications."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForChainRun
from langchain_core.callbacks.manager import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeMessagesListChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough, RunnableSerializable
from langchain_core.tracers.schemas import Run
from langchain_lara import LatencyBudget, ThresholdGate
from langchain_lara.queries import Part
from langchain_lara.state import query_state
from pydantic import PrivateAttr, SkipValidation
from towers import PASSAGES

from lara_plugins import QueryState
from lara_plugins.retrieval import WordLlamaEncoder

_encoder = WordLlamaEncoder()

DOCUMENTS = [
    Document(
        id=passage.id,
        page_content=passage.text,
        metadata={"heading": passage.heading, "source": passage.source},
    )
    for passage in PASSAGES
]


class WordEmbeddings(Embeddings):
    """WordLlama vectors: no account, no download."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [_encoder.encode_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return _encoder.encode_query(text)


class ToolCallingModel(FakeMessagesListChatModel):
    """Says what it was told to say, tool calls included; takes tools without looking at them."""

    def bind_tools(self, tools: object, **kwargs: object) -> Runnable[LanguageModelInput, AIMessage]:
        return self


def calls_tool(name: str, *questions: str) -> AIMessage:
    """A message that calls a retriever tool once for each question."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": {"query": question}, "id": f"call-{n}"}
            for n, question in enumerate(questions)
        ],
    )


def tool_messages(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Those of them that tools have written."""
    return [message for message in messages if message.type == "tool"]


class WatchedRetriever(BaseRetriever):
    """Returns the same documents, after a call."""

    during: SkipValidation[Callable[[str], object]]
    documents: list[Document] = DOCUMENTS

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.during(query)
        return list(self.documents)


class StateRecorder(RunnableSerializable[dict[str, Any], dict[str, Any]]):
    """Keeps the state that each of its runs finds, and passes its input on."""

    part: Part = "answer"
    _states: list[QueryState] = PrivateAttr(default_factory=list)

    @property
    def states(self) -> list[QueryState]:
        return self._states

    def invoke(
        self,
        input: dict[str, Any],  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: object,
    ) -> dict[str, Any]:
        return self._call_with_config(self._record, input, config)

    def _record(self, given: dict[str, Any], run_manager: CallbackManagerForChainRun) -> dict[str, Any]:
        state = query_state(run_manager.run_id, self.part, given["input"])
        state.trace.record(self.part, given["input"], 0.0)
        self._states.append(state)
        return {**given, "state": state}


def gated_query(
    retriever: Runnable[str, list[Document]], recorder: StateRecorder, afford: float = 60.0
) -> Runnable[dict[str, Any], dict[str, Any]]:
    """A chain of one query: retrieve, gate, budget, and a last part that keeps the state."""
    return (
        RunnablePassthrough.assign(context=itemgetter("input") | retriever)
        .assign(context=ThresholdGate(scorer="embedded"))
        .assign(context=LatencyBudget(afford=afford))
        | recorder
    )


WHOLE_QUERY = ["retrieval", "gate", "budget", "answer"]
"""The phases of a ``gated_query``."""


class Decisions(BaseCallbackHandler):
    """Keeps what LARA's custom events tell."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def on_custom_event(self, name: str, data: dict[str, Any], *, run_id: UUID, **kwargs: object) -> None:
        if name == "lara_decision":
            self.told.append(data)

    def facts(self, phase: str) -> dict[str, Any]:
        """The facts of a phase's latest decision."""
        facts: dict[str, Any] = [data["facts"] for data in self.told if data["phase"] == phase][-1]
        return facts


def phases(state: QueryState) -> list[str]:
    """The names of the phases in a state's trace."""
    return [phase.name for phase in state.trace.phases]


def spend(seconds: float) -> Callable[[str], None]:
    """Busy for at least so long on the monotonic clock."""

    def wait(question: str) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    return wait


def nothing(question: str) -> None:
    """What a retriever does where nobody watches."""


def descendants(run: Run) -> Iterator[Run]:
    """A traced run and all below it, in order."""
    yield run
    for child in run.child_runs:
        yield from descendants(child)
