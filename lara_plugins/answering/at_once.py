"""Windows of passages read at once, and one call that merges their answers."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

from lara_plugins.answering.contract import NO_ANSWER, AnswerReply, AnswerWithEvidence, StepReply
from lara_plugins.answering.ledger import Expired, Ledger, Unreadable
from lara_plugins.answering.loop import (
    Ask,
    Fits,
    Loop,
    Numbered,
    Returned,
    SecondsFor,
    Wanted,
    always_fits,
    no_time,
)
from lara_plugins.answering.refine import refine_in_threes, refined
from lara_plugins.answering.verdict import verified_answer
from lara_plugins.answering.windows import numbered, split_in_order
from lara_plugins.arguments import check_count
from lara_plugins.passages import Passage


def read_at_once(
    question: str,
    passages: Sequence[Passage],
    time_left: float = math.inf,
    seconds_for: SecondsFor = no_time,
    at_once: int = 4,
    window: int = 3,
    fits: Fits = always_fits,
) -> Loop:
    """Answer each window on its own, so many at once, then merge what was found: depth 2.

    Only the passages that the windows' answers cite are shown again, with those answers. Where
    one window alone found something, its answer stands and nothing is merged; where the merging
    call does not fit the time left or fails, the best of the windows' answers stands.

    Ends ``complete``, ``stopped_early i/m`` (so many of the windows were read, or all of them and
    not merged), ``out_of_time``, ``truncated`` or ``unparsable``.

    Args:
        question: the user's question.
        passages: the Send_List, best first.
        time_left: seconds until the deadline, infinite without one.
        seconds_for: predicts the seconds of an ask; one that does not fit the time left is not
            made.
        at_once: asks that the LLM takes at once.
        window: passages in a window.
        fits: whether passages fit one prompt; a window that does not is split in order.

    Raises:
        InvalidArgument: ``at_once`` or ``window`` is below 1, or not one character fits a prompt.
    """
    check_count("at_once", at_once, "give the asks that the LLM takes at once, 1 or more")
    windows = split_in_order(numbered(passages), window, fits)
    if len(windows) < 2:
        return (yield from refine_in_threes(question, passages, time_left, seconds_for, window, fits=fits))
    ledger = Ledger(passages, time_left)
    found: list[AnswerWithEvidence] = []
    read = unread = 0
    for start in range(0, len(windows), at_once):
        shown = windows[start : start + at_once]
        predicted = max(seconds_for([item.passage for item in one]) for one in shown)
        if predicted > ledger.time_left:
            break
        asks = [Ask("batch", question, one, AnswerReply) for one in shown]
        replies = yield from ledger.ask_many(asks)
        for place, (ask, reply) in enumerate(zip(asks, replies, strict=True)):
            try:
                taken = ledger.take(ask, reply, AnswerReply, predicted, beside=place > 0)
                answered = verified_answer(taken, ledger)
            except Expired:
                continue
            except Unreadable:
                unread += 1
                ledger.brought("unreadable")
                continue
            read += 1
            found += [answered] if answered.answer_found else []
    if not found:
        return (yield from ledger.finish(NO_ANSWER, _nothing(read, unread, ledger, len(windows))))
    merged, whole = (
        (found[0], True)
        if len(found) == 1
        else (yield from _merged(found, ledger, question, seconds_for, fits))
    )
    outcome = (
        "complete" if whole and read + unread == len(windows) else f"stopped_early {read}/{len(windows)}"
    )
    return (yield from ledger.finish(merged, "truncated" if ledger.shown and not whole else outcome))


def _nothing(read: int, unread: int, ledger: Ledger, windows: int) -> str:
    """The outcome where no window's answer was found."""
    if read + unread == windows:
        return "complete" if read else "unparsable"
    return "out_of_time" if ledger.calls and not read else f"stopped_early {read}/{windows}"


def _merged(
    found: Sequence[AnswerWithEvidence], ledger: Ledger, question: str, seconds_for: SecondsFor, fits: Fits
) -> Generator[Wanted, Returned, tuple[AnswerWithEvidence, bool]]:
    """The one answer made of several, and whether it was; else the best of them."""
    best = max(found, key=lambda one: (one.complete_answer_found, one.confidence))
    shown = _cited(found, ledger, fits)
    predicted = seconds_for([item.passage for item in shown])
    if predicted > ledger.time_left:
        ledger.note(f"the answers of {len(found)} windows were not merged: the time left paid for no more")
        return best, False
    together = AnswerWithEvidence(
        value="\n".join(one.value for one in found),
        evidence=tuple(dict.fromkeys(span for one in found for span in one.evidence)),
        answer_found=True,
        confidence=best.confidence,
        caveats=tuple(dict.fromkeys(caveat for one in found for caveat in one.caveats)),
    )
    ask = Ask("refine", question, shown, StepReply, previous=together, last=True)
    try:
        step = yield from ledger.ask(ask, StepReply, predicted)
    except Expired:
        return best, False
    except Unreadable:
        ledger.brought("unreadable")
        return best, False
    return refined(together, step, ledger), True


def _cited(found: Sequence[AnswerWithEvidence], ledger: Ledger, fits: Fits) -> tuple[Numbered, ...]:
    """The passages that the answers rest on, best first, as many as fit one prompt."""
    cited = {span.passage_id for one in found for span in one.evidence}
    shown = [item for item in numbered(ledger.sent) if item.passage.id in cited]
    while len(shown) > 1 and not fits([item.passage for item in shown]):
        shown.pop()
    return tuple(shown)
