"""A LangChain model as the language model of LARA's answering loops."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, adispatch_custom_event, dispatch_custom_event
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    get_buffer_string,
)
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableBinding, RunnableConfig
from langchain_core.runnables.config import merge_configs
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_lara.events import DRAFT
from langchain_lara.latency import given_up
from langchain_lara.limits import Model, bare_model, in_time, limits_of_call
from lara_plugins import Ask, InvalidArgument, Said, Usage
from lara_plugins.answering import (
    TOOL_NAMES,
    Fits,
    PromptParts,
    RawReply,
    ReplyType,
    always_fits,
    fits_context,
    prompt_parts,
    prompt_suffix,
    raw_reply,
)
from lara_plugins.budget import prompt_reader

NO_STREAM = "nostream"
"""Tag of each ask: its reply is the contract's JSON; LangGraph's message streams leave it out."""

ANSWER_TOKENS = 512
"""Tokens of the context window that are set aside for an answer."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What is called, and with what."""

    model: Model
    messages: list[BaseMessage]
    limits: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LangChainModel:
    """Renders an ask with LangChain prompts and calls a model.

    A chat model that takes tools gets the reply contract as a tool; any other gets it behind the
    prompt, in words.

    Args:
        llm: a chat model, a text model, or either under ``bind``, ``with_config`` or ``with_retry``.
        prompt: variables ``context`` and ``input``.
        refine_prompt: variables ``existing_answer``, ``context`` and ``input``.
        context_window: the model's tokens, prompt and reply together; None takes the model's own
            profile, and where it has none every prompt is taken to fit.
        variables: what else the prompts may show, such as ``chat_history``.
        config: the config of the model's runs.
    """

    llm: Model
    prompt: BasePromptTemplate[object]
    refine_prompt: BasePromptTemplate[object]
    context_window: int | None
    variables: Mapping[str, object]
    config: RunnableConfig

    @property
    def callee(self) -> object:
        return self.llm

    def ask(self, ask: Ask) -> Said:
        self._tell_draft(ask)
        call, heard = self._call(ask), _Heard()
        with prompt_reader():
            message = call.model.invoke(call.messages, self._config(ask, heard), **call.limits)
        return _said(message, heard)

    async def aask(self, ask: Ask) -> Said:
        await self._atell_draft(ask)
        call, heard = self._call(ask), _Heard()
        with prompt_reader(), heard.cancellation():
            message = await call.model.ainvoke(call.messages, self._config(ask, heard), **call.limits)
        return _said(message, heard)

    def stream(self, ask: Ask) -> Iterator[Said]:
        self._tell_draft(ask)
        call, pieces = self._call(ask), _Pieces()
        chunks = call.model.stream(call.messages, self._config(ask), **call.limits)
        with prompt_reader() as reader:
            chunk = next(chunks, None)  # the call begins when its first piece is wanted
        while chunk is not None:
            said = pieces.of(chunk)
            with reader.elsewhere():
                yield said
            chunk = next(chunks, None)

    async def astream(self, ask: Ask) -> AsyncIterator[Said]:
        await self._atell_draft(ask)
        call, pieces, heard = self._call(ask), _Pieces(), _Heard()
        stream = call.model.astream(call.messages, self._config(ask, heard), **call.limits)
        async with aclosing(stream) as chunks:  # type: ignore[type-var]
            with heard.cancellation():
                with prompt_reader() as reader:
                    chunk = await anext(chunks, None)
                while chunk is not None:
                    said = pieces.of(chunk)
                    with reader.elsewhere():
                        yield said
                    chunk = await anext(chunks, None)

    def fits(self, question: str) -> Fits:
        """Whether passages fit one prompt about a question, by a conservative count of tokens."""
        window = self.context_window or _profile(bare_model(self.llm, self.config)).get("max_input_tokens")
        if not isinstance(window, int):
            return always_fits
        template = get_buffer_string(self._filled(self.refine_prompt, PromptParts("", question, "")))
        return fits_context(question, template, window, ANSWER_TOKENS)

    def _tell_draft(self, ask: Ask) -> None:
        if (draft := _draft(ask)) is not None:
            dispatch_custom_event(DRAFT, draft, config=self.config)

    async def _atell_draft(self, ask: Ask) -> None:
        if (draft := _draft(ask)) is not None:
            await adispatch_custom_event(DRAFT, draft, config=self.config)

    def _call(self, ask: Ask) -> _Call:
        parts = prompt_parts(ask)
        messages = self._filled(self.refine_prompt if parts.existing_answer else self.prompt, parts)
        bare, llm = bare_model(self.llm, self.config), in_time(self.llm, self.config, ask.timeout)
        with_tool = _with_contract(llm, bare, ask.reply)
        suffix = prompt_suffix(ask, as_tool=with_tool is not None)
        limits = limits_of_call(ask, self.llm, bare)
        return _Call(with_tool or llm, _followed_by(suffix, messages), limits)

    def _filled(self, prompt: BasePromptTemplate[object], parts: PromptParts) -> list[BaseMessage]:
        variables = {
            **self.variables,
            "context": parts.context,
            "existing_answer": parts.existing_answer,
            "input": parts.question,
        }
        return prompt.format_prompt(**variables).to_messages()

    def _config(self, ask: Ask, *handlers: BaseCallbackHandler) -> RunnableConfig:
        tags = [NO_STREAM, f"window:{ask.number}"]
        return merge_configs(self.config, {"tags": tags, "callbacks": list(handlers)})


