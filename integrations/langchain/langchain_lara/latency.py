"""Latency models that learn from LangChain's callbacks.

A handler that every run inherits sees the calls of all models, whoever makes them; each teaches
the latency model of its LLM and endpoint. Calls of an LLM that nobody asked to observe are passed
over. A cancelled call announces no end: LARA tells the ends of its own, others are forgotten after
a while.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseLanguageModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from langchain_lara.limits import Model, bare_model
from lara_plugins import CalibratedLatency, InvalidArgument
from lara_plugins.budget import CallWatch, conservative_tokens

_MODELS = ("model", "model_name", "model_id", "deployment_name", "azure_deployment")
_ENDPOINTS = ("openai_api_base", "base_url", "azure_endpoint", "endpoint_url", "anthropic_api_url")

_Key = tuple[str, ...]


def observe_latency(llm: Model, latency: CalibratedLatency | None = None) -> CalibratedLatency:
    """The latency model of an LLM at its endpoint, which learns from every call from now on.

    Give it to ``LatencyBudget``, ``lara_chain`` or an answerer as ``latency``. Asked again for the
    same model name at the same endpoint, it is the same model.

    Args:
        llm: the model whose calls it learns from; what is bound to it plays no part.
        latency: the model that is to learn, such as one loaded from a file; by default a new one.

    Raises:
        InvalidArgument: ``llm`` is not a model, nor one under ``bind``, ``with_config`` or ``with_retry``.
    """
    bare = bare_model(llm, {})
    if not isinstance(bare, BaseLanguageModel):
        raise InvalidArgument("llm", llm, "give a chat model or a text model")
    key = _key(dumpd(bare))
    with _observed.lock:
        if latency is not None:
            _observed.models[key] = latency
        elif key not in _observed.models:
            _observed.models[key] = CalibratedLatency(_name(key))
        if not _observed.installed:
            register_configure_hook(_handler, inheritable=True)
            _observed.installed = True
        return _observed.models[key]


def given_up(run_id: UUID | None) -> None:
    """A call was cancelled, of which LangChain tells nobody."""
    if run_id is not None:
        _observed.watch.failed(str(run_id))


def _key(serialized: Mapping[str, Any]) -> _Key:
    """Which LLM it is, from what its runs say of it: its class, its model and where it is served."""
    known = ".".join(serialized.get("id", ()))
    if serialized.get("type") != "constructor":
        return known, str(serialized.get("repr", ""))
    settings = serialized["kwargs"]
    return known, _first(settings, _MODELS), _first(settings, _ENDPOINTS)


def _first(settings: Mapping[str, object], names: Sequence[str]) -> str:
    return next((str(settings[name]) for name in names if settings.get(name)), "")


def _name(key: _Key) -> str:
    kind, *settings = key
    return " ".join(part for part in (kind.rpartition(".")[2], *settings) if part)


class _Observed:
    """The models by their LLM, and the calls that are under way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.installed = False
        self.models: dict[_Key, CalibratedLatency] = {}
        self.watch = CallWatch()

    def began(self, run_id: UUID, serialized: Mapping[str, Any] | None, tokens: int) -> None:
        latency = self.models.get(_key(serialized or {}))
        if latency is not None:
            self.watch.began(str(run_id), latency, tokens)


_observed = _Observed()


class _Tells(BaseCallbackHandler):
    """Tells the starts, pieces and ends of calls; keeps nothing of what they carry."""

    run_inline = True  # in an async application too, where the reader of a stream is known
    ignore_chain = ignore_agent = ignore_retriever = ignore_custom_event = True

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: object,
    ) -> None:
        tokens = sum(conservative_tokens(message.text) for message in messages[0])
        _observed.began(run_id, serialized, tokens)

    def on_llm_start(
        self, serialized: dict[str, Any] | None, prompts: list[str], *, run_id: UUID, **kwargs: object
    ) -> None:
        _observed.began(run_id, serialized, conservative_tokens(prompts[0]))

    def on_llm_new_token(self, token: object, *, run_id: UUID, **kwargs: object) -> None:
        _observed.watch.brought(str(run_id))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: object) -> None:
        if str(run_id) in _observed.watch:
            _observed.watch.ended(str(run_id), _written(response))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        _observed.watch.failed(str(run_id))


_SEES_ALL = _Tells()
# The handler is the variable's default: one that is set in one thread is not seen in another.
_handler: ContextVar[BaseCallbackHandler | None] = ContextVar("lara_latency", default=_SEES_ALL)


def _written(response: LLMResult) -> int:
    """Output tokens, as the provider counts them or, where it does not, a quarter of the characters."""
    generation = response.generations[0][0]
    message = generation.message if isinstance(generation, ChatGeneration) else None
    if not isinstance(message, AIMessage):
        return -(-len(generation.text) // 4)
    if message.usage_metadata and message.usage_metadata["output_tokens"]:
        return message.usage_metadata["output_tokens"]
    calls = (*message.tool_calls, *message.invalid_tool_calls)
    return -(-len(message.text + "".join(str(call["args"]) for call in calls)) // 4)
