"""A question's shape and the passages that are left -> how the question is answered."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from lara_plugins.arguments import check_count
from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import Score
from lara_plugins.question.shape import SINGLE_VALUES, AnswerShape, QuestionShape, Route

logger = logging.getLogger("lara_plugins.question")

_SHAPES = frozenset(get_args(AnswerShape))


@dataclass(frozen=True, slots=True)
class Limits:
    """The routing table. ``dataclasses.replace(DEFAULT_LIMITS, ...)`` changes a line of it.

    Args:
        one_passage: answer shapes that one passage can hold; a single ask of such a shape is
            answered passage by passage, everything else is gathered.
        passages_per_call: most passages of one call.
        tokens_per_call: most tokens of the passages of one call.
        tight_share: scores within this share of the best cannot be told apart.
        tight_minimum: how many such scores there must be, the best among them.
        sequential_calls: most calls of a sequential answer, or None for no limit.
        sequential_tokens: most tokens of passages that a sequential answer reads, or None.

    Raises:
        InvalidArgument: a limit is no whole number of at least 1, ``one_passage`` is no frozenset of
            answer shapes, or ``tight_share`` is outside 0..1.
    """

    one_passage: frozenset[AnswerShape] = SINGLE_VALUES
    passages_per_call: int = 10
    tokens_per_call: int = 6_000
    tight_share: float = 0.05
    tight_minimum: int = 3
    sequential_calls: int | None = None
    sequential_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("passages_per_call", "tokens_per_call", "tight_minimum"):
            check_count(name, getattr(self, name), "give a whole number of at least 1")
        for name in ("sequential_calls", "sequential_tokens"):
            most = getattr(self, name)
            if most is not None:
                check_count(name, most, "give a whole number of at least 1, or None")
        if not isinstance(self.one_passage, frozenset) or not self.one_passage <= _SHAPES:
            raise InvalidArgument(
                "one_passage", self.one_passage, f"give a frozenset of some of {sorted(_SHAPES)}"
            )
        if not 0.0 <= self.tight_share <= 1.0:
            raise InvalidArgument("tight_share", self.tight_share, "give a share in 0..1 such as 0.05")

    def one_call_holds(self, passages: int, tokens: int) -> bool:
        """Whether so many passages of so many tokens fit one call."""
        return passages <= self.passages_per_call and tokens <= self.tokens_per_call

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values, from which ``limits_of`` makes it again."""
        return {**asdict(self), "one_passage": sorted(self.one_passage)}


DEFAULT_LIMITS = Limits()


def limits_of(limits: Limits | Mapping[str, Any]) -> Limits:
    """The routing table itself, or the one whose plain values it was saved as.

    Raises:
        InvalidArgument: the values are not those of a routing table.
    """
    if isinstance(limits, Limits):
        return limits
    try:
        return Limits(**{**limits, "one_passage": frozenset(limits["one_passage"])})
    except (KeyError, TypeError) as error:
        raise InvalidArgument("limits", limits, "give Limits, or what its to_dict() gave") from error


