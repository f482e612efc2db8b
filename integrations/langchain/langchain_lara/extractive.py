"""The extractive reader as a LangChain chat model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.load.serializable import SerializedConstructor, SerializedNotImplemented
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, SkipValidation

from lara_plugins import ExtractiveModel, ExtractiveReader, InvalidArgument, Scorer
from lara_plugins.answering import pieces
from lara_plugins.gate import scorer_of, serializable_name

# The layouts of LangChain's own prompts over stuffed documents. In one text:
_TEXTS = (
    re.compile(r"\n\n(?P<context>.*)\n\nQuestion: (?P<question>.*?)\s*\n(?:Helpful )?Answer:\s*$", re.DOTALL),
    re.compile(r"Question: (?P<question>.*?)\s*\nContext: (?P<context>.*?)\s*\nAnswer:\s*$", re.DOTALL),
)
# or in a system message, with the question as the last message of the user:
_SYSTEMS = (
    re.compile(r"<context>\s*(?P<context>.*?)\s*</context>", re.DOTALL),
    re.compile(r"\n-{4,}\n(?P<context>.*)$", re.DOTALL),
    re.compile(r"\bContext:\s*(?P<context>.*)$", re.DOTALL),
    re.compile(r"\n\n(?P<context>.*)$", re.DOTALL),
)


class ExtractiveChatModel(BaseChatModel):
    """Answers with the sentences of the passages themselves: no account, no download.

    It understands the prompts of this package and LangChain's own prompts over stuffed documents,
    and nothing else: it is a reader, not a language model, and cannot chat, reason or rephrase.

    Args:
        scorer: a scorer or its name.
        **model: the fields that every LangChain chat model has, such as ``callbacks``.

    Raises:
        InvalidArgument: ``scorer`` is neither a scorer nor the name of one.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    scorer: SkipValidation[str | Scorer] = "embedded"

    def __init__(self, scorer: str | Scorer = "embedded", **model: object) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        scorer_of(scorer)
        super().__init__(scorer=scorer, **model)  # type: ignore[call-arg, arg-type]  # as the base's

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @property
    def lc_attributes(self) -> dict[str, Any]:
        return {"scorer": serializable_name(self.scorer)}

    def to_json(self) -> SerializedConstructor | SerializedNotImplemented:
        # LangChain writes a model down at every call, for its tracers, so that a scorer without a
        # name cannot be refused here; what comes of it cannot be loaded, and LangChain says so.
        named = isinstance(self.scorer, str) or self.scorer.name is not None
        return super().to_json() if named else self.to_json_not_implemented()

    @property
    def _identifying_params(self) -> dict[str, Any]:
        scorer = scorer_of(self.scorer)
        return {"scorer": scorer.name or scorer.fingerprint}

    @property
    def _llm_type(self) -> str:
        return "lara-extractive"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._reply(messages)))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> Iterator[ChatGenerationChunk]:
        for piece in pieces(self._reply(messages)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))

    def _reply(self, messages: Sequence[BaseMessage]) -> str:
        model = ExtractiveModel(ExtractiveReader(scorer_of(self.scorer)))
        prompt = "\n".join(str(message.text) for message in messages)
        reply = model.reply_to_prompt(prompt)
        if reply is not None:
            return reply
        stock = _question_and_context(messages)
        if stock is None:
            raise InvalidArgument(
                "messages",
                f"{len(prompt)} characters",
                "it only answers questions over passages: give a language model for anything else",
            )
        return model.reply_to_context(*stock)


def _question_and_context(messages: Sequence[BaseMessage]) -> tuple[str, str] | None:
    """What one of LangChain's own prompts asks, and over which texts."""
    *earlier, last = messages
    if not isinstance(last, HumanMessage):
        return None
    for layout in _SYSTEMS if earlier else ():
        if found := layout.search(str(earlier[0].text)):
            return str(last.text), found["context"]
    for layout in () if earlier else _TEXTS:
        if found := layout.search(str(last.text)):
            return found["question"], found["context"]
    return None
