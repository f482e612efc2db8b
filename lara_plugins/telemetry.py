"""What became of queries, as OpenTelemetry metrics (``lara-plugins[telemetry]``).

The API alone is needed; where the application sets up no provider, nothing is exported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lara_plugins.errors import MissingExtra
from lara_plugins.query import QueryState, add_listener
from lara_plugins.trace import Fact
from lara_plugins.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider


class Metrics:
    """Records each answered query.

    * ``lara.budget``: seconds that it could afford; ``lara.query``: seconds that it took.
    * ``lara.passages.kept``, ``lara.passages.sent``: by the gate, and by the budget.
    * ``lara.queries``: counted by ``outcome``, and by ``stopped`` where the time ended it.
    * ``lara.asks``: counted by ``covered``: whether the call took at most what was predicted. The
      share of those that are is the coverage of the latency model.

    Args:
        provider: the application's meter provider; by default the one that is set globally.

    Raises:
        MissingExtra: the OpenTelemetry API is not installed.
    """

    def __init__(self, provider: MeterProvider | None = None) -> None:
        try:
            from opentelemetry.metrics import get_meter_provider  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra("opentelemetry-api", "lara-plugins[telemetry]") from error
        meter = (provider or get_meter_provider()).get_meter("lara_plugins", __version__)
        self._budget = meter.create_histogram("lara.budget", "s", "Seconds that a query could afford")
        self._query = meter.create_histogram("lara.query", "s", "Seconds that a query took")
        self._kept = meter.create_histogram("lara.passages.kept", "{passage}", "Kept by the gate")
        self._sent = meter.create_histogram("lara.passages.sent", "{passage}", "Sent by the budget")
        self._queries = meter.create_counter("lara.queries", "{query}", "Answered queries by outcome")
        self._asks = meter.create_counter("lara.asks", "{ask}", "Calls by whether they were in time")

    def record(self, state: QueryState) -> None:
        """Record a query that has been answered."""
        answer = _facts(state, "answer")
        outcome = str(answer.get("outcome", "")).partition(" ")[0]
        stopped = outcome in {"stopped_early", "out_of_time", "truncated", "budget"}
        self._queries.add(1, {"outcome": outcome, "stopped": stopped})
        self._query.record(state.clock.elapsed())
        if state.clock.afford is not None:
            self._budget.record(state.clock.afford)
        for facts, name, histogram in (("gate", "kept", self._kept), ("budget", "sent", self._sent)):
            count = _facts(state, facts).get(name)
            if isinstance(count, int):
                histogram.record(count)
        asks = answer.get("asks")
        for ask in asks if isinstance(asks, list) else []:
            if isinstance(ask, dict):
                seconds, predicted = ask.get("seconds"), ask.get("predicted")
                if isinstance(seconds, float) and isinstance(predicted, int | float):
                    self._asks.add(1, {"covered": seconds <= predicted})


def export_metrics(provider: MeterProvider | None = None) -> None:
    """Record every query that is answered in this process from now on, once for each call of this.

    Args:
        provider: the application's meter provider; by default the one that is set globally.

    Raises:
        MissingExtra: the OpenTelemetry API is not installed.
    """
    add_listener(Metrics(provider).record)


def _facts(state: QueryState, phase: str) -> dict[str, Fact]:
    decided = state.trace.last(phase)
    return {} if decided is None else dict(decided.facts)
