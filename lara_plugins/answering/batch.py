"""All passages in one call."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lara_plugins.answering.contract import NO_ANSWER, AnswerReply
from lara_plugins.answering.ledger import Expired, Ledger, Unreadable
from lara_plugins.answering.loop import Ask, Fits, Loop, SecondsFor, always_fits, no_time
from lara_plugins.answering.refine import refine_in_threes
from lara_plugins.answering.verdict import verified_answer
from lara_plugins.answering.windows import affordable, numbered
from lara_plugins.passages import Passage


def answer_in_one_call(
    question: str,
    passages: Sequence[Passage],
    time_left: float = math.inf,
    seconds_for: SecondsFor = no_time,
    fits: Fits = always_fits,
) -> Loop:
    """Ask once over all passages, or over the best ones where the time left pays for no more.

    Ends ``complete``, ``stopped_early 0/1`` (not even the best passage fits the time left),
    ``out_of_time`` (it outlived the deadline), ``truncated`` (it did so amid a stream) or
    ``unparsable``. Passages that do not fit one prompt are refined in as few windows as do.

    Args:
        question: the user's question.
        passages: best first.
        time_left: seconds until the deadline, infinite without one.
        seconds_for: predicts the seconds of the ask.
        fits: whether passages fit one prompt.
    """
    if passages and not fits(passages):
        return (
            yield from refine_in_threes(
                question, passages, time_left, seconds_for, window=len(passages), fits=fits
            )
        )
    ledger = Ledger(passages, time_left)
    shown = affordable(numbered(passages), seconds_for, time_left)
    if not shown:
        return (yield from ledger.finish(NO_ANSWER, "stopped_early 0/1" if passages else "no_passages"))
    if len(shown) < len(passages):
        ledger.note(f"{len(shown)} of {len(passages)} passages were read: the time left paid for no more")
    try:
        ask = Ask("batch", question, shown, AnswerReply, last=True)
        reply = yield from ledger.ask(ask, AnswerReply, seconds_for([item.passage for item in shown]))
    except Expired:
        return (yield from ledger.finish(NO_ANSWER, "truncated" if ledger.shown else "out_of_time"))
    except Unreadable:
        ledger.brought("unreadable")
        return (yield from ledger.finish(NO_ANSWER, "unparsable"))
    return (yield from ledger.finish(verified_answer(reply, ledger), "complete"))
