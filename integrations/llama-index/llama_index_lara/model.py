"""A LlamaIndex LLM as the language model of LARA's answering loops."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
    TextBlock,
)
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.tools import FunctionTool

from lara_plugins import Ask, Said
from lara_plugins.answering import (
    TOOL_NAMES,
    Fits,
    ReplyType,
    fits_context,
    prompt_parts,
    prompt_suffix,
    raw_reply,
)
from lara_plugins.budget import prompt_reader
from llama_index_lara.limits import in_time, in_time_async, limits_of_call
from llama_index_lara.replies import tool_calls, usage_of


@dataclass(slots=True)
class LlamaIndexModel:
    """Renders an ask with LlamaIndex templates and calls an LLM.

    A function-calling LLM gets the reply contract as a tool; any other gets it behind the
    prompt, in words.

    Args:
        llm: the LLM.
        text_qa_template: variables ``context_str`` and ``query_str``.
        refine_template: variables ``existing_answer``, ``context_msg`` and ``query_str``.
    """

    llm: LLM
    text_qa_template: BasePromptTemplate
    refine_template: BasePromptTemplate

    @property
    def callee(self) -> object:
        return self.llm

    def ask(self, ask: Ask) -> Said:
        llm, limits = in_time(self.llm, ask), limits_of_call(ask, self.llm)
        if isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model:
            return _said_in_chat(
                llm.chat_with_tools(
                    [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True, **limits
                )
            )
        if llm.metadata.is_chat_model:
            return _said_in_chat(llm.chat(self._messages(ask), **limits))
        return _said_in_completion(llm.complete(self._prompt(ask), formatted=True, **limits))

    async def aask(self, ask: Ask) -> Said:
        llm, limits = in_time_async(self.llm, ask), limits_of_call(ask, self.llm)
        if isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model:
            return _said_in_chat(
                await llm.achat_with_tools(
                    [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True, **limits
                )
            )
        if llm.metadata.is_chat_model:
            return _said_in_chat(await llm.achat(self._messages(ask), **limits))
        return _said_in_completion(await llm.acomplete(self._prompt(ask), formatted=True, **limits))

    def stream(self, ask: Ask) -> Iterator[Said]:
        pieces = _Pieces()
        with prompt_reader() as reader:
            responses = self._stream(ask)
        for response in responses:
            said = pieces.of(response)
            with reader.elsewhere():
                yield said
        yield pieces.rest()

    async def astream(self, ask: Ask) -> AsyncIterator[Said]:
        pieces = _Pieces()
        with prompt_reader() as reader:
            responses = await self._astream(ask)
        async for response in responses:
            said = pieces.of(response)
            with reader.elsewhere():
                yield said
        yield pieces.rest()

    def _stream(self, ask: Ask) -> Iterator[ChatResponse | CompletionResponse]:
        llm, limits = in_time(self.llm, ask), limits_of_call(ask, self.llm)
        if isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model:
            return llm.stream_chat_with_tools(
                [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True, **limits
            )
        if llm.metadata.is_chat_model:
            return llm.stream_chat(self._messages(ask), **limits)
        return llm.stream_complete(self._prompt(ask), formatted=True, **limits)

    async def _astream(self, ask: Ask) -> AsyncIterator[ChatResponse | CompletionResponse]:
        llm, limits = in_time_async(self.llm, ask), limits_of_call(ask, self.llm)
        if isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model:
            return await llm.astream_chat_with_tools(
                [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True, **limits
            )
        if llm.metadata.is_chat_model:
            return await llm.astream_chat(self._messages(ask), **limits)
        return await llm.astream_complete(self._prompt(ask), formatted=True, **limits)

    def fits(self, question: str) -> Fits:
        """Whether passages fit one prompt about a question, by a conservative count of tokens."""
        metadata = self.llm.metadata
        template = self.refine_template.get_template()
        return fits_context(question, template, metadata.context_window, max(0, metadata.num_output or 0))

    def _template(self, ask: Ask) -> tuple[BasePromptTemplate, dict[str, str]]:
        parts = prompt_parts(ask)
        if parts.existing_answer:
            return self.refine_template, {
                "existing_answer": parts.existing_answer,
                "context_msg": parts.context,
                "query_str": parts.question,
            }
        return self.text_qa_template, {"context_str": parts.context, "query_str": parts.question}

    def _prompt(self, ask: Ask) -> str:
        template, variables = self._template(ask)
        return f"{self.llm._get_prompt(template, **variables)}\n{prompt_suffix(ask, as_tool=False)}"

    def _messages(self, ask: Ask) -> list[ChatMessage]:
        template, variables = self._template(ask)
        messages = self.llm._get_messages(template, **variables)
        suffix = prompt_suffix(ask, as_tool=self.llm.metadata.is_function_calling_model)
        if not suffix:
            return messages
        *earlier, last = messages
        if last.role != MessageRole.USER:
            return [*messages, ChatMessage(role=MessageRole.USER, content=suffix)]
        return [*earlier, ChatMessage(role=last.role, blocks=[*last.blocks, TextBlock(text=f"\n{suffix}")])]


def _tool(reply: ReplyType) -> FunctionTool:
    def record(**arguments: object) -> str:
        return json.dumps(arguments)

    return FunctionTool.from_defaults(
        record, name=TOOL_NAMES[reply], description=reply.__doc__ or "", fn_schema=reply
    )


def _said_in_chat(response: ChatResponse) -> Said:
    calls = [call.tool_kwargs for call in tool_calls(response)]
    return Said(raw_reply(calls, response.message.content or ""), usage_of(response))


def _said_in_completion(response: CompletionResponse) -> Said:
    return Said(response.text, usage_of(response))


class _Pieces:
    """What is new in each of a stream's cumulative responses."""

    def __init__(self) -> None:
        self._arguments = ""
        self._whole: list[Mapping[str, object]] = []

    def of(self, response: ChatResponse | CompletionResponse) -> Said:
        """What one response adds."""
        if isinstance(response, ChatResponse):
            return self._of_chat(response)
        return Said(response.delta or "", usage_of(response))

    def _of_chat(self, response: ChatResponse) -> Said:
        calls = [call.tool_kwargs for call in tool_calls(response)]
        if not calls:
            return Said(response.delta or "", usage_of(response))
        # Some LLMs give the arguments parsed, and only the last response has all of them.
        self._whole = [call for call in calls if not isinstance(call, str)]
        written = "\n".join(call for call in calls if isinstance(call, str))
        new = written[len(self._arguments) :]
        self._arguments = written
        return Said(new, usage_of(response))

    def rest(self) -> Said:
        return Said("\n".join(json.dumps(call) for call in self._whole))
