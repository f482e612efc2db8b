"""The limits of one call that an LLM takes."""

from __future__ import annotations

import math
from typing import Any

from llama_index.core.llms import LLM

from lara_plugins import Ask
from lara_plugins.answering.openai_client import OpenAIClient, until_deadline


def limits_of_call(ask: Ask, llm: LLM) -> dict[str, Any]:
    """What the LLM takes of the ask's limits for this one call; what it does not take is left out.

    LLMs take the cap where they have a setting of that name, and their own where it is stricter.
    """
    if ask.max_output_tokens is None or "max_tokens" not in type(llm).model_fields:
        return {}
    own = getattr(llm, "max_tokens", None)
    return {"max_tokens": min(ask.max_output_tokens, own or ask.max_output_tokens)}


def in_time(llm: LLM, seconds: float) -> LLM:
    """The LLM for one synchronous call within some seconds.

    Where it is a client of OpenAI's protocol, its requests end with the deadline; any other is left
    as it is.
    """
    return _bounded(llm, "_client", seconds)


def in_time_async(llm: LLM, seconds: float) -> LLM:
    """As ``in_time``, for an asynchronous call."""
    return _bounded(llm, "_aclient", seconds)


def _bounded(llm: LLM, name: str, seconds: float) -> LLM:
    if seconds == math.inf or not {"max_retries", "reuse_client"} <= type(llm).model_fields.keys():
        return llm
    # The LLM retries too, on top of its client; and a client that is not to be reused would be made anew.
    copy = llm.model_copy(update={"max_retries": 0, "reuse_client": True})
    setattr(copy, name, until_deadline(_client(llm, name), seconds))
    return copy


def _client(llm: LLM, name: str) -> OpenAIClient:
    """The client, which most such LLMs make when it is first wanted."""
    client: OpenAIClient = (
        getattr(llm, f"_get{name}")() if hasattr(llm, f"_get{name}") else getattr(llm, name)
    )
    return client
