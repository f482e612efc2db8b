"""From an LLM's answer reply to the typed answer, quotes verified."""

from __future__ import annotations

from lara_plugins.answering.contract import AnswerReply, AnswerWithEvidence
from lara_plugins.answering.ledger import Ledger


def verified_answer(reply: AnswerReply, ledger: Ledger) -> AnswerWithEvidence:
    """The typed answer; one left without a verifiable quote is not found."""
    verified = ledger.verify(reply.value, reply.evidence)
    found = reply.answer_found and bool(verified.spans)
    ledger.brought(
        ("complete" if reply.complete_answer_found else "found")
        if found
        else "unsupported"
        if reply.answer_found
        else "not found"
    )
    return AnswerWithEvidence(
        value=reply.value.strip() if reply.answer_found else "",
        evidence=verified.spans if found else (),
        answer_found=found,
        complete_answer_found=found and reply.complete_answer_found,
        confidence=reply.confidence if found else 0.0,
        caveats=(*reply.caveats, *verified.caveats),
    )
