"""Passage by passage, best first, until the answer is found and complete."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace

from lara_plugins.answering.contract import NO_ANSWER, AnswerReply, AnswerWithEvidence
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
from lara_plugins.answering.verdict import verified_answer
from lara_plugins.answering.windows import numbered, split_in_order
from lara_plugins.arguments import check_count
from lara_plugins.budget import TokenCounter, conservative_tokens
from lara_plugins.passages import Passage


def answer_sequentially(
    question: str,
    passages: Sequence[Passage],
    time_left: float = math.inf,
    seconds_for: SecondsFor = no_time,
    max_calls: int | None = None,
    fits: Fits = always_fits,
    *,
    max_tokens: int | None = None,
    count_tokens: TokenCounter = conservative_tokens,
    escalate: bool = False,
) -> Loop:
    """Ask over one passage after the other and stop at "found and complete".

    Ends ``sufficient`` (found and complete), ``exhausted`` (every passage read; the best
    incomplete answer, or none, which is an answer too) or ``budget`` (no call, no token or no
    time left). No ask is streamed: an answer is shown once it is accepted.

    Args:
        question: the user's question.
        passages: best first.
        time_left: seconds until the deadline, infinite without one.
        seconds_for: predicts the seconds of an ask; one that does not fit is not made.
        max_calls: at most so many asks, repairs apart; None for no limit.
        fits: whether passages fit one prompt; a passage that does not is read in pieces.
        max_tokens: at most so many tokens of passages over all asks; None for no limit.
        count_tokens: counts the tokens of a passage's text.
        escalate: where all passages were read in vain, ask once more over all of them
            together, if they fit one prompt and what is left of the budget pays for it.

    Raises:
        InvalidArgument: ``max_calls`` or ``max_tokens`` is below 1.
    """
    if max_calls is not None:
        check_count("max_calls", max_calls, "give the most asks, 1 or more, or None")
    if max_tokens is not None:
        check_count("max_tokens", max_tokens, "give the most tokens of passages, 1 or more, or None")
    ledger = Ledger(passages, time_left)
    best, outcome, tokens_read = NO_ANSWER, "exhausted" if passages else "no_passages", 0

    def affords(tokens: int, predicted: float) -> bool:
        within_tokens = max_tokens is None or tokens_read + tokens <= max_tokens
        return within_tokens and predicted <= ledger.time_left and ledger.calls != max_calls

    for shown in split_in_order(numbered(passages), 1, fits):
        tokens, predicted = _cost(shown, count_tokens, seconds_for)
        if not affords(tokens, predicted):
            outcome = "budget"
            break
        tokens_read += tokens
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
    together = numbered(passages)
    if not escalate or outcome != "exhausted" or len(together) == 1:
        return (yield from ledger.finish(best, outcome))
    tokens, predicted = _cost(together, count_tokens, seconds_for)
    if not fits(passages) or not affords(tokens, predicted):
        ledger.note(f"not escalated: one call over the {len(together)} passages does not fit what is left")
        return (yield from ledger.finish(best, outcome))
    best, outcome = yield from _together(question, together, predicted, best, ledger)
    return replace((yield from ledger.finish(best, outcome)), escalated=True)


def _together(
    question: str, shown: tuple[Numbered, ...], predicted: float, best: AnswerWithEvidence, ledger: Ledger
) -> Generator[Wanted, Returned, tuple[AnswerWithEvidence, str]]:
    """The one call over all passages: the better of its answer and the best before it."""
    ledger.note(f"escalated: no passage alone gave a complete answer, so the {len(shown)} were read together")
    try:
        # Not streamed: the best incomplete answer may stand.
        reply = yield from ledger.ask(Ask("batch", question, shown, AnswerReply), AnswerReply, predicted)
    except Expired:
        return best, "budget"
    except Unreadable:
        ledger.brought("unreadable")
        return best, "exhausted"
    answer = verified_answer(reply, ledger)
    if answer.complete_answer_found:
        return answer, "sufficient"
    return _better(best, answer), "exhausted"


def _cost(
    shown: Sequence[Numbered], count_tokens: TokenCounter, seconds_for: SecondsFor
) -> tuple[int, float]:
    """Tokens of the passages of an ask, and the seconds that it is predicted to take."""
    passages = [item.passage for item in shown]
    return sum(count_tokens(passage.content) for passage in passages), seconds_for(passages)


def _better(best: AnswerWithEvidence, answer: AnswerWithEvidence) -> AnswerWithEvidence:
    """The better incomplete answer; of two without support the earlier, with the caveats of both."""
    if not (best.answer_found or answer.answer_found):
        caveats = tuple(dict.fromkeys((*best.caveats, *answer.caveats)))
        return (best if best.value else answer).model_copy(update={"caveats": caveats})
    ahead = (answer.answer_found, answer.confidence) > (best.answer_found, best.confidence)
    return answer if ahead else best
