"""The answer: route the question, tell what time there is to ask, record what answering came to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lara_plugins.answering import (
    NO_ANSWER,
    Answer,
    AskRecord,
    Emit,
    Loop,
    SecondsFor,
    abstention_text,
    no_time,
)
from lara_plugins.budget import Call, LatencyModel, PerChunkLatency, TokenCounter, conservative_tokens
from lara_plugins.passages import Passage
from lara_plugins.query import QueryState, tell_listeners
from lara_plugins.question import (
    DEFAULT_LIMITS,
    Limits,
    QuestionParser,
    QuestionShape,
    Route,
    default_parser,
    route,
)
from lara_plugins.trace import finite


def run_route(
    state: QueryState,
    question: str,
    passages: Sequence[Passage],
    parser: QuestionParser | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[QuestionShape, Route]:
    """Choose how the question is answered over the passages that are sent.

    Args:
        state: the query's state.
        question: the user's question.
        passages: the Send_List.
        parser: reads the question's shape; by default that of the package's lexicons.
        limits: the routing table.

    Raises:
        InvalidArgument: the question is empty.
    """
    began = state.clock.now()
    shape = (parser or default_parser()).parse(question)
    scored = [state.scores.get(passage.id) for passage in passages]
    # A part after the gate may have added passages; how close scores lie can then not be told.
    scores = [score for score in scored if score is not None] if None not in scored else []
    tokens = [conservative_tokens(passage.content) for passage in passages]
    chosen = route(shape, scores, tokens, limits)
    state.trace.record(
        "route",
        chosen.reason,
        state.clock.now() - began,
        regime=chosen.regime,
        rule=chosen.rule,
        answer_shape=shape.answer_shape,
        decomposition=shape.decomposition,
        language=shape.language,
        parsed_by=shape.rule,
        max_calls=chosen.max_calls,
        max_tokens=chosen.max_tokens,
    )
    return shape, chosen


def latency_of(state: QueryState, latency: LatencyModel | None) -> LatencyModel:
    """The model that is given, or that of the query's budget, or 0.1 s a passage."""
    return latency or state.latency or PerChunkLatency()


def asking_time(
    state: QueryState,
    passages: Sequence[Passage],
    latency: LatencyModel | None = None,
    count_tokens: TokenCounter = conservative_tokens,
) -> tuple[float, SecondsFor]:
    """The time left for asking over some passages, and the prediction for one ask.

    A passage that is sent over budget is exempt from both: its ask is made and not cancelled.
    """
    if any(passage.id in state.over_budget for passage in passages):
        return math.inf, no_time

    model = latency_of(state, latency)

    def seconds_for(shown: Sequence[Passage]) -> float:
        tokens = sum(count_tokens(passage.content) for passage in shown)
        return model.predict([Call(len(shown), tokens)])

    return state.clock.time_left(), seconds_for


def record_answer(state: QueryState, answer: Answer) -> None:
    """Write what answering came to, and the typed answer, into the trace."""
    usage = answer.usage
    state.trace.answer = answer.evidence.model_dump(mode="json")
    state.trace.record(
        "answer",
        f"{answer.calls} calls, {answer.outcome}",
        _in_sequence(answer.trace, lambda record: record.seconds),
        predicted=_in_sequence(answer.trace, lambda record: record.predicted),
        outcome=answer.outcome,
        calls=answer.calls,
        repairs=answer.repairs,
        replayed=answer.replayed,
        escalated=answer.escalated,
        answer_found=answer.evidence.answer_found,
        complete_answer_found=answer.evidence.complete_answer_found,
        confidence=answer.evidence.confidence,
        caveats=list(answer.evidence.caveats),
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        asks=[
            {
                "passages": list(record.numbers),
                "brought": record.brought,
                "predicted": record.predicted,
                "seconds": record.seconds,
                "time_left": finite(record.time_left),
            }
            for record in answer.trace
        ],
        citations={
            str(number): [
                {"passage_id": span.passage_id, "start": span.start, "end": span.end, "quote": span.quote}
                for span in spans
            ]
            for number, spans in answer.citations.items()
        },
    )
    for note in answer.notes:
        state.trace.note(note)
    tell_listeners(state)


def _in_sequence(records: Sequence[AskRecord], seconds: Callable[[AskRecord], float]) -> float:
    """The seconds of all asks; of those made at once the longest counts."""
    total = longest = 0.0
    for record in records:
        if not record.beside:
            total += longest
            longest = 0.0
        longest = max(longest, seconds(record))
    return total + longest


def abstain(state: QueryState, sources: int | None = None) -> Answer:
    """The answer where no passage is left: no ask, and the reason.

    Args:
        state: the query's state.
        sources: how many of the best passages are shown as sources; None for all of them.
    """
    reason = state.empty_reason or _nothing_left(state)
    shown = len(state.best) if sources is None else sources
    return Answer(NO_ANSWER, calls=0, repairs=0, outcome="no_passages", text=abstention_text(reason, shown))


def abstention(state: QueryState, sources: int | None = None) -> Loop:
    """The loop that asks nothing, for a driver; as ``abstain``."""
    answered = abstain(state, sources)
    yield Emit(answered.text)
    return answered


def _nothing_left(state: QueryState) -> str:
    """Why no passage is left where no phase of LARA says so: another part took them."""
    gate, retrieval = state.trace.last("gate"), state.trace.last("retrieval")
    if gate is not None and gate.facts["kept"]:
        return f"the gate kept {gate.facts['kept']} passages and none was left after it"
    if retrieval is not None and retrieval.facts["found"]:
        return f"{retrieval.facts['found']} passages were retrieved and none was left to answer from"
    return "no passage came to the answer"
