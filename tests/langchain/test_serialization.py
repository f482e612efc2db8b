"""What is saved, copied, configured or sent to another process does the same work afterwards."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd, dumps, load
from langchain_core.runnables import ConfigurableField, RunnablePassthrough
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_lara import LatencyBudget, ThresholdGate
from langchain_lara.compressor import QueryCompressor
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

OURS: dict[str, Any] = {
    "valid_namespaces": ["langchain_lara"],
    "allowed_objects": [ThresholdGate, LatencyBudget],
}

SMALL = 20_000
"""Bytes that a pickle without weights stays below."""

WAYS: dict[str, Callable[[QueryCompressor], QueryCompressor]] = {
    "langchain": lambda part: load(dumpd(part), **OURS),
    "pickle": lambda part: pickle.loads(pickle.dumps(part)),  # noqa: S301 - our own bytes
    "deepcopy": copy.deepcopy,
    "model_copy": lambda part: part.model_copy(),
}


class Learning(LatencyModel):
    """A model of the user's own that learns."""

    def __init__(self) -> None:
        self.asked = 0

    def predict(self, calls: Sequence[Call]) -> float:
        self.asked += 1
        return 1.0 * len(calls)


def longest_first(query: str, texts: Sequence[str]) -> list[float]:
    return [len(text) / 1000 for text in texts]


PARTS: list[QueryCompressor] = [
    ThresholdGate(scorer="embedded", theta=0.5, max_k=2, on_empty="keep_best", afford=60.0),
    ThresholdGate(scorer="embedded", theta=CALIBRATION, name="mine"),
    ThresholdGate(scorer="embedded", theta=0.0),
    LatencyBudget(afford=7.0, latency=0.25, on_exhausted="send_best", calls="in_threes"),
    LatencyBudget(),
]


def kept(part: QueryCompressor, documents: list[Document]) -> list[Document]:
    return part.invoke({"input": LOOKUP, "context": documents})


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_copying_keeps_the_fields_and_the_work(way: str, documents: list[Document]) -> None:
    for part in PARTS:
        again = WAYS[way](part)
        assert again == part
        assert type(again) is type(part)
        assert kept(again, documents) == kept(part, documents)


@pytest.mark.parametrize("way", WAYS)
def test_a_scorer_object_with_a_name_is_made_again(way: str, documents: list[Document]) -> None:
    gate = ThresholdGate(scorer=load_scorer("embedded"))
    assert kept(WAYS[way](gate), documents) == kept(gate, documents)
    budget = LatencyBudget(afford=600.0, latency=PerChunkLatency(200.0))
    # Two passages of 200 s fit what is left of 600 s, a third one does not.
    assert len(kept(WAYS[way](budget), documents)) == 2


def test_no_weights_in_the_pickle(documents: list[Document]) -> None:
    gate = ThresholdGate(scorer=load_scorer("embedded"))
    gate.load()
    kept(gate, documents)
    assert len(pickle.dumps(gate)) < SMALL


def test_what_is_saved_is_plain() -> None:
    assert dumpd(ThresholdGate(scorer="embedded", theta=CALIBRATION)) == {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_lara", "gate", "ThresholdGate"],
        "kwargs": {"scorer": "embedded", "theta": CALIBRATION.model_dump()},
        "name": "ThresholdGate",
    }
    assert dumpd(LatencyBudget(latency=PerChunkLatency(0.5))) == {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_lara", "budget", "LatencyBudget"],
        "kwargs": {"afford": 4.0, "latency": 0.5, "on_exhausted": "abstain", "calls": "auto"},
        "name": "LatencyBudget",
    }


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (ThresholdGate(scorer=CallableScorer(longest_first, "probability")), "CallableScorer"),
        (LatencyBudget(latency=Learning()), "Learning"),
    ],
)
def test_what_has_no_name_is_not_saved_and_works_all_the_same(
    part: QueryCompressor, named: str, documents: list[Document]
) -> None:
    with pytest.raises(NotSerializable, match=rf"{named} has no name and cannot be saved: give the \w+"):
        dumps(part)
    # A tracer that looks at every run asks nobody to be saved.
    query = RunnablePassthrough.assign(context=part)
    query.invoke({"input": LOOKUP, "context": documents}, {"callbacks": [RunCollectorCallbackHandler()]})
    assert query.get_graph().to_json()


def test_what_has_no_name_is_pickled_where_python_can(documents: list[Document]) -> None:
    gate = ThresholdGate(scorer=CallableScorer(longest_first, "probability"), theta=0.07)
    assert kept(pickle.loads(pickle.dumps(gate)), documents) == kept(gate, documents)  # noqa: S301 - ours


def test_a_calibration_is_refused_by_another_scorer(documents: list[Document]) -> None:
    other = CallableScorer(longest_first, "probability")
    with pytest.raises(CalibrationMismatch, match="calibrate with this scorer"):
        ThresholdGate(scorer=other, theta=CALIBRATION)
    changed = ThresholdGate(scorer="embedded", theta=CALIBRATION).model_copy(update={"scorer": other})
    with pytest.raises(CalibrationMismatch, match="calibrate with this scorer"):
        kept(changed, documents)
    with pytest.raises(InvalidArgument, match=r"theta=.* or a Calibration"):
        ThresholdGate(scorer="embedded", theta={"theta": 0.5})


def test_configured_copies_follow_their_fields(documents: list[Document]) -> None:
    given = {"input": LOOKUP, "context": documents}
    gate = ThresholdGate(scorer="embedded").configurable_fields(
        theta=ConfigurableField(id="theta"), max_k=ConfigurableField(id="max_k")
    )
    whole = len(gate.invoke(given))
    assert len(gate.with_config(configurable={"theta": 0.0}).invoke(given)) == len(documents)
    assert len(gate.with_config(configurable={"max_k": 1}).invoke(given)) == 1
    assert len(gate.invoke(given)) == whole
    with pytest.raises(InvalidArgument, match=r"^theta=2: "):
        gate.with_config(configurable={"theta": 2}).invoke(given)


async def test_configured_copies_and_batches_share_what_a_latency_model_learns(
    documents: list[Document],
) -> None:
    learning = Learning()
    budget = LatencyBudget(latency=learning).configurable_fields(afford=ConfigurableField(id="afford"))
    given = {"input": LOOKUP, "context": documents}
    counts = [learning.asked]
    budget.with_config(configurable={"afford": 60.0}).invoke(given)
    counts.append(learning.asked)
    budget.batch([given, given])
    counts.append(learning.asked)
    await budget.ainvoke(given)
    counts.append(learning.asked)
    assert counts == sorted(set(counts)), "every call has reached the one model"
