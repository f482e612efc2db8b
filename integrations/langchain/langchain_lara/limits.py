"""The model under what was bound to it, and the limits of one call that it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from pydantic import BaseModel

from lara_plugins import Ask, InvalidArgument
from lara_plugins.answering.openai_client import until_deadline

Model: TypeAlias = Runnable[list[BaseMessage], BaseMessage | str]


def check_model(llm: object, argument: str = "llm") -> None:
    """Refuse what is no model, such as a model's name.

    Args:
        llm: what was given for a model.
        argument: as what.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(llm, Runnable):
        raise InvalidArgument(
            argument, llm, "give a chat model, such as init_chat_model('openai:gpt-4.1-mini')"
        )


def bare_model(llm: Model, config: RunnableConfig) -> Model:
    """The model itself, without what was bound to it, as the config configures it."""
    while isinstance(llm, RunnableBindingBase | DynamicRunnable):
        llm = llm.bound if isinstance(llm, RunnableBindingBase) else llm.prepare(config)[0]
    return llm


def limits_of_call(ask: Ask, llm: Model, bare: Model) -> dict[str, Any]:
    """What the model takes of the ask's limits for this one call; what it does not take is left out.

    Models take the cap where they have a setting of that name. The user's own cap, set or bound, counts
    where it is stricter.
    """
    limits = dict[str, Any]()
    if ask.max_output_tokens is not None and "max_tokens" in _fields(bare):
        own = _bound(llm, "max_tokens") or getattr(bare, "max_tokens", None)
        limits["max_tokens"] = min(ask.max_output_tokens, own or ask.max_output_tokens)
    return limits


def in_time(llm: Model, config: RunnableConfig, seconds: float) -> Model:
    """The model for one call within some seconds, with all that was bound to it.

    Where it is a client of OpenAI's protocol, its requests end with the deadline; any other is left
    as it is.
    """
    if seconds == math.inf:
        return llm
    if isinstance(llm, RunnableBindingBase):
        bound = in_time(llm.bound, merge_configs(llm.config, config), seconds)
        return llm if bound is llm.bound else llm.model_copy(update={"bound": bound})
    if isinstance(llm, DynamicRunnable):
        prepared = in_time(llm.prepare(config)[0], config, seconds)
        return prepared if llm.config is None else prepared.with_config(llm.config)
    return _with_bounded_clients(llm, seconds)


def _with_bounded_clients(bare: Model, seconds: float) -> Model:
    clients = {"client": "root_client", "async_client": "root_async_client"}
    if not isinstance(bare, BaseModel) or not _fields(bare) >= {*clients, *clients.values()}:
        return bare
    bounded = dict[str, Any]()
    for calls, root in clients.items():
        if (client := getattr(bare, root)) is not None:
            bounded[root] = until_deadline(client, seconds)
            bounded[calls] = bounded[root].chat.completions
    return bare.model_copy(update=bounded)


def _fields(bare: Model) -> Set[str]:
    fields: Mapping[str, object] = getattr(type(bare), "model_fields", {})
    return fields.keys()


def _bound(llm: Model, name: str) -> Any:  # noqa: ANN401 - whatever a user has bound
    """What is bound to a model under a name; of several the outermost."""
    while isinstance(llm, RunnableBindingBase):
        if name in llm.kwargs:
            return llm.kwargs[name]
        llm = llm.bound
    return None