def _draft(ask: Ask) -> Mapping[str, object] | None:
    """The answer so far, where a window has brought one that this ask may change."""
    if not ask.previous.value or ask.fault is not None:
        return None
    return {"window": ask.number - 1, "answer": ask.previous.value}


def _with_contract(llm: Model, bare: Model, reply: ReplyType) -> Model | None:
    """The model with the reply contract as the one tool that it must call; None where it takes none."""
    if not isinstance(bare, BaseChatModel) or type(bare).bind_tools is BaseChatModel.bind_tools:
        return None
    if _profile(bare).get("tool_calling") is False:
        return None
    tool = convert_to_openai_tool(reply)
    tool["function"]["name"] = TOOL_NAMES[reply]
    with_tool = bare.bind_tools([tool], tool_choice="any")
    # Around the whole model, so that what the user has bound to it stays.
    return llm.bind(**with_tool.kwargs) if isinstance(with_tool, RunnableBinding) else with_tool


def _profile(bare: Model) -> Mapping[str, object]:
    """What the model says of itself, as far as its version of LangChain lets it."""
    return getattr(bare, "profile", None) or {}


def _followed_by(suffix: str, messages: list[BaseMessage]) -> list[BaseMessage]:
    if not suffix:
        return messages
    *earlier, last = messages
    if not isinstance(last, HumanMessage):
        return [*messages, HumanMessage(suffix)]
    text = f"\n{suffix}"
    content = last.content + text if isinstance(last.content, str) else [*last.content, text]
    return [*earlier, last.model_copy(update={"content": content})]


class _Heard(BaseCallbackHandler):
    """What one call's run tells: its id, and the arguments of a tool call as they came in a stream.

    LangChain streams a whole call where somebody listens to its tokens, and mends arguments that
    were cut off; what was cut off is no reply.
    """

    run_inline = True

    def __init__(self) -> None:
        self.text = ""
        self._run_id: UUID | None = None

    @contextmanager
    def cancellation(self) -> Iterator[None]:
        """Tell of a call that is cancelled or left in here, since LangChain does not."""
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            given_up(self._run_id)
            raise

    def on_chat_model_start(self, *given: object, run_id: UUID, **more: object) -> None:
        self.text, self._run_id = "", run_id  # perhaps of another attempt

    def on_llm_start(self, *given: object, run_id: UUID, **more: object) -> None:
        self._run_id = run_id

    def on_llm_new_token(self, token: object, *, chunk: object = None, **more: object) -> None:
        if isinstance(chunk, ChatGenerationChunk) and isinstance(chunk.message, AIMessageChunk):
            self.text += _arguments(chunk.message)


def _arguments(chunk: AIMessageChunk) -> str:
    return "".join(call["args"] or "" for call in chunk.tool_call_chunks)


def _said(message: BaseMessage | str, heard: _Heard | None = None) -> Said:
    if isinstance(message, str):
        return Said(message)
    if not isinstance(message, BaseMessage):
        raise InvalidArgument("llm's reply", message, "give the model itself, without an output parser")
    calls: list[RawReply] = []
    if heard is not None and heard.text:
        calls = [heard.text]
    elif isinstance(message, AIMessage):
        calls += [call["args"] for call in message.tool_calls]
        calls += [call["args"] or "" for call in message.invalid_tool_calls]
    return Said(raw_reply(calls, str(message.text)), _usage(message))


class _Pieces:
    """What each of a stream's chunks adds, with the tokens so far."""

    def __init__(self) -> None:
        self._usage: Usage | None = None

    def of(self, chunk: BaseMessage | str) -> Said:
        if isinstance(chunk, AIMessageChunk) and chunk.tool_call_chunks:
            said = Said(_arguments(chunk), _usage(chunk))
        else:
            said = _said(chunk)
        if said.usage is not None:
            self._usage = said.usage if self._usage is None else self._usage + said.usage
        # A model that cannot stream brings its reply whole, the arguments parsed.
        text = said.raw if isinstance(said.raw, str) else json.dumps(said.raw)
        return Said(text, self._usage)


def _usage(message: BaseMessage) -> Usage | None:
    reported = message.usage_metadata if isinstance(message, AIMessage) else None
    return Usage(reported["input_tokens"], reported["output_tokens"]) if reported else None
