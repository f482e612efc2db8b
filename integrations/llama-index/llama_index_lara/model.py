"""A LlamaIndex LLM as the language model of LARA's answering loops."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.tools import FunctionTool

from lara_plugins import Ask, Passage, Said, Usage
from lara_plugins.answering import (
    AnswerReply,
    Fits,
    RawReply,
    ReplyType,
    StepReply,
    contract_suffix,
    defuse,
    fence_answer,
    fence_passages,
    numbered,
    repair_request,
)
from lara_plugins.budget import conservative_tokens

_TOOL_NAMES: dict[ReplyType, str] = {StepReply: "refine_answer", AnswerReply: "give_answer"}


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

    def ask(self, ask: Ask) -> Said:
        if isinstance(self.llm, FunctionCallingLLM) and self.llm.metadata.is_function_calling_model:
            return _said_in_chat(
                self.llm.chat_with_tools(
                    [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True
                )
            )
        if self.llm.metadata.is_chat_model:
            return _said_in_chat(self.llm.chat(self._messages(ask)))
        return _said_in_completion(self.llm.complete(self._prompt(ask), formatted=True))

    async def aask(self, ask: Ask) -> Said:
        if isinstance(self.llm, FunctionCallingLLM) and self.llm.metadata.is_function_calling_model:
            return _said_in_chat(
                await self.llm.achat_with_tools(
                    [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True
                )
            )
        if self.llm.metadata.is_chat_model:
            return _said_in_chat(await self.llm.achat(self._messages(ask)))
        return _said_in_completion(await self.llm.acomplete(self._prompt(ask), formatted=True))

    def stream(self, ask: Ask) -> Iterator[Said]:
        pieces = _Pieces()
        if isinstance(self.llm, FunctionCallingLLM) and self.llm.metadata.is_function_calling_model:
            for response in self.llm.stream_chat_with_tools(
                [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True
            ):
                yield pieces.of_chat(response)
        elif self.llm.metadata.is_chat_model:
            for response in self.llm.stream_chat(self._messages(ask)):
                yield pieces.of_chat(response)
        else:
            for completion in self.llm.stream_complete(self._prompt(ask), formatted=True):
                yield pieces.of_completion(completion)
        yield pieces.rest()

    async def astream(self, ask: Ask) -> AsyncIterator[Said]:
        pieces = _Pieces()
        if isinstance(self.llm, FunctionCallingLLM) and self.llm.metadata.is_function_calling_model:
            async for response in await self.llm.astream_chat_with_tools(
                [_tool(ask.reply)], chat_history=self._messages(ask), tool_required=True
            ):
                yield pieces.of_chat(response)
        elif self.llm.metadata.is_chat_model:
            async for response in await self.llm.astream_chat(self._messages(ask)):
                yield pieces.of_chat(response)
        else:
            async for completion in await self.llm.astream_complete(self._prompt(ask), formatted=True):
                yield pieces.of_completion(completion)
        yield pieces.rest()

    def fits(self, question: str) -> Fits:
        """Whether passages fit one prompt about a question, by a conservative count of tokens."""
        metadata = self.llm.metadata
        answer = max(0, metadata.num_output or 0)
        frame = Ask("batch", question, (), AnswerReply)
        overhead = conservative_tokens(
            self.refine_template.get_template() + question + contract_suffix(frame)
        )
        # The answer so far, in a refine prompt, is about as long as the one to come.
        room = metadata.context_window - overhead - 2 * answer

        def fit(passages: Sequence[Passage]) -> bool:
            return conservative_tokens(fence_passages(numbered(passages))) <= room

        return fit

    def _template(self, ask: Ask) -> tuple[BasePromptTemplate, dict[str, str]]:
        context = fence_passages(ask.passages)
        question = defuse(ask.question)
        if ask.previous.value:
            previous = fence_answer(ask.previous)
            return self.refine_template, {
                "existing_answer": previous,
                "context_msg": context,
                "query_str": question,
            }
        return self.text_qa_template, {"context_str": context, "query_str": question}

    def _prompt(self, ask: Ask) -> str:
        template, variables = self._template(ask)
        return f"{self.llm._get_prompt(template, **variables)}\n{contract_suffix(ask)}"

    def _messages(self, ask: Ask) -> list[ChatMessage]:
        template, variables = self._template(ask)
        messages = self.llm._get_messages(template, **variables)
        tools = self.llm.metadata.is_function_calling_model
        suffix = "\n".join(repair_request(ask)) if tools else contract_suffix(ask)
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
        record, name=_TOOL_NAMES[reply], description=reply.__doc__ or "", fn_schema=reply
    )


def _said_in_chat(response: ChatResponse) -> Said:
    call = _tool_call(response)
    raw: RawReply = call.tool_kwargs if call is not None else response.message.content or ""
    return Said(raw, _usage(response))


def _said_in_completion(response: CompletionResponse) -> Said:
    return Said(response.text, _usage(response))


def _tool_call(response: ChatResponse) -> ToolCallBlock | None:
    return next((block for block in response.message.blocks if isinstance(block, ToolCallBlock)), None)


class _Pieces:
    """What is new in each of a stream's cumulative responses."""

    def __init__(self) -> None:
        self._arguments = ""
        self._whole_arguments: Mapping[str, object] | None = None

    def of_chat(self, response: ChatResponse) -> Said:
        call = _tool_call(response)
        if call is None:
            return Said(response.delta or "", _usage(response))
        if not isinstance(call.tool_kwargs, str):
            # Some LLMs give the arguments parsed, and only the last response has all of them.
            self._whole_arguments = call.tool_kwargs
            return Said("", _usage(response))
        new = call.tool_kwargs[len(self._arguments) :]
        self._arguments = call.tool_kwargs
        return Said(new, _usage(response))

    def of_completion(self, response: CompletionResponse) -> Said:
        return Said(response.delta or "", _usage(response))

    def rest(self) -> Said:
        if self._whole_arguments is None or self._arguments:
            return Said("")
        return Said(json.dumps(self._whole_arguments))


def _usage(response: ChatResponse | CompletionResponse) -> Usage | None:
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
