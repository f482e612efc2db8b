"""The threshold gate: which passages are relevant enough; how many is not a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lara_plugins.arguments import check_choice, check_count, check_share
from lara_plugins.errors import NothingKept
from lara_plugins.gate.calibration import Calibration
from lara_plugins.gate.scorer import Scorer
from lara_plugins.passages import Score

OnEmpty = Literal["abstain", "keep_best", "raise"]

DEFAULT_THETA = 0.3
FEW_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Which passages pass, as positions in the scored list.

    Args:
        kept: those that pass, best first.
        dropped: those that were scored and do not pass, best first.
        unscored: those that scoring had no time for, in retrieval order.
        best: position of the best scored passage, kept or not; None if none was scored.
        below_theta: True where the one kept passage does not reach theta (``keep_best``).
        theta: the threshold that was applied to ``Score.value``.
        noise_rate: share of scored passages with a value below theta; 0.0 where none was scored.
        reason: one sentence with the numbers.
        remedy: what can be done where passages are there and none is kept; None elsewhere.
    """

    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    unscored: tuple[int, ...]
    best: int | None
    below_theta: bool
    theta: float
    noise_rate: float
    reason: str
    remedy: str | None


@dataclass(frozen=True, slots=True)
class ThresholdGate:
    """Keeps every passage with ``value >= theta``, best first.

    Args:
        theta: threshold on the score's value, 0..1, or a calibration, which only the scorer that
            it was made for may use.
        max_k: keep at most so many, or None for no cap.
        on_empty: what to do where no passage reaches theta: ``abstain`` keeps none,
            ``keep_best`` keeps the best one and flags it, ``raise`` raises. None chooses
            ``abstain`` on a known scale or where theta is calibrated, and ``keep_best`` otherwise:
            a threshold means nothing yet there.

    Raises:
        InvalidArgument: theta outside 0..1, ``max_k`` below 1, an unknown policy.
    """

    theta: float | Calibration = DEFAULT_THETA
    max_k: int | None = None
    on_empty: OnEmpty | None = None

    def __post_init__(self) -> None:
        check_share("theta", self.threshold, "give a probability from 0 to 1, such as 0.3")
        if self.max_k is not None:
            check_count("max_k", self.max_k, "give the most passages to keep, 1 or more, or None")
        if self.on_empty is not None:
            check_choice("on_empty", self.on_empty, get_args(OnEmpty))

    @property
    def threshold(self) -> float:
        """Theta as a number."""
        return self.theta.theta if isinstance(self.theta, Calibration) else self.theta

    @property
    def calibrated(self) -> Calibration | None:
        """Theta's calibration, where it has one."""
        return self.theta if isinstance(self.theta, Calibration) else None

    def check(self, scorer: Scorer) -> None:
        """Refuse a scorer that theta was not calibrated for; a plain number suits any.

        Raises:
            CalibrationMismatch: theta was calibrated for another scorer.
        """
        if self.calibrated is not None:
            self.calibrated.check(scorer.fingerprint)

    def admit(self, scores: Sequence[Score | None], scale_known: bool = True) -> GateDecision:
        """Decide which passages pass, and hold to the policy.

        Args:
            scores: one a passage in retrieval order; None where it was left unscored.
            scale_known: whether theta is known to mean something on the scores' scale.

        Raises:
            NothingKept: no passage reaches theta and ``on_empty`` is ``raise``.
        """
        decision = self.decide(scores, scale_known)
        self.refuse_empty(decision)
        return decision

    def refuse_empty(self, decision: GateDecision) -> None:
        """Raise where the policy is to.

        Raises:
            NothingKept: the decision keeps no passage and ``on_empty`` is ``raise``.
        """
        if decision.remedy is not None and self.on_empty == "raise":
            raise NothingKept(f"{decision.reason} (remedy: {decision.remedy})")

    def decide(self, scores: Sequence[Score | None], scale_known: bool = True) -> GateDecision:
        """Decide which passages pass, whatever the policy says of none.

        Args:
            scores: one a passage in retrieval order; None where it was left unscored.
            scale_known: whether theta is known to mean something on the scores' scale.
        """
        scored = {i: score for i, score in enumerate(scores) if score is not None}
        ranks = {i: score.rank for i, score in scored.items()}
        # sorted() is stable, in reverse too: ties stay in retrieval order.
        order = sorted(ranks, key=ranks.__getitem__, reverse=True)
        theta = self.threshold
        relevant = [i for i in order if scored[i].value >= theta]
        noise_rate = (len(order) - len(relevant)) / len(order) if order else 0.0
        kept = relevant[: self.max_k]
        on_empty = self.on_empty or ("abstain" if scale_known or self.calibrated is not None else "keep_best")
        below_theta = not kept and bool(order) and on_empty == "keep_best"
        if below_theta:
            kept = order[:1]
        reason = self._reason(scores, order, relevant, kept)
        remedy = self._remedy(best_known=bool(order)) if scores and not kept else None
        chosen = set(kept)
        return GateDecision(
            kept=tuple(kept),
            dropped=tuple([i for i in order if i not in chosen]),
            unscored=tuple([i for i in range(len(scores)) if i not in scored]),
            best=order[0] if order else None,
            below_theta=below_theta,
            theta=float(self.threshold),
            noise_rate=noise_rate,
            reason=reason,
            remedy=remedy,
        )

    def _reason(
        self, scores: Sequence[Score | None], order: list[int], relevant: list[int], kept: list[int]
    ) -> str:
        if not scores:
            return "there was no passage to score"
        if not order:
            return f"none of {len(scores)} passages was scored in the time there was"
        scored = f"{len(order)} scored passages" if len(order) > 1 else "1 scored passage"
        if relevant:
            capped = f", {len(kept)} kept by max_k" if len(kept) < len(relevant) else ""
            return f"{len(relevant)} of {scored} reach theta {self.threshold:g}{capped}"
        value, theta = _told_apart(_value(scores, order[0]), self.threshold)
        best = f"none of {scored} reaches theta {theta}; the best has {value}"
        return f"{best} and is kept, below theta" if kept else best

    def _remedy(self, best_known: bool) -> str:
        if not best_known:
            return "afford more time, or retrieve fewer passages"
        if self.calibrated is not None:
            again = "with a higher recall, " if self.calibrated.recall else ""
            return f"calibrate theta again, {again}or set on_empty='keep_best'"
        return "calibrate theta for this scorer and corpus (lara calibrate), or set on_empty='keep_best'"


def _told_apart(value: float, theta: float) -> tuple[str, str]:
    """A value and theta, which differ, with as few digits as show it."""
    digits = next(digits for digits in range(3, 18) if f"{value:.{digits}g}" != f"{theta:.{digits}g}")
    return f"{value:.{digits}g}", f"{theta:.{max(digits, 6)}g}"


def _value(scores: Sequence[Score | None], position: int) -> float:
    score = scores[position]
    return 0.0 if score is None else score.value
