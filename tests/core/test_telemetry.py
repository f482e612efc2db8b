"""Queries as OpenTelemetry metrics, through the real API."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lara_plugins import LatencyGovernor, Passage, PerChunkLatency, QueryClock, QueryState, Reply, drive
from lara_plugins.phases import abstain, answer_loop, record_answer, run_budget
from lara_plugins.telemetry import Metrics

pytest.importorskip("opentelemetry.metrics", reason="needs lara-plugins[telemetry]")

from opentelemetry.metrics import MeterProvider, NoOpMeter

Recorded = list[tuple[str, float, Mapping[str, object]]]


class Provider(MeterProvider):
    """The smallest provider: it keeps what is recorded."""

    def __init__(self) -> None:
        self.recorded: Recorded = []

    def get_meter(self, name: str, *more: object, **settings: object) -> NoOpMeter:
        recorded = self.recorded

        class Instrument:
            def __init__(self, name: str, *more: object) -> None:
                self.name = name

            def record(self, amount: float, attributes: Mapping[str, object] | None = None) -> None:
                recorded.append((self.name, amount, attributes or {}))

            add = record

        class Meter(NoOpMeter):
            create_histogram = staticmethod(Instrument)  # type: ignore[assignment]
            create_counter = staticmethod(Instrument)  # type: ignore[assignment]

        return Meter(name)


def test_a_query_is_recorded() -> None:
    provider = Provider()
    now = 100.0
    state = QueryState(clock=QueryClock(4.0, now=lambda: now))
    state.trace.record("gate", "as the test wants it", 0.1, kept=9)
    passages = [Passage(f"p{n}", "Fact is here.") for n in range(9)]
    sent = passages[: run_budget(state, passages, LatencyGovernor(PerChunkLatency(0.6))).sent]
    loop = answer_loop(state, "Which facts are here?", sent, PerChunkLatency(0.6))
    record_answer(state, drive(loop, lambda ask: Reply("{}", 3.0, seconds=5.0)))
    Metrics(provider).record(state)
    assert ("lara.budget", 4.0, {}) in provider.recorded
    assert ("lara.passages.kept", 9, {}) in provider.recorded
    assert ("lara.passages.sent", 6, {}) in provider.recorded
    assert ("lara.asks", 1, {"covered": False}) in provider.recorded
    assert ("lara.queries", 1, {"outcome": "unparsable", "stopped": False}) in provider.recorded


def test_an_abstention_is_recorded() -> None:
    provider = Provider()
    state = QueryState()
    record_answer(state, abstain(state))
    Metrics(provider).record(state)
    assert ("lara.queries", 1, {"outcome": "no_passages", "stopped": False}) in provider.recorded
    assert {name for name, *_ in provider.recorded} == {"lara.queries", "lara.query"}


def test_every_answered_query_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from lara_plugins import export_metrics, query

    monkeypatch.setattr(query, "_listeners", [])
    provider = Provider()
    export_metrics(provider)
    state = QueryState()
    record_answer(state, abstain(state))
    assert ("lara.queries", 1, {"outcome": "no_passages", "stopped": False}) in provider.recorded
