"""The extractive reader as a LlamaIndex LLM."""

from __future__ import annotations

import asyncio
import re

from llama_index.core.base.llms.types import (
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import ConfigDict

from lara_plugins import ExtractiveModel, ExtractiveReader, InvalidArgument, Scorer
from lara_plugins.answering import pieces
from lara_plugins.gate import scorer_of
from llama_index_lara.saving import EMBEDDED, HoldsScorer

# The layout of LlamaIndex's own question-answering prompts, old and new.
_STOCK_PROMPT = re.compile(
    r"Context information(?: from multiple sources)? is below\.\s*\n-+\n(?P<context>.*)\n-+\n"
    r".*?Query: (?P<question>.*?)\s*\nAnswer:\s*$",
    re.DOTALL,
)


class ExtractiveLLM(HoldsScorer, CustomLLM):
    """Answers with the sentences of the passages themselves: no account, no download.

    It understands the prompts of this package and LlamaIndex's own question-answering prompt,
    and nothing else: it is a reader, not a language model, and cannot chat, reason or rephrase.

    Args:
        scorer: a scorer or its name.
        **llm: the fields that every LlamaIndex LLM has, such as ``callback_manager``.

    Raises:
        InvalidArgument: ``scorer`` is neither a scorer nor the name of one.
    """

    model_config = ConfigDict(extra="forbid")

    def __init__(self, scorer: str | Scorer = EMBEDDED, **llm: object) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        scorer_of(scorer)
        super().__init__(scorer=scorer, **llm)

    @classmethod
    def class_name(cls) -> str:
        return "LaraExtractiveLLM"

    @property
    def metadata(self) -> LLMMetadata:
        # It reads passage by passage, so that no prompt is too long for it.
        return LLMMetadata(model_name="lara-extractive", context_window=10_000_000, num_output=4096)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponse:
        return CompletionResponse(text=self._reply(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: object
    ) -> CompletionResponseGen:
        def stream() -> CompletionResponseGen:
            text = ""
            for piece in pieces(self._reply(prompt)):
                text += piece
                yield CompletionResponse(text=text, delta=piece)

        return stream()

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponse:
        return CompletionResponse(text=await asyncio.to_thread(self._reply, prompt))

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: object
    ) -> CompletionResponseAsyncGen:
        reply = await asyncio.to_thread(self._reply, prompt)

        async def stream() -> CompletionResponseAsyncGen:
            text = ""
            for piece in pieces(reply):
                text += piece
                yield CompletionResponse(text=text, delta=piece)

        return stream()

    def _reply(self, prompt: str) -> str:
        model = ExtractiveModel(ExtractiveReader(scorer_of(self.scorer)))
        reply = model.reply_to_prompt(prompt)
        if reply is not None:
            return reply
        stock = _STOCK_PROMPT.search(prompt)
        if stock is None:
            raise InvalidArgument(
                "prompt",
                f"{len(prompt)} characters",
                "ExtractiveLLM only answers questions over passages: give a chat model for anything else",
            )
        return model.reply_to_context(stock["question"], stock["context"])
