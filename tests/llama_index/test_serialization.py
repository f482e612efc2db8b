"""What is saved, copied or sent to another process does the same work afterwards."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import BaseComponent, NodeWithScore, TextNode
from llama_index_lara import (
    ExtractiveLLM,
    HybridRetriever,
    LatencyBudget,
    QuestionShapeQueryEngine,
    RefineInThrees,
    ThresholdGate,
)
from towers import LOOKUP

from lara_plugins import (
    Calibration,
    CalibrationMismatch,
    Call,
    CallableScorer,
    InvalidArgument,
    LatencyModel,
    NotSerializable,
    PerChunkLatency,
    load_scorer,
)

CALIBRATION = Calibration(
    theta=0.5,
    tier="labelled",
    fingerprint=load_scorer("embedded").fingerprint,
    n=40,
    recall=0.95,
    kept=0.975,
    unrelated=400,
    unrelated_kept=0.0,
    source="a test",
)

SMALL = 20_000
"""Bytes that a pickle without weights stays below."""

WAYS: dict[str, Callable[[BaseComponent], BaseComponent]] = {
    "dict": lambda part: type(part).from_dict(part.to_dict()),
    "json": lambda part: type(part).from_json(part.to_json()),
    "pickle": lambda part: pickle.loads(pickle.dumps(part)),  # noqa: S301 - our own bytes
    "deepcopy": copy.deepcopy,
    "model_copy": lambda part: part.model_copy(),
}


def longest_first(query: str, texts: Sequence[str]) -> list[float]:
    return [len(text) / 1000 for text in texts]


class Slow(LatencyModel):
    """A model of the user's own."""

    def predict(self, calls: Sequence[Call]) -> float:
        return 1.0 * len(calls)


def components() -> list[BaseComponent]:
    return [
        ThresholdGate(scorer="embedded", theta=0.5, max_k=2, on_empty="keep_best", afford=60.0),
        ThresholdGate(scorer=load_scorer("embedded")),
        ThresholdGate(scorer="embedded", theta=CALIBRATION),
        LatencyBudget(afford=7.0, latency=0.25, on_exhausted="send_best", calls="in_threes"),
        LatencyBudget(latency=PerChunkLatency(0.5)),
        ExtractiveLLM(),
    ]


def public(part: BaseComponent) -> dict[str, object]:
    return {
        name: value
        for name, value in part.model_dump().items()
        if name not in {"callback_manager", "messages_to_prompt", "completion_to_prompt"}
    }


def kept(gate: BaseNodePostprocessor, nodes: Sequence[TextNode]) -> list[tuple[str, float | None]]:
    given = [NodeWithScore(node=node) for node in nodes]
    return [(node.node_id, node.score) for node in gate.postprocess_nodes(given, query_str=LOOKUP)]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_copying_keeps_the_public_fields(way: str) -> None:
    for part in components():
        again = WAYS[way](part)
        assert type(again) is type(part)
        assert public(again) == public(part)


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_gate_keeps_the_same_nodes(way: str, nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer="embedded", theta=0.5, max_k=1)
    again = WAYS[way](gate)
    assert isinstance(again, ThresholdGate)
    assert kept(again, nodes) == kept(gate, nodes)
    assert [name for name, _ in kept(again, nodes)] == ["p0"]


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_calibration_is_the_same_calibration(way: str, nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer="embedded", theta=CALIBRATION)
    again = WAYS[way](gate)
    assert isinstance(again, ThresholdGate)
    assert again.theta == CALIBRATION
    assert kept(again, nodes) == kept(ThresholdGate(scorer="embedded", theta=0.5), nodes)


def test_a_calibration_is_saved_as_plain_values() -> None:
    saved = ThresholdGate(scorer="embedded", theta=CALIBRATION).to_dict()
    assert saved["theta"] == CALIBRATION.model_dump()
    with pytest.raises(InvalidArgument, match=r"theta=.* or a Calibration"):
        ThresholdGate.from_dict({**saved, "theta": {"theta": 0.5}})


def test_a_calibration_is_refused_by_another_scorer(nodes: list[TextNode]) -> None:
    def never(query: str, texts: Sequence[str]) -> list[float]:
        raise AssertionError("it must not score")

    other = CallableScorer(never, "probability")
    with pytest.raises(CalibrationMismatch, match="calibrate with this scorer"):
        ThresholdGate(scorer=other, theta=CALIBRATION)
    changed = ThresholdGate(scorer="embedded", theta=CALIBRATION).model_copy(update={"scorer": other})
    with pytest.raises(CalibrationMismatch, match="calibrate with this scorer"):
        kept(changed, nodes)


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_budget_sends_as_many(way: str, nodes: list[TextNode]) -> None:
    again = WAYS[way](LatencyBudget(afford=600.0, latency=200.0))
    assert isinstance(again, LatencyBudget)
    # Two passages of 200 s fit what is left of 600 s, a third one does not.
    assert [name for name, _ in kept(again, nodes)] == ["p0", "p1"]


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_llm_answers(way: str) -> None:
    again = WAYS[way](ExtractiveLLM())
    assert isinstance(again, ExtractiveLLM)
    prompt = (
        "Context information is below.\n---------------------\nThe Eiffel Tower is 330 metres tall.\n"
        f"---------------------\nGiven the context information, answer.\nQuery: {LOOKUP}\nAnswer: "
    )
    assert "330" in again.complete(prompt).text


