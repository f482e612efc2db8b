"""Refine in threes: the answer over windows of three passages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lara_plugins.answering.contract import NO_ANSWER, AnswerWithEvidence, StepReply
from lara_plugins.answering.ledger import Expired, Ledger, Unreadable
from lara_plugins.answering.loop import Ask, Fits, Loop, SecondsFor, always_fits, no_time
from lara_plugins.answering.windows import affordable, numbered, split_in_order
from lara_plugins.passages import Passage


def refine_in_threes(
    question: str,
    passages: Sequence[Passage],
    time_left: float = math.inf,
    seconds_for: SecondsFor = no_time,
    window: int = 3,
    stop_when_complete: bool = False,
    fits: Fits = always_fits,
) -> Loop:
    """Answer_i = LLM(question, Answer_(i-1), window_i), over windows of the passages in order.

    ceil(n / window) asks when nothing stops it, none without passages. An unchanged or
    unreadable reply keeps the answer before it.

    Args:
        question: the user's question.
        passages: the Send_List, best first.
        time_left: seconds until the deadline, infinite without one.
        seconds_for: predicts the seconds of an ask; one that does not fit the time left is not
            made, but the first window shrinks to what does.
        window: passages in a window.
        stop_when_complete: end at the first answer that the LLM calls complete.
        fits: whether passages fit one prompt; a window that does not is split in order.

    Raises:
        InvalidArgument: ``window`` is below 1, or not one character fits a prompt.
    """
    ledger = Ledger(passages, time_left)
    windows = split_in_order(numbered(passages), window, fits)
    if len(windows) > math.ceil(len(passages) / window):
        ledger.note(
            f"windows too big for the model's context were split: {len(windows)} in place of "
            f"{math.ceil(len(passages) / window)}"
        )
    answer = NO_ANSWER
    outcome = "complete" if windows else "no_passages"
    unread = 0
    for done, shown in enumerate(windows):
        predicted = seconds_for([item.passage for item in shown])
        if predicted > ledger.time_left and not done:
            # Better an answer from the best passages than none at all.
            shown = affordable(shown, seconds_for, ledger.time_left)  # noqa: PLW2901
            predicted = seconds_for([item.passage for item in shown])
        if not shown or predicted > ledger.time_left:
            outcome = f"stopped_early {done}/{len(windows)}"
            break
        ask = Ask("refine", question, shown, StepReply, previous=answer, last=done == len(windows) - 1)
        try:
            step = yield from ledger.ask(ask, StepReply, predicted)
        except Expired:
            outcome = f"stopped_early {done}/{len(windows)}" if answer.answer_found else "out_of_time"
            outcome = "truncated" if ledger.shown else outcome
            break
        except Unreadable:
            unread += 1
            ledger.brought("unreadable")
            continue
        answer = refined(answer, step, ledger)
        if stop_when_complete and answer.complete_answer_found:
            outcome = "sufficient"
            break
    if unread and unread == ledger.calls and outcome == "complete":
        outcome = "unparsable"
    return (yield from ledger.finish(answer, outcome))


def refined(previous: AnswerWithEvidence, step: StepReply, ledger: Ledger) -> AnswerWithEvidence:
    """The answer after a step: the new one where it changed and is supported, else the old."""
    if not step.changed:
        ledger.brought("unchanged")
        if step.complete and previous.answer_found:
            return previous.model_copy(update={"complete_answer_found": True})
        return previous
    verified = ledger.verify(step.answer, step.evidence, previous.evidence)
    evidence = verified.spans
    if not evidence and previous.answer_found:
        ledger.brought("unsupported")
        ledger.note(f"ask {ledger.calls}: the new answer had no verifiable quote; the one before it stands")
        caveats = tuple(dict.fromkeys((*previous.caveats, *verified.caveats)))
        return previous.model_copy(update={"caveats": caveats})
    ledger.brought("changed" if evidence else "unsupported")
    return AnswerWithEvidence(
        value=step.answer.strip(),
        evidence=evidence,
        answer_found=bool(evidence),
        complete_answer_found=step.complete and bool(evidence),
        confidence=1.0 if step.complete and evidence else 0.5 if evidence else 0.0,
        caveats=verified.caveats,
    )
