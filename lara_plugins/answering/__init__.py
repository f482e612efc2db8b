"""Answering: three loops over a typed contract, the drivers that run them, and a reader."""

from lara_plugins.answering.batch import answer_in_one_call
from lara_plugins.answering.contract import (
    NO_ANSWER,
    AnswerReply,
    AnswerWithEvidence,
    RawReply,
    ReplyType,
    StepReply,
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
from lara_plugins.answering.fences import defuse, fence_answer, fence_passages
from lara_plugins.answering.loop import (
    Answer,
    Ask,
    Emit,
    Fits,
    Loop,
    Numbered,
    Reply,
    SecondsFor,
    Usage,
    always_fits,
    no_time,
)
from lara_plugins.answering.prompts import ANSWER_TEMPLATE, REFINE_TEMPLATE, contract_suffix, repair_request
from lara_plugins.answering.refine import refine_in_threes
from lara_plugins.answering.sequential import answer_sequentially
from lara_plugins.answering.streaming import pieces
from lara_plugins.answering.windows import numbered
from lara_plugins.answering.wording import abstention_text

__all__ = [
    "ANSWER_TEMPLATE",
    "NO_ANSWER",
    "REFINE_TEMPLATE",
    "Answer",
    "AnswerReply",
    "AnswerWithEvidence",
    "Ask",
    "Emit",
    "ExtractiveModel",
    "ExtractiveReader",
    "Fits",
    "LanguageModel",
    "Loop",
    "Numbered",
    "RawReply",
    "Reply",
    "ReplyType",
    "Said",
    "SecondsFor",
    "StepReply",
    "Usage",
    "aanswer",
    "abstention_text",
    "always_fits",
    "answer",
    "answer_in_one_call",
    "answer_sequentially",
    "astream_answer",
    "contract_suffix",
    "defuse",
    "drive",
    "fence_answer",
    "fence_passages",
    "no_time",
    "numbered",
    "pieces",
    "refine_in_threes",
    "repair_request",
    "stream_answer",
]
