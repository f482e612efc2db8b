"""The five phases over real text: SQLite's documentation, as the demo ships it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index_lara import ExtractiveLLM, HybridRetriever, lara_query_engine
from support_traces import facts

import lara_plugins.cli
from lara_plugins import EmbeddedIndex, ingest

PAGES = Path(lara_plugins.cli.__file__).parent / "demo_corpus" / "pages"
LOOKUP = "Which version of SQLite added support for STRICT tables?"
COMPARISON = "What is the difference between a stored and a virtual generated column?"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RetrieverQueryEngine]:
    with EmbeddedIndex(tmp_path_factory.mktemp("real") / "index") as index:
        ingest([PAGES], index)
        yield lara_query_engine(HybridRetriever(index), ExtractiveLLM(), afford=600.0, scorer="embedded")


def test_a_lookup_and_a_comparison_take_different_regimes_and_numbers_of_calls(
    engine: RetrieverQueryEngine,
) -> None:
    lookup, comparison = engine.query(LOOKUP), engine.query(COMPARISON)
    assert "3.37" in str(lookup)
    assert "STORED" in str(comparison)
    assert facts(lookup, "route")["regime"] == "sequential"
    assert facts(comparison, "route")["regime"] == "refine"
    assert facts(lookup, "answer")["calls"] == len(facts(lookup, "answer")["asks"])
    assert facts(comparison, "answer")["calls"] == -(-facts(comparison, "budget")["sent"] // 3)
    assert facts(lookup, "answer")["calls"] < facts(comparison, "answer")["calls"]


@pytest.mark.parametrize("question", [LOOKUP, COMPARISON])
def test_every_citation_is_verbatim(engine: RetrieverQueryEngine, question: str) -> None:
    response = engine.query(question)
    citations = facts(response, "answer")["citations"]
    assert citations
    for number, spans in citations.items():
        text = response.source_nodes[int(number) - 1].node.get_content()
        assert all(span["quote"] in text for span in spans)


def test_the_numbers_of_a_trace_add_up(engine: RetrieverQueryEngine) -> None:
    for question in (LOOKUP, COMPARISON, "How do I set up replication between two servers?"):
        response = engine.query(question)
        gate, budget = facts(response, "gate"), facts(response, "budget")
        assert gate["candidates"] == gate["kept"] + gate["below_theta"] + gate["unscored"] == 200
        assert budget["sent"] + budget["reduced"] == gate["kept"]
