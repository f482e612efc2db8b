"""The model under what was bound to it, and the limits of one call that it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable

from lara_plugins import Ask, InvalidArgument

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

    The clients of OpenAI's protocol take both. Other models take the cap where they have a setting
    of that name. The user's own limits, set or bound, count where they are stricter.
    """
    fields: Mapping[str, object] = getattr(type(bare), "model_fields", {})
    limits = dict[str, Any]()
    if ask.max_output_tokens is not None and "max_tokens" in fields:
        own = _bound(llm, "max_tokens") or getattr(bare, "max_tokens", None)
        limits["max_tokens"] = min(ask.max_output_tokens, own or ask.max_output_tokens)
    if math.isfinite(ask.timeout) and {"request_timeout", "root_client"} <= fields.keys():
        from lara_plugins.answering.attempts import UntilDeadline  # noqa: PLC0415 - such a client has httpx

        own = _bound(llm, "timeout") or getattr(bare, "request_timeout", None)
        limits["timeout"] = UntilDeadline(ask.timeout, own)
    return limits


def _bound(llm: Model, name: str) -> Any:  # noqa: ANN401 - whatever a user has bound
    """What is bound to a model under a name; of several the outermost."""
    while isinstance(llm, RunnableBindingBase):
        if name in llm.kwargs:
            return llm.kwargs[name]
        llm = llm.bound
    return None