def test_no_weights_in_the_pickle(nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer=load_scorer("embedded"))
    gate.load()
    kept(gate, nodes)
    assert len(pickle.dumps(gate)) < SMALL
    assert len(pickle.dumps(ExtractiveLLM(scorer=load_scorer("embedded")))) < SMALL


def test_a_scorer_object_is_saved_as_its_name() -> None:
    assert ThresholdGate(scorer=load_scorer("embedded")).to_dict()["scorer"] == "embedded"
    assert LatencyBudget(latency=PerChunkLatency(0.5)).to_dict()["latency"] == 0.5


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (ThresholdGate(scorer=CallableScorer(longest_first, "probability")), "CallableScorer"),
        (ExtractiveLLM(scorer=CallableScorer(longest_first, "probability")), "CallableScorer"),
        (LatencyBudget(latency=Slow()), "Slow"),
    ],
)
def test_what_has_no_name_is_not_saved(part: BaseComponent, named: str) -> None:
    for save in (part.to_dict, part.to_json):
        with pytest.raises(NotSerializable, match=rf"{named} has no name and cannot be saved: give the \w+"):
            save()


def test_what_has_no_name_is_pickled_where_python_can(nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer=CallableScorer(longest_first, "probability"), theta=0.07)
    again = pickle.loads(pickle.dumps(gate))  # noqa: S301 - our own bytes
    assert kept(again, nodes) == kept(gate, nodes)
    budget = pickle.loads(pickle.dumps(LatencyBudget(latency=Slow())))  # noqa: S301 - our own bytes
    assert isinstance(budget.latency, Slow)


def test_what_cannot_be_pickled_is_refused_and_stays_as_it_is(nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer=CallableScorer(lambda query, texts: [0.9] * len(texts), "probability"))
    with pytest.raises(NotSerializable, match=r"CallableScorer cannot be pickled .* give the name"):
        pickle.dumps(gate)
    assert len(kept(gate, nodes)) == len(nodes)

    class Local(Slow):
        """Pickle cannot find it."""

    with pytest.raises(NotSerializable, match=r"Local cannot be pickled .* give the seconds"):
        pickle.dumps(LatencyBudget(latency=Local()))
    llm = ExtractiveLLM(scorer=CallableScorer(lambda query, texts: [0.9] * len(texts), "probability"))
    with pytest.raises(NotSerializable, match=r"CallableScorer cannot be pickled .* give the name"):
        pickle.dumps(llm)


def test_a_changed_copy_follows_its_fields(nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer="embedded")
    assert len(kept(gate, nodes)) == 2
    assert len(kept(gate.model_copy(update={"max_k": 1}), nodes)) == 1
    gate.theta = 0.0
    assert len(kept(gate, nodes)) == len(nodes)
    budget = LatencyBudget(afford=600.0, latency=200.0)
    assert len(kept(budget.model_copy(update={"latency": 400.0}), nodes)) == 1


def test_a_callback_manager_may_be_set_and_is_not_saved() -> None:
    manager = CallbackManager([LlamaDebugHandler(print_trace_on_end=False)])
    for part in (ThresholdGate(scorer="embedded"), LatencyBudget()):
        part.callback_manager = manager
        assert part.callback_manager is manager
        assert "callback_manager" not in part.to_dict()
    assert ThresholdGate(scorer="embedded", callback_manager=manager).callback_manager is manager
    assert LatencyBudget(callback_manager=manager).callback_manager is manager
    assert ExtractiveLLM(callback_manager=manager).callback_manager is manager


def test_saved_names_stay() -> None:
    assert ThresholdGate.class_name() == "LaraThresholdGate"
    assert LatencyBudget.class_name() == "LaraLatencyBudget"
    assert ExtractiveLLM.class_name() == "LaraExtractiveLLM"
    assert ThresholdGate(scorer="embedded").to_dict() == {
        "scorer": "embedded",
        "theta": 0.3,
        "max_k": None,
        "on_empty": None,
        "afford": None,
        "class_name": "LaraThresholdGate",
    }
    assert LatencyBudget().to_dict() == {
        "afford": 4.0,
        "latency": None,
        "on_exhausted": "abstain",
        "calls": "auto",
        "class_name": "LaraLatencyBudget",
    }


@pytest.mark.parametrize(
    ("part", "base"),
    [
        (ThresholdGate, BaseNodePostprocessor),
        (LatencyBudget, BaseNodePostprocessor),
        (RefineInThrees, BaseSynthesizer),
        (QuestionShapeQueryEngine, BaseQueryEngine),
        (HybridRetriever, BaseRetriever),
        (ExtractiveLLM, LLM),
    ],
)
def test_each_part_is_what_the_framework_takes_it_for(part: type, base: type) -> None:
    assert base in part.__mro__
