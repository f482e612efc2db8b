"""Latency models that learn from LlamaIndex's own instrumentation.

The calls of an LLM are seen on the root dispatcher, whoever makes them; each teaches the model of
its LLM and endpoint. The root dispatcher tells of every LLM of the process, so that calls of one
that nobody asked to observe are passed over.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.llms import LLM

from lara_plugins import CalibratedLatency
from lara_plugins.budget import CallWatch, conservative_tokens
from llama_index_lara.replies import tool_calls, usage_of
from llama_index_lara.spans import SpanWatch

_Key = tuple[str, str, str]

_ENDPOINTS = ("api_base", "base_url", "azure_endpoint", "endpoint")


def observe_latency(llm: LLM, latency: CalibratedLatency | None = None) -> CalibratedLatency:
    """The latency model of an LLM at its endpoint, which learns from every call from now on.

    Give it to ``LatencyBudget``, ``lara_query_engine`` or a synthesizer as ``latency``. Asked
    again for the same model name at the same endpoint, it is the same model.

    Args:
        llm: the LLM whose calls it learns from.
        latency: the model that is to learn, such as one loaded from a file; by default a new one.
    """
    key = _key(llm)
    with _observed.lock:
        if latency is not None:
            _observed.models[key] = latency
        elif key not in _observed.models:
            _observed.models[key] = CalibratedLatency(" ".join(part for part in key if part))
        if not _observed.installed:
            root = get_dispatcher()
            root.add_span_handler(_Calls())
            root.add_event_handler(_Tells())
            _observed.installed = True
        return _observed.models[key]


def _key(llm: LLM) -> _Key:
    """Which LLM it is: its class, its model and where it is served."""
    model = getattr(llm, "model", None) or getattr(llm, "model_name", None) or ""
    endpoint = next((getattr(llm, name) for name in _ENDPOINTS if getattr(llm, name, None)), "")
    return llm.class_name(), str(model), str(endpoint)


class _Observed:
    """The models by their LLM, the spans of their LLMs' methods, and the calls that are under way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.installed = False
        self.models: dict[_Key, CalibratedLatency] = {}
        self.spans: dict[str, CalibratedLatency] = {}
        self.watch = CallWatch()

    def entered(self, span: str, parent: str | None, instance: object) -> None:
        # A chat that is made of a completion is one call: the outer one.
        if isinstance(instance, LLM) and (parent or "") not in self.watch:
            latency = self.models.get(_key(instance))
            if latency is not None:
                self.spans[span] = latency

    def began(self, span: str, prompt_tokens: int) -> None:
        latency = self.spans.get(span)
        if latency is not None:
            self.watch.began(span, latency, prompt_tokens)


_observed = _Observed()


class _Calls(SpanWatch):
    """Tells which LLM a span belongs to, and the calls that end with an error."""

    @classmethod
    def class_name(cls) -> str:
        return "LaraCalls"

    def entered(self, span: str, parent: str | None, instance: object) -> None:
        _observed.entered(span, parent, instance)

    def left(self, span: str, failed: bool) -> None:
        _observed.spans.pop(span, None)
        if failed:
            _observed.watch.failed(span)


class _Tells(BaseEventHandler):
    """Tells the starts, pieces and ends of calls."""

    @classmethod
    def class_name(cls) -> str:
        return "LaraLatency"

    def handle(self, event: BaseEvent, **kwargs: object) -> None:
        span = event.span_id or ""
        match event:
            case LLMChatStartEvent():
                _observed.began(span, _tokens_of(event.messages))
            case LLMCompletionStartEvent():
                _observed.began(span, conservative_tokens(event.prompt))
            case LLMChatInProgressEvent() | LLMCompletionInProgressEvent():
                _observed.watch.brought(span)
            case LLMChatEndEvent() | LLMCompletionEndEvent():
                _observed.watch.ended(span, _written(event.response))
            case ExceptionEvent():
                _observed.watch.failed(span)


def _tokens_of(messages: Sequence[ChatMessage]) -> int:
    return sum(conservative_tokens(message.content or "") for message in messages)


def _written(response: ChatResponse | CompletionResponse | None) -> int | None:
    """Output tokens, as the provider counts them or, where it does not, a quarter of the characters."""
    if response is None:
        return None
    usage = usage_of(response)
    if usage is not None and usage.output_tokens:
        return usage.output_tokens
    text = response.text if isinstance(response, CompletionResponse) else response.message.content or ""
    calls = tool_calls(response) if isinstance(response, ChatResponse) else []
    return -(-len(text + "".join(str(call.tool_kwargs) for call in calls)) // 4)
