"""Answering: three loops over a typed contract, and the drivers that run them."""

from lara_plugins.answering.batch import answer_in_one_call
from lara_plugins.answering.contract import AnswerReply, AnswerWithEvidence, StepReply
from lara_plugins.answering.drivers import (
    LanguageModel,
    Said,
    aanswer,
    answer,
    astream_answer,
    drive,
    stream_answer,
)
from lara_plugins.answering.loop import Answer, Ask, Emit, Loop, Numbered, Reply, Usage
from lara_plugins.answering.refine import refine_in_threes
from lara_plugins.answering.sequential import answer_sequentially

__all__ = [
    "Answer",
    "AnswerReply",
    "AnswerWithEvidence",
    "Ask",
    "Emit",
    "LanguageModel",
    "Loop",
    "Numbered",
    "Reply",
    "Said",
    "StepReply",
    "Usage",
    "aanswer",
    "answer",
    "answer_in_one_call",
    "answer_sequentially",
    "astream_answer",
    "drive",
    "refine_in_threes",
    "stream_answer",
]
