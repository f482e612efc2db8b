"""Hybrid retrieval as an application's retriever."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_lara import HybridRetriever, ThresholdGate
from langchain_lara.documents import document_from_match, shown_passage
from towers import LISTING, LOOKUP, PASSAGES

from lara_plugins import EmbeddedIndex, InvalidArgument, Match


async def test_it_finds_what_the_index_finds(hybrid: EmbeddedIndex) -> None:
    retriever = HybridRetriever(hybrid)
    found = retriever.invoke(LOOKUP)
    assert found == await retriever.ainvoke(LOOKUP)
    assert len(found) == len(PASSAGES)
    matches = hybrid.search(LOOKUP, limit=3, alpha=0.5)
    chosen = HybridRetriever(hybrid, limit=3, alpha=0.5).invoke(LOOKUP)
    assert [document.id for document in chosen] == [match.passage.id for match in matches]


def test_a_document_is_the_passage_again(hybrid: EmbeddedIndex) -> None:
    for document in HybridRetriever(hybrid).invoke(LOOKUP):
        passage = shown_passage(document)
        assert passage == next(each for each in PASSAGES if each.id == passage.id)


def test_metadata_of_a_passage_is_kept() -> None:
    passage = PASSAGES[0].__class__("p", "text", metadata={"page": 3, "tags": ["a"]})
    document = document_from_match(Match(passage, 0.5, 0.5, 0.5))
    assert document == Document("text", id="p", metadata={"page": 3, "tags": ["a"]})
    assert shown_passage(document).content == "text"


def test_a_document_without_an_id_has_a_stable_one() -> None:
    one, same = Document("A text."), Document("A text.", metadata={"page": 2})
    other, elsewhere = Document("Another text."), Document("A text.", metadata={"source": "b.md"})
    assert shown_passage(one).id == shown_passage(same).id
    assert len({shown_passage(document).id for document in (one, other, elsewhere)}) == 3
    assert one.id is None
    assert (
        shown_passage(Document("half of \ud83d a pair")).id
        == shown_passage(Document("half of \ud83d a pair")).id
    )


@pytest.mark.parametrize("key", ["source", "file_path", "url"])
def test_where_a_document_comes_from(key: str) -> None:
    assert shown_passage(Document("text", metadata={key: "a.md"})).source == "a.md"


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_its_runs_carry_its_tags_and_metadata(hybrid: EmbeddedIndex, kind: str) -> None:
    collector = RunCollectorCallbackHandler()
    retriever = HybridRetriever(hybrid, name="pages", tags=["mine"], metadata={"tenant": "a"})
    config: Any = {"callbacks": [collector], "tags": ["theirs"]}
    retriever.invoke(LOOKUP, config) if kind == "sync" else await retriever.ainvoke(LOOKUP, config)
    [run] = collector.traced_runs
    assert run.name == "pages"
    assert run.run_type == "retriever"
    assert set(run.tags or []) == {"mine", "theirs"}
    assert run.metadata["tenant"] == "a"
    assert run.metadata["ls_retriever_name"] == "pages"
    assert run.metadata["ls_vector_store_provider"] == "EmbeddedIndex"


async def test_batches_and_concurrent_calls(hybrid: EmbeddedIndex) -> None:
    retriever = HybridRetriever(hybrid, limit=4)
    one_by_one = [retriever.invoke(question) for question in (LOOKUP, LISTING) * 4]
    assert retriever.batch([LOOKUP, LISTING] * 4) == one_by_one
    assert await asyncio.gather(*(retriever.ainvoke(q) for q in (LOOKUP, LISTING) * 4)) == one_by_one


@pytest.mark.parametrize("question", ["", "  ", "\n"])
async def test_an_empty_question(hybrid: EmbeddedIndex, question: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^question=.*: ask something"):
        HybridRetriever(hybrid).invoke(question)
    with pytest.raises(InvalidArgument, match=r"^question=.*: ask something"):
        await HybridRetriever(hybrid).ainvoke(question)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [({"limit": v}, "limit") for v in (0, -1, True, 1.5, "9")]
    + [({"alpha": v}, "alpha") for v in (2, -0.1, math.nan, True, "1")],
)
def test_an_argument_out_of_its_range(
    hybrid: EmbeddedIndex, arguments: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidArgument, match=rf"^{argument}=.*: give ") as refused:
        HybridRetriever(hybrid, **arguments)
    assert refused.type is InvalidArgument


def test_an_empty_index_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with EmbeddedIndex(tmp_path / "empty") as empty:
        retriever = HybridRetriever(empty)
        assert retriever.invoke(LOOKUP) == []
    assert "the index holds no passage" in caplog.text
    assert ThresholdGate(scorer="embedded").invoke({"input": LOOKUP, "context": []}) == []


def test_a_copy_with_other_fields_searches_by_these(hybrid: EmbeddedIndex, tmp_path: Path) -> None:
    retriever = HybridRetriever(hybrid, limit=5)
    assert len(retriever.model_copy(update={"limit": 2}).invoke(LOOKUP)) == 2
    with EmbeddedIndex(tmp_path / "other") as other:
        other.upsert(PASSAGES[:3])
        assert len(retriever.model_copy(update={"index": other}).invoke(LOOKUP)) == 3
    retriever.filter = {"source": "0.md"}
    assert [document.id for document in retriever.invoke(LOOKUP)] == ["p0"]
