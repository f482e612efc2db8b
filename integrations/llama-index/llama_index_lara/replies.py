"""What LlamaIndex's responses hold: tool calls and token counts, under any of the names in use."""

from __future__ import annotations

from collections.abc import Mapping

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, ToolCallBlock

from lara_plugins import Usage


def tool_calls(response: ChatResponse) -> list[ToolCallBlock]:
    """The tool calls of a response."""
    return [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]


def usage_of(response: ChatResponse | CompletionResponse) -> Usage | None:
    """Tokens as the provider reports them, under any of the names in use."""
    reported: object = response.additional_kwargs
    raw = response.raw
    if not _count(reported, "prompt_tokens", "input_tokens"):
        reported = raw.get("usage") if isinstance(raw, Mapping) else getattr(raw, "usage", None)
    read = _count(reported, "prompt_tokens", "input_tokens")
    written = _count(reported, "completion_tokens", "output_tokens")
    return Usage(read, written) if read or written else None


def _count(reported: object, *names: str) -> int:
    for name in names:
        value = reported.get(name) if isinstance(reported, Mapping) else getattr(reported, name, None)
        if isinstance(value, int):
            return value
    return 0
