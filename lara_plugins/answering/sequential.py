"""Passage by passage, best first, until the answer is found and complete."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lara_plugins.answering.contract import NO_ANSWER, AnswerReply, AnswerWithEvidence
from lara_plugins.answering.ledger import Expired, Ledger, Unreadable
from lara_plugins.answering.loop import Ask, Fits, Loop, SecondsFor, always_fits, no_time
from lara_plugins.answering.verdict import verified_answer
from lara_plugins.answering.windows import numbered, split_in_order
from lara_plugins.arguments import check_count
from lara_plugins.passages import Passage


def answer_sequentially(
    question: str,
    passages: Sequence[Passage],
    time_left: float = math.inf,
    seconds_for: SecondsFor = no_time,
    max_calls: int | None = None,
    fits: Fits = always_fits,
) -> Loop:
    """Ask over one passage after the other and stop at "found and complete".

    Ends ``sufficient`` (found and complete), ``exhausted`` (every passage read; the best
    incomplete answer, or none, which is an answer too) or ``budget`` (no call or no time left).
    No ask is streamed: an answer is shown once it is accepted.

    Args:
        question: the user's question.
        passages: best first.
        time_left: seconds until the deadline, infinite without one.
        seconds_for: predicts the seconds of an ask; one that does not fit is not made.
        max_calls: at most so many asks, repairs apart; None for no limit.
        fits: whether passages fit one prompt; a passage that does not is read in pieces.

    Raises:
        InvalidArgument: ``max_calls`` is below 1.
    """
    if max_calls is not None:
        check_count("max_calls", max_calls, "give the most asks, 1 or more, or None")
    ledger = Ledger(passages, time_left)
    best = NO_ANSWER
    outcome = "exhausted" if passages else "no_passages"
    for shown in split_in_order(numbered(passages), 1, fits):
        predicted = seconds_for([item.passage for item in shown])
        if predicted > ledger.time_left or ledger.calls == max_calls:
            outcome = "budget"
            break
        try:
            reply = yield from ledger.ask(
                Ask("sequential", question, shown, AnswerReply), AnswerReply, predicted
            )
        except Expired:
            outcome = "budget"
            break
        except Unreadable:
            ledger.brought("unreadable")
            continue
        answer = verified_answer(reply, ledger)
        if answer.complete_answer_found:
            best, outcome = answer, "sufficient"
            break
        best = _better(best, answer)
    return (yield from ledger.finish(best, outcome))


def _better(best: AnswerWithEvidence, answer: AnswerWithEvidence) -> AnswerWithEvidence:
    """The better incomplete answer; of two without support the earlier, with the caveats of both."""
    if not (best.answer_found or answer.answer_found):
        caveats = tuple(dict.fromkeys((*best.caveats, *answer.caveats)))
        return (best if best.value else answer).model_copy(update={"caveats": caveats})
    ahead = (answer.answer_found, answer.confidence) > (best.answer_found, best.confidence)
    return answer if ahead else best
