"""An answer as a person reads it."""

from __future__ import annotations

from lara_plugins.answering.loop import Answer
from lara_plugins.answering.quotes import cited_numbers


def answer_text(answer: Answer) -> str:
    """The answer with its citations, or one sentence that says why there is none."""
    evidence = answer.evidence
    if evidence.answer_found:
        value = evidence.value.rstrip()
        if cited_numbers(value):
            return value
        return " ".join([value, *(f"[{number}]" for number in answer.citations)])
    reason = why_not(answer)
    if evidence.value.strip():
        return f"{reason} The model said, without support: {evidence.value.strip()}"
    return reason


def why_not(answer: Answer) -> str:
    """One sentence that says why no answer was found."""
    read = f"the {len(answer.sent)} passages" if len(answer.sent) != 1 else "the one passage"
    outcome = answer.outcome.split(" ")[0]
    match outcome:
        case "no_passages":
            return "No answer: there was no passage to answer from."
        case "out_of_time" | "truncated":
            return f"No answer: the time ran out ({answer.outcome}) before {read} gave one."
        case "stopped_early":
            return f"No answer: the next ask did not fit the time left ({answer.outcome})."
        case "budget":
            return f"No answer: the budget ended after {answer.calls} calls, before {read} gave one."
        case "unparsable":
            return "No answer: the model's reply could not be read as a typed answer; it stands in the trace."
        case _:
            return f"No answer was found in {read}."


def abstention_text(reason: str, sources: int) -> str:
    """Why nothing was asked, and what a person can do about it."""
    listed = " The best passages seen are among the sources." if sources else ""
    return f"No answer: {reason}.{listed}"
