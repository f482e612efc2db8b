"""How to search a corpus of a given size: the weight of the dense half, top_k, and how many candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lara_plugins.arguments import check_count, check_share
from lara_plugins.errors import InvalidArgument

PoolRule = Literal["fixed", "proportional", "oversample"]

MAX_POOL = 200
"""Candidates that a cross-encoder is given at most under the fixed and the proportional rule."""


@dataclass(frozen=True, slots=True)
class RetrievalPlan:
    """What a search is made with.

    Attributes:
        alpha: weight of the dense half, 0..1; the sparse half weighs 1 - alpha.
        top_k: passages that a corpus of this size calls for; caps the gate only where a cap is asked for.
        pool_size: candidates to fetch, at most the corpus; 0 only for an empty corpus.
        pool: the rule that gave ``pool_size``.
        reason: one sentence that says how it was decided.
    """

    alpha: float
    top_k: int
    pool_size: int
    pool: PoolRule
    reason: str


def retrieval_plan(
    corpus_size: int,
    *,
    alpha: float | None = None,
    top_k: int | None = None,
    pool: PoolRule = "fixed",
    alpha_ceiling: float = 1.0,
    alpha_floor: float = 0.0,
) -> RetrievalPlan:
    """The plan for a corpus of ``corpus_size`` passages.

    ============  =====  =====
    corpus        alpha  top_k
    ============  =====  =====
    N < 500       1.0    5
    N < 10,000    0.7    10
    else          0.5    20
    ============  =====  =====

    The pool is ``fixed``: min(200, N); ``proportional``: min(200, ceil(0.05 N)), at least top_k;
    ``oversample``: 4 x top_k. None is larger than the corpus.

    Args:
        corpus_size: passages in the index, N.
        alpha: weight of the dense half instead of the table's; taken as it is.
        top_k: instead of the table's.
        pool: the rule for the number of candidates.
        alpha_ceiling: highest alpha that the table may choose for the index's encoders.
        alpha_floor: lowest one; 1.0 for an index without a sparse half.

    Raises:
        InvalidArgument: a count is negative or no integer, a weight is outside 0..1, or there is
            no such rule.
    """
    check_count("corpus_size", corpus_size, "give a whole number, 0 or more", least=0)
    check_share("alpha_ceiling", alpha_ceiling, "give a number from 0 to 1")
    check_share("alpha_floor", alpha_floor, "give a number from 0 to 1")
    if alpha_floor > alpha_ceiling:
        raise InvalidArgument("alpha_floor", alpha_floor, f"give at most alpha_ceiling, {alpha_ceiling:g}")
    if alpha is not None:
        check_share("alpha", alpha, "give a number from 0 to 1")
    if top_k is not None:
        check_count("top_k", top_k, "give a whole number, 1 or more", least=1)
    if pool not in get_args(PoolRule):
        raise InvalidArgument("pool", pool, 'use "fixed", "proportional" or "oversample"')

    size_class, table_alpha, table_top_k = _for_size(corpus_size)
    if alpha is not None:
        chosen_alpha, why = alpha, f"alpha {alpha:g} as given"
    elif table_alpha > alpha_ceiling:
        chosen_alpha, why = alpha_ceiling, f"alpha {alpha_ceiling:g}, the ceiling of these encoders"
    elif table_alpha < alpha_floor:
        chosen_alpha, why = alpha_floor, f"alpha {alpha_floor:g}, the least for this index"
    else:
        chosen_alpha, why = table_alpha, f"alpha {table_alpha:g}"
    chosen_top_k = table_top_k if top_k is None else top_k
    pool_size = _pool_size(corpus_size, chosen_top_k, pool)
    reason = (
        f"{corpus_size:,} passages ({size_class}): {why}, "
        f"top_k {chosen_top_k}{'' if top_k is None else ' as given'}, {pool} pool of {pool_size}"
    )
    return RetrievalPlan(float(chosen_alpha), chosen_top_k, pool_size, pool, reason)


def _for_size(corpus_size: int) -> tuple[str, float, int]:
    """The row of the table: its name, alpha and top_k."""
    if corpus_size < 500:
        return "fewer than 500", 1.0, 5
    if corpus_size < 10_000:
        return "fewer than 10,000", 0.7, 10
    return "10,000 or more", 0.5, 20


def _pool_size(corpus_size: int, top_k: int, pool: PoolRule) -> int:
    if pool == "fixed":
        wanted = MAX_POOL
    elif pool == "proportional":
        wanted = max(top_k, min(MAX_POOL, -(-corpus_size // 20)))  # ceil(0.05 N) without rounding error
    else:
        wanted = 4 * top_k
    return min(wanted, corpus_size)
