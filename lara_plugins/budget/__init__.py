"""The latency budget: what the time left can pay for."""

from lara_plugins.budget.governor import LatencyGovernor, OnExhausted, SendPlan
from lara_plugins.budget.latency import IN_THREES, ONE_CALL, Call, Calls, LatencyModel, PerChunkLatency
from lara_plugins.budget.tokens import TokenCounter, conservative_tokens

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
    "TokenCounter",
    "conservative_tokens",
]
