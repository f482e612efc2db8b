from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.gate.engines.batching import batches_by_length


@given(st.lists(st.integers(1, 600), max_size=100), st.integers(1, 4000))
def test_batches_hold_every_pair_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = batches_by_length(lengths, budget)

    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[p] for p in batch) <= budget


def test_nothing_heavy_is_imported_before_the_first_score() -> None:
    script = (
        "import sys; from lara_plugins.gate.loading import load_scorer\n"
        "load_scorer('embedded').fingerprint; load_scorer('cross-encoder/any')\n"
        "print([m for m in ('numpy', 'onnxruntime', 'tokenizers', 'torch') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.strip() == "[]"
