"""HyDE in its share of the time: a hypothetical answer, or the literal question and why."""

from __future__ import annotations

import logging
import math
from typing import Protocol

from lara_plugins.answering.deadline import DeadlinePassed, acall_within, call_within
from lara_plugins.answering.fences import fence_question
from lara_plugins.query import QueryState
from lara_plugins.retrieval.hyde import HYDE_SHARE, Hypothesis

_logger = logging.getLogger(__name__)


class HypothesisWriter(Protocol):
    """An LLM of a framework with the prompt for a hypothetical answer."""

    @property
    def callee(self) -> object:
        """What is called in the end: calls to it that are left running are counted together."""

    def write(self, question: str) -> str:
        """What the LLM answers to the question, which comes fenced."""

    async def awrite(self, question: str) -> str:
        """As ``write``, without blocking the event loop."""


def run_hyde(state: QueryState, question: str, writer: HypothesisWriter) -> str | None:
    """A hypothetical answer to embed, or None where the literal question has to do.

    Whatever keeps the LLM from answering, an error, the deadline or an empty reply, is no reason
    not to search: it is told in the trace and in the log.

    Args:
        state: the query's state; its deadline, if it has one, bounds the call.
        question: the question.
        writer: the LLM.
    """
    began, allowed = state.clock.now(), _allowed(state)
    if allowed <= 0:
        return _told(state, _late(allowed), began)
    fenced = fence_question(question)
    try:
        written = Hypothesis.said(call_within(allowed, lambda: writer.write(fenced), writer.callee))
    except DeadlinePassed:
        written = _late(allowed)
    except Exception as error:  # noqa: BLE001 - an optional aid: a search goes on without it
        written = _failed(error)
    return _told(state, written, began)


async def arun_hyde(state: QueryState, question: str, writer: HypothesisWriter) -> str | None:
    """As ``run_hyde``, without blocking the event loop."""
    began, allowed = state.clock.now(), _allowed(state)
    if allowed <= 0:
        return _told(state, _late(allowed), began)
    try:
        written = Hypothesis.said(await acall_within(allowed, writer.awrite(fence_question(question))))
    except DeadlinePassed:
        written = _late(allowed)
    except Exception as error:  # noqa: BLE001 - as above
        written = _failed(error)
    return _told(state, written, began)


def _allowed(state: QueryState) -> float:
    """Seconds that the LLM may take; infinite without a deadline."""
    clock = state.clock
    return math.inf if clock.afford is None else min(clock.time_left(), HYDE_SHARE * clock.afford)


def _late(allowed: float) -> Hypothesis:
    if allowed <= 0:
        return Hypothesis.missing("no time is left for a hypothetical answer")
    return Hypothesis.missing(f"the LLM took longer than the {allowed:.2g} s that it may")


def _failed(error: Exception) -> Hypothesis:
    # What the error says may hold the prompt, which is not for the log.
    _logger.debug("the LLM for HyDE failed", exc_info=error)
    return Hypothesis.missing(f"the LLM failed ({type(error).__name__})")


def _told(state: QueryState, written: Hypothesis, began: float) -> str | None:
    state.trace.record("hyde", written.reason, state.clock.now() - began, hypothesis=written.text)
    if written.text is None:
        state.trace.note(f"HyDE: {written.reason}")
        _logger.warning("HyDE: %s", written.reason)
    return written.text
