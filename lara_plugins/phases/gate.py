"""The gate: score in its share of the budget, and keep what reaches theta."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lara_plugins.gate import (
    DEFAULT_THETA,
    FEW_CANDIDATES,
    GateDecision,
    Scorer,
    ThresholdGate,
    score_in_time,
)
from lara_plugins.passages import Passage, Score
from lara_plugins.phases.shares import gate_seconds
from lara_plugins.phases.usual import usual_seconds
from lara_plugins.query import QueryState
from lara_plugins.trace import finite

BEST_SHOWN = 3
"""Passages that stand as sources where nothing was sent."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gated:
    """What the gate decided, and the scores that it decided on, one a passage."""

    decision: GateDecision
    scores: tuple[Score | None, ...]


def run_gate(
    state: QueryState, question: str, passages: Sequence[Passage], scorer: Scorer, gate: ThresholdGate
) -> Gated:
    """Score the passages in the gate's share of the budget, and keep what reaches theta.

    Args:
        state: the query's state; its deadline, if it has one, bounds the scoring.
        question: what the passages are scored against.
        passages: the candidates, in retrieval order.
        scorer: the cross-encoder.
        gate: theta, the cap and the policy.

    Raises:
        CalibrationMismatch: theta was calibrated for another scorer.
        InvalidArgument: the question is empty.
        ScoreError: the scorer returned something that is not a score.
        NothingKept: no passage is kept and the policy is to raise; the trace has the decision.
    """
    gate.check(scorer)
    clock = state.clock
    began = clock.now()
    allowed = gate_seconds(state, passages)
    texts = [passage.content for passage in passages]
    scored = score_in_time(scorer, question, texts, lambda: allowed - (clock.now() - began))
    state.candidates = len(passages)
    decision = gate.decide(scored.scores, scorer.scale_known)
    by_rank = (*decision.kept, *decision.dropped)
    state.best = tuple(passages[i] for i in (by_rank or range(len(passages)))[:BEST_SHOWN])
    state.scores = {passages[i].id: score for i in decision.kept if (score := scored.scores[i]) is not None}
    below = sum(score is not None and score.value < decision.theta for score in scored.scores)
    best = None if decision.best is None else scored.scores[decision.best]
    seconds, kind = clock.now() - began, ("gate", scorer.fingerprint)
    a_passage = usual_seconds.at_most(kind)
    state.trace.record(
        "gate",
        decision.reason,
        seconds,
        predicted=None if a_passage is None else min(allowed, a_passage * len(passages)),
        allowed=finite(allowed),
        candidates=len(passages),
        kept=len(decision.kept),
        below_theta=below,
        unscored=len(decision.unscored),
        theta=decision.theta,
        calibrated=None if gate.calibrated is None else gate.calibrated.tier,
        noise_rate=decision.noise_rate,
        best=None if best is None else best.value,
        truncated=len(scored.truncated),
        kept_below_theta=decision.below_theta,
        scorer=scorer.fingerprint,
        remedy=decision.remedy,
    )
    if by_rank:
        usual_seconds.took(kind, seconds / len(by_rank))
    if gate.theta == DEFAULT_THETA and not scorer.scale_known:
        state.trace.note(
            f"theta is the default {DEFAULT_THETA} and the scale of this scorer is unknown, so it may mean "
            "anything here: calibrate (lara calibrate)"
        )
        _warn_of_unknown_scale(scorer.fingerprint)
    if scored.truncated:
        state.trace.note(
            f"{len(scored.truncated)} passages are longer than the scorer's window "
            "and were scored on as much as fits"
        )
    if decision.unscored:
        state.trace.note(f"{len(decision.unscored)} passages were left unscored when the gate's time ended")
    retrieval = state.trace.last("retrieval")
    corpus = None if retrieval is None else retrieval.facts.get("corpus")
    if 0 < len(passages) < FEW_CANDIDATES and corpus != len(passages):
        state.trace.note(
            f"the gate had {len(passages)} candidates: retrieve 50 to 200, so that it has a choice"
        )
    if decision.remedy is not None:
        state.leave_empty(decision.reason, decision.remedy)
    gate.refuse_empty(decision)
    return Gated(decision, scored.scores)


@lru_cache(maxsize=1024)
def _warn_of_unknown_scale(fingerprint: str) -> None:
    """Say it once a scorer and process; the cache remembers for whom it was said."""
    _logger.warning(
        "theta is the default %s and the scale of the scorer %s is unknown: calibrate theta (lara calibrate)",
        DEFAULT_THETA,
        fingerprint,
    )
