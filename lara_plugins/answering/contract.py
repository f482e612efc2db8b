"""The typed answer, and the typed replies from which it is made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lara_plugins.passages import Span


def _check_verdicts(found: bool, complete: bool, value: str) -> None:
    if complete and not found:
        raise ValueError("complete_answer_found needs answer_found")
    if found and not value.strip():
        raise ValueError("answer_found needs a value")


class AnswerWithEvidence(BaseModel):
    """An answer and the verbatim spans that support it.

    ``complete_answer_found`` implies ``answer_found``; ``answer_found`` implies a value and at
    least one span. An answer that was not found may still hold a value: what the model said
    without support.
    """

    model_config = ConfigDict(frozen=True)

    value: str = ""
    evidence: tuple[Span, ...] = ()
    answer_found: bool = False
    complete_answer_found: bool = False
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    caveats: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _found_is_supported(self) -> AnswerWithEvidence:
        _check_verdicts(self.answer_found, self.complete_answer_found, self.value)
        if self.answer_found and not self.evidence:
            raise ValueError("answer_found needs evidence")
        return self


NO_ANSWER = AnswerWithEvidence()


class Quote(BaseModel):
    """A piece of evidence as the LLM gives it: the passage's number and its exact words."""

    model_config = ConfigDict(frozen=True)

    passage: Annotated[int, Field(ge=1, description="the number of the passage")]
    quote: Annotated[str, Field(description="the exact words of that passage")]


class TypedReply(BaseModel):
    """What an ask wants back."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, reply: object) -> object:
        # Models write null for what they leave out; the field's default means the same.
        if isinstance(reply, Mapping):
            return {key: value for key, value in reply.items() if value is not None}
        return reply


# In both replies the order of the fields is the order in which a model writes them: the verdict
# comes before the text, so that a streaming reader knows whether the text may be shown.


class StepReply(TypedReply):
    """How the passages change the answer so far."""

    changed: Annotated[bool, Field(description="false if the passages add nothing to the answer so far")]
    answer: Annotated[
        str, Field(description="the whole new answer, citing passages as [n]; empty if unchanged")
    ] = ""
    complete: Annotated[bool, Field(description="true if nothing is missing from the answer")] = False
    evidence: Annotated[list[Quote], Field(description="the words that support the answer")] = []

    @model_validator(mode="after")
    def _changed_has_an_answer(self) -> StepReply:
        if self.changed and not self.answer.strip():
            raise ValueError("changed needs an answer")
        return self


class AnswerReply(TypedReply):
    """The answer that the passages give, with its evidence."""

    answer_found: Annotated[
        bool, Field(description="true if the passages answer the question, at least in part")
    ]
    complete_answer_found: Annotated[
        bool, Field(description="true if nothing is missing from the answer")
    ] = False
    value: Annotated[str, Field(description="the answer, citing passages as [n]; empty if not found")] = ""
    evidence: Annotated[list[Quote], Field(description="the words that support the answer")] = []
    confidence: Annotated[float, Field(ge=0.0, le=1.0, description="from 0 to 1")] = 0.5
    caveats: Annotated[list[str], Field(description="what a reader should know besides")] = []

    @model_validator(mode="after")
    def _verdicts_agree(self) -> AnswerReply:
        _check_verdicts(self.answer_found, self.complete_answer_found, self.value)
        return self


ReplyType: TypeAlias = type[StepReply] | type[AnswerReply]
"""The type of reply that an ask wants."""

TOOL_NAMES: Mapping[ReplyType, str] = {StepReply: "refine_answer", AnswerReply: "give_answer"}
"""What the contract is called where an LLM gets it as a tool."""

RawReply: TypeAlias = str | Mapping[str, object]
"""What an LLM sent back: its text, or the arguments of its tool call."""


def raw_reply(calls: Sequence[RawReply], text: str) -> RawReply:
    """The one reply in an LLM's message, for the parser to judge.

    Args:
        calls: the arguments of its tool calls; of several none is preferred, so that the parser
            sees them all.
        text: its text, which counts where no tool was called.
    """
    if len(calls) > 1:
        return "\n".join(call if isinstance(call, str) else json.dumps(call) for call in calls)
    return calls[0] if calls else text
