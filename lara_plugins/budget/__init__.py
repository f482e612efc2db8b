"""The latency budget: what the time left can pay for."""

from lara_plugins.budget.calibrated import CalibratedLatency
from lara_plugins.budget.governor import LatencyGovernor, OnExhausted, SendPlan
from lara_plugins.budget.latency import (
    CALL_PLANS,
    IN_THREES,
    ONE_BY_ONE,
    ONE_CALL,
    Call,
    CallPlan,
    Calls,
    LatencyModel,
    PerChunkLatency,
    latency_model,
    serializable_seconds,
)
from lara_plugins.budget.learned import Learned
from lara_plugins.budget.observations import Observation
from lara_plugins.budget.plan import (
    IN_ONE_CALL,
    PASSAGE_BY_PASSAGE,
    WINDOW_BY_WINDOW,
    JointPlan,
    Reading,
    Way,
    plan_jointly,
)
from lara_plugins.budget.tokens import TokenCounter, conservative_tokens
from lara_plugins.budget.watching import CallWatch, PromptReader, prompt_reader

__all__ = [
    "CALL_PLANS",
    "IN_ONE_CALL",
    "IN_THREES",
    "ONE_BY_ONE",
    "ONE_CALL",
    "PASSAGE_BY_PASSAGE",
    "WINDOW_BY_WINDOW",
    "CalibratedLatency",
    "Call",
    "CallPlan",
    "CallWatch",
    "Calls",
    "JointPlan",
    "LatencyGovernor",
    "LatencyModel",
    "Learned",
    "Observation",
    "OnExhausted",
    "PerChunkLatency",
    "PromptReader",
    "Reading",
    "SendPlan",
    "TokenCounter",
    "Way",
    "conservative_tokens",
    "latency_model",
    "plan_jointly",
    "prompt_reader",
    "serializable_seconds",
]
