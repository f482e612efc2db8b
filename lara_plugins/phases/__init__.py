"""Each phase, run on one query: decide, and write the decision into the query's state.

The decisions are the pure functions of the phase folders; this is the one place where they meet
the clock and the trace, so that every framework writes the same trace.
"""

from lara_plugins.phases.answer import abstain, answer_loop, asking_time, record_answer, run_route
from lara_plugins.phases.budget import run_budget
from lara_plugins.phases.gate import BEST_SHOWN, Gated, run_gate
from lara_plugins.phases.retrieval import arun_retrieval, run_retrieval

__all__ = [
    "BEST_SHOWN",
    "Gated",
    "abstain",
    "answer_loop",
    "arun_retrieval",
    "asking_time",
    "record_answer",
    "run_budget",
    "run_gate",
    "run_retrieval",
    "run_route",
]
