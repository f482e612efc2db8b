"""The latency budget: what the time left can pay for."""

from lara_plugins.budget.governor import LatencyGovernor, OnExhausted, SendPlan
from lara_plugins.budget.latency import IN_THREES, ONE_CALL, Call, Calls, LatencyModel, PerChunkLatency

__all__ = [
    "IN_THREES",
    "ONE_CALL",
    "Call",
    "Calls",
    "LatencyGovernor",
    "LatencyModel",
    "OnExhausted",
    "PerChunkLatency",
    "SendPlan",
]
