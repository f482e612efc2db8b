"""A step that answers does the same after it was saved, copied or sent to another process."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd, load
from langchain_core.prompts import ChatPromptTemplate, HumanMessagePromptTemplate, PromptTemplate
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_lara import (
    ExtractiveChatModel,
    LatencyBudget,
    QuestionShapeRouter,
    RefineInThrees,
    ThresholdGate,
)
from langchain_lara.chain import LaraChain
from langchain_parts import Decisions
from towers import LOOKUP

from lara_plugins import InvalidArgument, LatencyModel, Limits, NotSerializable, QuestionParser
from lara_plugins.question import Rule, load_lexicon

ALLOWED: list[Any] = [
    ChatPromptTemplate,
    ExtractiveChatModel,
    HumanMessagePromptTemplate,
    LaraChain,
    LatencyBudget,
    PromptTemplate,
    QuestionShapeRouter,
    RefineInThrees,
    ThresholdGate,
]

WAYS: dict[str, Any] = {
    "json": lambda part: load(
        json.loads(json.dumps(dumpd(part))), allowed_objects=ALLOWED, valid_namespaces=["langchain_lara"]
    ),
    "pickle": lambda part: pickle.loads(pickle.dumps(part)),  # noqa: S301 - our own bytes
    "deepcopy": copy.deepcopy,
    "model_copy": lambda part: part.model_copy(),
}


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_copying_keeps_what_a_step_does(way: str, documents: list[Document]) -> None:
    mine = ChatPromptTemplate.from_messages([("human", "{context}\n\nMine: {input}")])
    for part in (
        RefineInThrees(ExtractiveChatModel(), 2, stop_when_complete=True, latency=0.2, prompt=mine),
        QuestionShapeRouter(
            ExtractiveChatModel(),
            context_window=9000,
            limits=Limits(one_passage=frozenset({"date"}), tight_share=0.1, sequential_calls=2),
            escalate=True,
            name="mine",
        ),
        ExtractiveChatModel(),
    ):
        again = WAYS[way](part)
        assert type(again) is type(part)
        assert dumpd(again) == dumpd(part)
        if not isinstance(part, ExtractiveChatModel):
            given: Any = {"input": LOOKUP, "context": documents}
            assert again.invoke(given) == part.invoke(given)


def test_what_cannot_be_saved_is_refused() -> None:
    class Slow(LatencyModel):
        """A model of the user's own."""

        def predict(self, calls: object) -> float:
            return 1.0

    with pytest.raises(NotSerializable, match="Slow has no name and cannot be saved"):
        dumpd(RefineInThrees(ExtractiveChatModel(), latency=Slow()))
    with pytest.raises(NotSerializable, match="a parser of one's own has no name and cannot be saved"):
        dumpd(QuestionShapeRouter(ExtractiveChatModel(), parser=QuestionParser()))


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "model_copy"])
def test_a_parser_of_ones_own_is_copied_and_not_saved(way: str, documents: list[Document]) -> None:
    lists = Rule("all-are-lists", "{word}", answer_shape="list")
    router = QuestionShapeRouter(
        ExtractiveChatModel(), parser=QuestionParser([load_lexicon("en").with_rules(lists)])
    )
    decisions = Decisions()
    collector = RunCollectorCallbackHandler()
    WAYS[way](router).invoke(
        {"input": LOOKUP, "context": documents[:3]}, {"callbacks": [decisions, collector]}
    )
    assert decisions.facts("route")["parsed_by"] == "all-are-lists"


@pytest.mark.parametrize("bad", [{}, {"one_passage": ["date"], "calls": 2}, {"one_passage": None}, 3])
def test_limits_that_are_none_are_refused(bad: Any) -> None:  # noqa: ANN401 - whatever a user gives
    with pytest.raises(InvalidArgument, match="give Limits"):
        QuestionShapeRouter(ExtractiveChatModel(), limits=bad)
