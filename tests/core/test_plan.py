from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.errors import InvalidArgument
from lara_plugins.retrieval import retrieval_plan

sizes = st.integers(0, 2_000_000)


@pytest.mark.parametrize(
    ("size", "alpha", "top_k"),
    [
        (0, 1.0, 5),
        (1, 1.0, 5),
        (499, 1.0, 5),
        (500, 0.7, 10),
        (9_999, 0.7, 10),
        (10_000, 0.5, 20),
        (10**7, 0.5, 20),
    ],
)
def test_the_table(size: int, alpha: float, top_k: int) -> None:
    plan = retrieval_plan(size)
    assert (plan.alpha, plan.top_k, plan.pool_size) == (alpha, top_k, min(200, size))


@given(sizes, st.floats(0, 1))
def test_the_ceiling_lowers_the_tables_alpha_and_nothing_else(size: int, ceiling: float) -> None:
    plan, free = retrieval_plan(size, alpha_ceiling=ceiling), retrieval_plan(size)
    assert plan.alpha == min(free.alpha, ceiling)
    assert (plan.top_k, plan.pool_size) == (free.top_k, free.pool_size)


@given(sizes)
def test_without_a_sparse_half_alpha_is_1(size: int) -> None:
    plan = retrieval_plan(size, alpha_floor=1.0)
    assert plan.alpha == 1.0
    assert size < 500 or "the least for this index" in plan.reason


@given(sizes, st.floats(0, 1), st.floats(0, 1))
def test_an_explicit_alpha_is_never_changed(size: int, alpha: float, ceiling: float) -> None:
    assert retrieval_plan(size, alpha=alpha, alpha_ceiling=ceiling).alpha == alpha


@given(sizes, st.one_of(st.none(), st.integers(1, 500)))
def test_pools(size: int, top_k: int | None) -> None:
    used = retrieval_plan(size, top_k=top_k).top_k
    assert used == (top_k or used)
    assert retrieval_plan(size, top_k=top_k, pool="fixed").pool_size == min(200, size)
    twentieth = math.ceil(Fraction(5, 100) * size)
    proportional = retrieval_plan(size, top_k=top_k, pool="proportional").pool_size
    assert proportional == min(size, max(used, min(200, twentieth)))
    assert retrieval_plan(size, top_k=top_k, pool="oversample").pool_size == min(size, 4 * used)


def test_the_reason_says_what_was_decided() -> None:
    reason = retrieval_plan(1607, alpha_ceiling=0.6).reason
    assert "1,607 passages" in reason
    assert "alpha 0.6, the ceiling" in reason
    assert "as given" in retrieval_plan(1607, alpha=0.9).reason


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"corpus_size": -1}, "corpus_size"),
        ({"corpus_size": 1.5}, "corpus_size"),
        ({"corpus_size": True}, "corpus_size"),
        ({"alpha": 1.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"alpha": "0.5"}, "alpha"),
        ({"alpha_ceiling": -0.1}, "alpha_ceiling"),
        ({"alpha_floor": 1.1}, "alpha_floor"),
        ({"alpha_floor": 0.7, "alpha_ceiling": 0.6}, "alpha_floor"),
        ({"top_k": 0}, "top_k"),
        ({"pool": "all"}, "pool"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        retrieval_plan(**{"corpus_size": 1000, **arguments})  # type: ignore[arg-type]
    assert caught.value.argument == named
