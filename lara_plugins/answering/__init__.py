"""Answering: three loops over a typed contract, the drivers that run them, and a reader."""

from lara_plugins.answering.at_once import read_at_once
from lara_plugins.answering.batch import answer_in_one_call
from lara_plugins.answering.contract import (
    NO_ANSWER,
    TOOL_NAMES,
    AnswerReply,
    AnswerWithEvidence,
    RawReply,
    ReplyType,
    StepReply,
    raw_reply,
)
from lara_plugins.answering.drivers import (
    LanguageModel,
    Said,
    aanswer,
    answer,
    astream_answer,
    drive,
    stream_answer,
)
from lara_plugins.answering.extractive import ExtractiveReader
from lara_plugins.answering.extractive_model import ExtractiveModel
from lara_plugins.answering.loop import (
    Answer,
    Ask,
    AskMany,
    AskRecord,
    Emit,
    Fits,
    Loop,
    Numbered,
    Reply,
    Returned,
    SecondsFor,
    Usage,
    Wanted,
    always_fits,
    no_time,
)
from lara_plugins.answering.prompts import (
    ANSWER_TEMPLATE,
    REFINE_TEMPLATE,
    PromptParts,
    fits_context,
    prompt_parts,
    prompt_suffix,
)
from lara_plugins.answering.refine import refine_in_threes
from lara_plugins.answering.sequential import answer_sequentially
from lara_plugins.answering.streaming import pieces
from lara_plugins.answering.wording import abstention_text

__all__ = [
    "ANSWER_TEMPLATE",
    "NO_ANSWER",
    "REFINE_TEMPLATE",
    "TOOL_NAMES",
    "Answer",
    "AnswerReply",
    "AnswerWithEvidence",
    "Ask",
    "AskMany",
    "AskRecord",
    "Emit",
    "ExtractiveModel",
    "ExtractiveReader",
    "Fits",
    "LanguageModel",
    "Loop",
    "Numbered",
    "PromptParts",
    "RawReply",
    "Reply",
    "ReplyType",
    "Returned",
    "Said",
    "SecondsFor",
    "StepReply",
    "Usage",
    "Wanted",
    "aanswer",
    "abstention_text",
    "always_fits",
    "answer",
    "answer_in_one_call",
    "answer_sequentially",
    "astream_answer",
    "drive",
    "fits_context",
    "no_time",
    "pieces",
    "prompt_parts",
    "prompt_suffix",
    "raw_reply",
    "read_at_once",
    "refine_in_threes",
    "stream_answer",
]
