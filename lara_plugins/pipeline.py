"""The five phases, end to end, without a framework: retrieve, gate, budget, route, answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from lara_plugins.answering import Answer, LanguageModel, answer
from lara_plugins.budget import LatencyGovernor
from lara_plugins.gate import Scorer, ThresholdGate
from lara_plugins.passages import Passage
from lara_plugins.phases import (
    abstain,
    answer_loop,
    record_answer,
    run_budget,
    run_gate,
    run_retrieval,
)
from lara_plugins.query import QueryClock, QueryState
from lara_plugins.question import DEFAULT_LIMITS, Limits, QuestionParser
from lara_plugins.retrieval import HybridIndex, SearchSettings
from lara_plugins.trace import Trace


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answered question.

    Args:
        text: the answer as a person reads it, or why there is none.
        answer: the typed answer and how the loop ended.
        sources: the passages that were sent; ``[n]`` in the text cites ``sources[n - 1]``.
            Where none was sent, the best ones seen.
        trace: what was decided at each phase.
        seconds: what the whole query took.
    """

    text: str
    answer: Answer
    sources: tuple[Passage, ...]
    trace: Trace
    seconds: float


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Answers questions over a hybrid index.

    Args:
        index: where passages are found.
        scorer: the cross-encoder.
        model: answers the asks.
        gate: theta and its policies.
        governor: the latency model and its policy.
        afford: seconds that a query may take, or None for no deadline.
        limit: candidates that the gate sees; None takes the retrieval plan's pool.
        parser: reads the question's shape; by default that of the package's lexicons.
        limits: the routing table.
        escalate: a sequential answer that is exhausted goes once to one call over all passages,
            if they look as if they answer and the budget allows it.

    Raises:
        CalibrationMismatch: the gate's theta was calibrated for another scorer.
    """

    index: HybridIndex
    scorer: Scorer
    model: LanguageModel
    gate: ThresholdGate = field(default_factory=ThresholdGate)
    governor: LatencyGovernor = field(default_factory=LatencyGovernor)
    afford: float | None = None
    limit: int | None = None
    parser: QuestionParser | None = None
    limits: Limits = DEFAULT_LIMITS
    escalate: bool = False

    def __post_init__(self) -> None:
        self.gate.check(self.scorer)

    def ask(self, question: str) -> Outcome:
        """Answer one question.

        Raises:
            InvalidArgument: the question is empty, or ``afford`` is not positive.
            LaraError: a policy was told to raise.
        """
        state = QueryState(clock=QueryClock(self.afford), latency=self.governor.latency)
        found = run_retrieval(state, question, self.index, SearchSettings(limit=self.limit))
        candidates = [match.passage for match in found]
        decision = run_gate(state, question, candidates, self.scorer, self.gate).decision
        kept = [candidates[i] for i in decision.kept]
        sent = kept[: run_budget(state, kept, self.governor).sent]
        if not sent:
            return self._outcome(state, abstain(state), state.best)
        loop = answer_loop(
            state, question, sent, parser=self.parser, limits=self.limits, escalate=self.escalate
        )
        return self._outcome(state, answer(loop, self.model, state.clock), tuple(sent))

    def _outcome(self, state: QueryState, answered: Answer, sources: tuple[Passage, ...]) -> Outcome:
        record_answer(state, answered)
        return Outcome(answered.text, answered, sources, state.trace, state.clock.elapsed())
