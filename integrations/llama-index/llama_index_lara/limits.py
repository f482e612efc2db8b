"""The limits of one call that an LLM takes."""

from __future__ import annotations

import math
from typing import Any

from llama_index.core.llms import LLM

from lara_plugins import Ask
from lara_plugins.answering.openai_client import OpenAIClient, until_deadline

_CAP = "max_tokens"


def limits_of_call(ask: Ask, llm: LLM) -> dict[str, Any]:
    """What the LLM takes of the ask's limits for this one call; what it does not take is left out.

    LLMs take the cap where they have a setting of that name that is not set.
    """
    return {} if getattr(llm, _CAP, None) is not None else _stricter(llm, ask.max_output_tokens)


def in_time(llm: LLM, ask: Ask) -> LLM:
    """The LLM for one synchronous call within the ask's limits.

    Where it is a client of OpenAI's protocol, its requests end with the deadline; of any other only
    a cap of its own is made stricter, since some put theirs in the place of what a call asks for.
    """
    return _bounded(llm, "_client", ask)


def in_time_async(llm: LLM, ask: Ask) -> LLM:
    """As ``in_time``, for an asynchronous call."""
    return _bounded(llm, "_aclient", ask)


def _bounded(llm: LLM, name: str, ask: Ask) -> LLM:
    capped = _stricter(llm, ask.max_output_tokens) if getattr(llm, _CAP, None) is not None else {}
    if ask.timeout == math.inf or not {"max_retries", "reuse_client"} <= type(llm).model_fields.keys():
        return llm.model_copy(update=capped) if capped else llm
    # The LLM retries too, on top of its client; and a client that is not to be reused would be made anew.
    copy = llm.model_copy(update={"max_retries": 0, "reuse_client": True, **capped})
    setattr(copy, name, until_deadline(_client(llm, name), ask.timeout))
    return copy


def _stricter(llm: LLM, cap: int | None) -> dict[str, Any]:
    """The setting of a cap on the output, where the LLM has one and its own is not as strict."""
    own = getattr(llm, _CAP, None)
    if cap is None or _CAP not in type(llm).model_fields or (own is not None and own <= cap):
        return {}
    return {_CAP: cap}


def _client(llm: LLM, name: str) -> OpenAIClient:
    """The client, which most such LLMs make when it is first wanted."""
    client: OpenAIClient = (
        getattr(llm, f"_get{name}")() if hasattr(llm, f"_get{name}") else getattr(llm, name)
    )
    return client