def route(
    shape: QuestionShape,
    scores: Sequence[Score] = (),
    tokens: Sequence[int] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> Route:
    """Choose passage by passage (sequential), one call (batch) or windows (refine).

    In order: three or more scores that cannot be told apart are read together; a single ask for
    a value that one passage can hold is answered sequentially; everything else is read together.
    Together means batch where the passages fit one call, else refine.

    Args:
        shape: what the question asks for.
        scores: scores of the passages that are left.
        tokens: their token counts, in the same order; without them only their number is checked.
        limits: the routing table.

    Raises:
        InvalidArgument: ``tokens`` has another length than ``scores``, or a negative count.
    """
    if scores and tokens and len(scores) != len(tokens):
        raise InvalidArgument("tokens", list(tokens), f"give one count for each of the {len(scores)} scores")
    if any(count < 0 for count in tokens):
        raise InvalidArgument("tokens", list(tokens), "give counts that are not negative")
    chosen = _choose(shape, scores, tokens, limits)
    logger.info(
        "route regime=%s rule=%s shape=%s decomposition=%s language=%s parsed_by=%s passages=%d tokens=%d "
        "max_calls=%s max_tokens=%s",
        chosen.regime,
        chosen.rule,
        shape.answer_shape,
        shape.decomposition,
        shape.language,
        shape.rule,
        max(len(scores), len(tokens)),
        sum(tokens),
        chosen.max_calls,
        chosen.max_tokens,
    )
    return chosen


def tight_count(scores: Sequence[Score], share: float) -> int:
    """How many scores, the best among them, lie within ``share`` of the best.

    The published rule says "within 5 %" and leaves the scale open. On probabilities it fires
    whenever several passages are good, because a sigmoid saturates: 0.96 and 0.999 are 4 % apart
    and 3.7 apart as logits. The odds p / (1 - p) do not saturate, so the share is taken of them;
    for logits that is a distance of at most -log(1 - share), 0.051 for 5 %. Over 150 questions of
    NQ, SQuAD 2, CLAPNQ and HotpotQA a two-layer cross-encoder kept three passages or more for 21;
    the probability rule fired on 2 of these and, with logits spread as wide as MS MARCO models
    spread them, on 7, each with three values above 0.95. The rule over odds fired on none:
    it is left for passages that say the same.
    """
    if not scores:
        return 0
    odds = [_odds(score.value) for score in scores]
    floor = (1.0 - share) * max(odds)
    return sum(value >= floor for value in odds)


def _odds(probability: float) -> float:
    return probability / (1.0 - probability) if probability < 1.0 else math.inf


def _choose(shape: QuestionShape, scores: Sequence[Score], tokens: Sequence[int], limits: Limits) -> Route:
    tight = tight_count(scores, limits.tight_share)
    if tight >= limits.tight_minimum:
        why = (
            f"{tight} of {len(scores)} scores lie within {limits.tight_share:.0%} of the best, so none leads"
        )
        return _together("tight-scores", why, len(scores), tokens, limits)
    if shape.decomposition != "single":
        asks = (
            "several asks" if shape.decomposition == "several_asks" else "an ask that needs another's answer"
        )
        why = f"the question holds {asks} (rule {shape.rule})"
        return _together(shape.decomposition.replace("_", "-"), why, len(scores), tokens, limits)
    if shape.answer_shape in limits.one_passage:
        known = max(len(scores), len(tokens))
        reason = (
            f"One passage can hold the one {shape.answer_shape} that is asked for (rule {shape.rule}), "
            f"so the {f'{known} passages' if known else 'passages'} are read best first, one a call."
        )
        return Route("sequential", "one-passage", reason, limits.sequential_calls, limits.sequential_tokens)
    if shape.answer_shape == "unknown":
        return _together(
            "unknown-shape", f"no shape is known (rule {shape.rule})", len(scores), tokens, limits
        )
    why = f"the answer is gathered: shape {shape.answer_shape} (rule {shape.rule})"
    return _together("gathered", why, len(scores), tokens, limits)


def _together(rule: str, why: str, scored: int, tokens: Sequence[int], limits: Limits) -> Route:
    """Batch where the passages fit one call, else refine."""
    passages, total = max(scored, len(tokens)), sum(tokens)
    size = f"{passages} passages of {total} tokens" if tokens else f"{passages} passages"
    limit = f"one call of {limits.passages_per_call} passages and {limits.tokens_per_call} tokens"
    reason = why[0].upper() + why[1:]
    if not passages:
        return Route("batch", rule, f"{reason}.")
    if limits.one_call_holds(passages, total):
        return Route("batch", rule, f"{reason}, and {size} fit {limit}.")
    return Route("refine", rule, f"{reason}, and {size} do not fit {limit}.")
