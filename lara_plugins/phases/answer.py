"""The answer: route the question, make the loop that answers it, record what it came to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lara_plugins.answering import (
    NO_ANSWER,
    Answer,
    Fits,
    Loop,
    SecondsFor,
    abstention_text,
    always_fits,
    answer_in_one_call,
    answer_sequentially,
    no_time,
    refine_in_threes,
)
from lara_plugins.budget import Call, LatencyModel, PerChunkLatency, TokenCounter, conservative_tokens
from lara_plugins.passages import Passage
from lara_plugins.query import QueryState
from lara_plugins.question import SINGLE_VALUES, QuestionShape, Route, parse_question, route
from lara_plugins.trace import finite


def run_route(state: QueryState, question: str, passages: Sequence[Passage]) -> tuple[QuestionShape, Route]:
    """Choose how the question is answered over the passages that are sent.

    Raises:
        InvalidArgument: the question is empty.
    """
    began = state.clock.now()
    shape = parse_question(question)
    scored = [state.scores.get(passage.id) for passage in passages]
    # A part after the gate may have added passages; how close scores lie can then not be told.
    scores = [score for score in scored if score is not None] if None not in scored else []
    tokens = [conservative_tokens(passage.content) for passage in passages]
    chosen = route(shape, scores, tokens)
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
    )
    return shape, chosen


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

    model = latency or state.latency or PerChunkLatency()

    def seconds_for(shown: Sequence[Passage]) -> float:
        tokens = sum(count_tokens(passage.content) for passage in shown)
        return model.predict([Call(len(shown), tokens)])

    return state.clock.time_left(), seconds_for


def answer_loop(
    state: QueryState,
    question: str,
    passages: Sequence[Passage],
    latency: LatencyModel | None = None,
    fits: Fits = always_fits,
) -> Loop:
    """Route the question over the passages that are sent: the loop that answers it.

    Args:
        state: the query's state with its deadline.
        question: the user's question.
        passages: the Send_List.
        latency: predicts the seconds of an ask; by default the budget's model, or 0.1 s a passage.
        fits: whether passages fit one prompt.

    Raises:
        InvalidArgument: the question is empty.
    """
    shape, chosen = run_route(state, question, passages)
    time_left, seconds_for = asking_time(state, passages, latency)
    if chosen.regime == "sequential":
        return answer_sequentially(question, passages, time_left, seconds_for, fits=fits)
    if chosen.regime == "batch":
        return answer_in_one_call(question, passages, time_left, seconds_for, fits=fits)
    single = shape.answer_shape in SINGLE_VALUES and shape.decomposition == "single"
    return refine_in_threes(question, passages, time_left, seconds_for, stop_when_complete=single, fits=fits)


def record_answer(state: QueryState, answer: Answer) -> None:
    """Write what answering came to into the trace."""
    usage = answer.usage
    state.trace.record(
        "answer",
        f"{answer.calls} calls, {answer.outcome}",
        sum(record.seconds for record in answer.trace),
        outcome=answer.outcome,
        calls=answer.calls,
        repairs=answer.repairs,
        replayed=answer.replayed,
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


def abstain(state: QueryState) -> Answer:
    """The answer where no passage is left: no ask, the reason, and the best passages as sources."""
    reason = state.empty_reason or _nothing_left(state)
    return Answer(
        NO_ANSWER, calls=0, repairs=0, outcome="no_passages", text=abstention_text(reason, len(state.best))
    )


def _nothing_left(state: QueryState) -> str:
    """Why no passage is left where no phase of LARA says so: another part took them."""
    gate, retrieval = state.trace.last("gate"), state.trace.last("retrieval")
    if gate is not None and gate.facts["kept"]:
        return f"the gate kept {gate.facts['kept']} passages and none was left after it"
    if retrieval is not None and retrieval.facts["found"]:
        return f"{retrieval.facts['found']} passages were retrieved and none was left to answer from"
    return "no passage came to the answer"
