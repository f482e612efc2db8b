"""The loop that answers, chosen by the route and by what the time left pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lara_plugins.answering import (
    Answer,
    Ask,
    AskMany,
    Emit,
    Fits,
    Loop,
    Returned,
    always_fits,
    answer_in_one_call,
    answer_sequentially,
    read_at_once,
    refine_in_threes,
)
from lara_plugins.budget import (
    PASSAGE_BY_PASSAGE,
    WINDOW_BY_WINDOW,
    Call,
    JointPlan,
    LatencyGovernor,
    LatencyModel,
    Reading,
    TokenCounter,
    conservative_tokens,
    plan_jointly,
)
from lara_plugins.passages import Passage
from lara_plugins.phases.answer import asking_time, latency_of, run_route
from lara_plugins.query import QueryState
from lara_plugins.question import DEFAULT_LIMITS, Limits, QuestionParser, Route
from lara_plugins.trace import finite


def answer_loop(
    state: QueryState,
    question: str,
    passages: Sequence[Passage],
    latency: LatencyModel | None = None,
    fits: Fits = always_fits,
    at_once: int = 1,
    *,
    parser: QuestionParser | None = None,
    limits: Limits = DEFAULT_LIMITS,
    escalate: bool = False,
) -> Loop:
    """Route the question over the passages that are sent: the loop that answers it.

    The route prefers a way of reading them; where the time left does not pay for all of them in
    that way and another that the route allows reads more, the other is taken.

    Args:
        state: the query's state with its deadline.
        question: the user's question.
        passages: the Send_List.
        latency: predicts the seconds of an ask; by default the budget's model, or 0.1 s a passage.
        fits: whether passages fit one prompt.
        at_once: calls that the LLM takes at once; 1 reads no windows at once.
        parser: reads the question's shape; by default that of the package's lexicons.
        limits: the routing table.
        escalate: a sequential answer that is exhausted over passages which look as if they
            answer goes once to one call, if they fit one and the budget allows it.

    Raises:
        InvalidArgument: the question is empty.
    """
    shape, chosen = run_route(state, question, passages, parser, limits)
    time_left, seconds_for = asking_time(state, passages, latency)
    readings = _readings(chosen, at_once, limits)
    plan = run_plan(state, passages, time_left, readings, latency)
    if plan.reading != readings[0] and plan.send.sent < len(passages):
        state.trace.note(f"{plan.send.sent} of {len(passages)} passages are read: {plan.reason}")
        passages = passages[: plan.send.sent]
    single = shape.answer_shape in limits.one_passage and shape.decomposition == "single"
    match plan.reading.way:
        case "one_by_one":
            tokens = sum(conservative_tokens(passage.content) for passage in passages)
            holds = limits.one_call_holds(len(passages), tokens)
            loop = answer_sequentially(
                question,
                passages,
                time_left,
                seconds_for,
                chosen.max_calls,
                fits,
                max_tokens=chosen.max_tokens,
                escalate=escalate and holds and _looks_answerable(state),
            )
        case "one_call":
            loop = answer_in_one_call(question, passages, time_left, seconds_for, fits=fits)
        case "at_once":
            loop = read_at_once(question, passages, time_left, seconds_for, at_once, fits=fits)
        case "in_threes":
            loop = refine_in_threes(
                question, passages, time_left, seconds_for, stop_when_complete=single, fits=fits
            )
    return with_caps(loop, state, latency)


def refine_loop(
    state: QueryState,
    question: str,
    passages: Sequence[Passage],
    latency: LatencyModel | None = None,
    fits: Fits = always_fits,
    window: int = 3,
    stop_when_complete: bool = False,
    at_once: int = 1,
) -> Loop:
    """Windows of the passages that are sent, one after the other; at once where only that fits.

    Args:
        state: the query's state with its deadline.
        question: the user's question.
        passages: the Send_List.
        latency: predicts the seconds of an ask; by default the budget's model, or 0.1 s a passage.
        fits: whether passages fit one prompt.
        window: passages in a window.
        stop_when_complete: end at the first answer that the LLM calls complete.
        at_once: calls that the LLM takes at once; 1 reads no windows at once.
    """
    time_left, seconds_for = asking_time(state, passages, latency)
    if at_once > 1:
        readings = WINDOW_BY_WINDOW, Reading("at_once", at_once=at_once)
        if run_plan(state, passages, time_left, readings, latency).reading.way == "at_once":
            loop = read_at_once(question, passages, time_left, seconds_for, at_once, window, fits)
            return with_caps(loop, state, latency)
    loop = refine_in_threes(question, passages, time_left, seconds_for, window, stop_when_complete, fits)
    return with_caps(loop, state, latency)


def run_plan(
    state: QueryState,
    passages: Sequence[Passage],
    time_left: float,
    readings: Sequence[Reading],
    latency: LatencyModel | None = None,
) -> JointPlan:
    """Plan anew how the passages are read, with the time that is left now; the route's trace tells it."""
    governor = LatencyGovernor(latency_of(state, latency))
    tokens = [conservative_tokens(passage.content) for passage in passages]
    plan = plan_jointly(governor, tokens, time_left, readings)
    state.trace.amend(
        "route",
        plan=plan.reason,
        way=plan.reading.way,
        calls=len(plan.send.calls),
        reads=plan.send.sent,
        predicted=plan.send.predicted,
        time_left=finite(time_left),
        output_cap=plan.output_cap,
    )
    return plan


def with_caps(
    loop: Loop,
    state: QueryState,
    latency: LatencyModel | None = None,
    count_tokens: TokenCounter = conservative_tokens,
) -> Loop:
    """The loop, each of its asks with the cap on output tokens that the time left then is worth."""
    model = latency_of(state, latency)

    def capped(ask: Ask) -> Ask:
        tokens = sum(count_tokens(item.passage.content) for item in ask.passages)
        return replace(ask, max_output_tokens=model.output_cap(Call(len(ask.passages), tokens), ask.timeout))

    returned: Returned = None
    while True:
        try:
            wanted = loop.send(returned)
        except StopIteration as finished:
            answered: Answer = finished.value
            return answered
        match wanted:
            case Ask():
                returned = yield capped(wanted)
            case AskMany():
                returned = yield AskMany(tuple(capped(ask) for ask in wanted.asks))
            case Emit():
                returned = yield wanted


def _readings(chosen: Route, at_once: int, limits: Limits) -> tuple[Reading, ...]:
    """The ways that a route allows, the preferred one first; passage by passage is never at once."""
    most = min(limits.tokens_per_call, chosen.max_tokens or limits.tokens_per_call)
    in_one_call = Reading("one_call", limits.passages_per_call, most)
    match chosen.regime:
        case "sequential":
            return PASSAGE_BY_PASSAGE, in_one_call
        case "batch":
            return (Reading("one_call"),)
        case "refine":
            parallel = (Reading("at_once", at_once=at_once),) if at_once > 1 else ()
            return WINDOW_BY_WINDOW, *parallel, in_one_call


def _looks_answerable(state: QueryState) -> bool:
    """Whether the passages look as if they answer: the gate kept them, and not for want of better."""
    gate = state.trace.last("gate")
    return gate is None or not gate.facts["kept_below_theta"]
