"""The same question through both frameworks, over the same index: the same decisions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import langchain_lara
import llama_index_lara
import pytest
from support_traces import lara

from lara_plugins import EmbeddedIndex
from lara_plugins.evaluation import DataSet, load_dataset

DATA = Path(os.environ.get("LARA_DATA", Path(__file__).parents[3] / "shared" / "data"))
QUESTIONS = 60
AFFORD = 6000.0
DURATIONS = {"seconds", "time_left", "predicted", "plan"}

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not (DATA / "nq").is_dir(), reason="the shared data sets are not here; set LARA_DATA"),
]


@pytest.fixture(scope="module")
def data() -> DataSet:
    return load_dataset(DATA / "nq")


@pytest.fixture(scope="module")
def index(data: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path_factory.mktemp("index")) as filled:
        filled.upsert(list(data.passages.values()))
        yield filled


def timeless(decided: Any) -> Any:  # noqa: ANN401 - any part of a trace
    """A trace without its durations."""
    if isinstance(decided, dict):
        return {key: timeless(value) for key, value in decided.items() if key not in DURATIONS}
    return [timeless(each) for each in decided] if isinstance(decided, list) else decided


def test_the_same_decisions_over_natural_questions(data: DataSet, index: EmbeddedIndex) -> None:
    engine = llama_index_lara.lara_query_engine(
        llama_index_lara.HybridRetriever(index, limit=50),
        llama_index_lara.ExtractiveLLM(),
        AFFORD,
        "embedded",
    )
    chain = langchain_lara.lara_chain(
        langchain_lara.HybridRetriever(index, limit=50),
        langchain_lara.ExtractiveChatModel(),
        AFFORD,
        "embedded",
    )
    regimes: Counter[str] = Counter()
    for question in data.questions[:QUESTIONS]:
        response = engine.query(question.text)
        answered = chain.invoke({"input": question.text})
        mine, yours = timeless(lara(response)), timeless(answered["lara"])
        # What each framework calls the start of a query is the only difference.
        assert (mine.pop("clock"), yours.pop("clock")) == ("query start", "chain start")
        assert mine == yours, question.text
        assert str(response) == answered["answer"]
        sent = [(node.node_id, node.score) for node in response.source_nodes]
        assert sent == [(each.id, each.metadata["relevance_score"]) for each in answered["context"]]
        for phase in mine["phases"]:
            regimes[phase.get("regime", phase["phase"])] += 1
    assert regimes["gate"] == regimes["budget"] == QUESTIONS
    assert regimes["sequential"] > 20
    assert regimes["batch"] > 0
