"""Each phase, run on one query: decide, and write the decision into the query's state.

The decisions are the pure functions of the phase folders; this is the one place where they meet
the clock and the trace, so that every framework writes the same trace.
"""

from lara_plugins.phases.answer import abstain, abstention, asking_time, record_answer, run_route
from lara_plugins.phases.budget import run_budget
from lara_plugins.phases.gate import BEST_SHOWN, Gated, run_gate
from lara_plugins.phases.hyde import HypothesisWriter
from lara_plugins.phases.loops import answer_loop, refine_loop, run_plan, with_caps
from lara_plugins.phases.retrieval import arun_retrieval, run_retrieval
from lara_plugins.phases.tool import FilterFields, fault_of, shown_to_agent, tool_arguments

__all__ = [
    "BEST_SHOWN",
    "FilterFields",
    "Gated",
    "HypothesisWriter",
    "abstain",
    "abstention",
    "answer_loop",
    "arun_retrieval",
    "asking_time",
    "fault_of",
    "record_answer",
    "refine_loop",
    "run_budget",
    "run_gate",
    "run_plan",
    "run_retrieval",
    "run_route",
    "shown_to_agent",
    "tool_arguments",
    "with_caps",
]
