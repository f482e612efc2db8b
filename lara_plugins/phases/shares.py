"""How the time of a query is shared out between scoring and answering."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lara_plugins.budget import ONE_CALL, CalibratedLatency, conservative_tokens
from lara_plugins.budget.plan import PASSAGES_PER_CALL
from lara_plugins.gate import GATE_SHARE
from lara_plugins.passages import Passage
from lara_plugins.query import QueryState

LEAST_SHARE = 0.1
"""Share of the budget that scoring gets even where answering would want it all."""


def gate_seconds(state: QueryState, candidates: Sequence[Passage]) -> float:
    """Seconds that scoring may take; infinite without a deadline.

    Where the query's latency was learned, all that answering does not need: what is set aside is
    the predicted time of one call over as many candidates as one call reads. Else a fixed share
    of the budget.

    Args:
        state: the query's state with its deadline and, where it is known already, its latency.
        candidates: what is to be scored.
    """
    clock, latency = state.clock, state.latency
    if clock.afford is None:
        return math.inf
    left = clock.time_left()
    if not isinstance(latency, CalibratedLatency) or latency.state != "calibrated" or not candidates:
        return min(left, GATE_SHARE * clock.afford)
    tokens = [conservative_tokens(passage.content) for passage in candidates[:PASSAGES_PER_CALL]]
    answering = latency.predict(ONE_CALL(tokens))
    return min(left, max(left - answering, LEAST_SHARE * clock.afford))
