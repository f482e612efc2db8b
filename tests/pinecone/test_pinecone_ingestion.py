"""Ingestion into Pinecone: only what changed is written, and whatever stops it, the next one goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hashed_words import HashedWords
from pinecone_clients import client_of
from pinecone_data import IndexServer
from pinecone_http import Fault
from pinecone_server import PineconeServer

from lara_plugins import (
    Bm25Encoder,
    EmbeddingMismatch,
    InvalidArgument,
    NotYetVisible,
    PartialUpsert,
    Passage,
    Patience,
    PineconeIndex,
    ingest,
)
from lara_plugins.ingestion.writing import BATCH
from lara_plugins.retrieval.pinecone.namespace import PAGE

DENSE = HashedWords(8)
HASTY = Patience(attempts=1, first_pause=0.001)
STORM = 40
"""More failures than the SDK of any major puts up with by itself."""


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


@pytest.fixture(params=["one index", "two indexes"])
def index(server: PineconeServer, request: pytest.FixtureRequest) -> PineconeIndex:
    """Empty, with writes that are seen late."""
    words = "words" if request.param == "two indexes" else None
    made = PineconeIndex.create(
        client_of(server),
        "passages",
        dense=DENSE,
        sparse=Bm25Encoder(),
        sparse_name=words,
        namespace="docs",
        patience=HASTY,
    )
    for stored in server.indexes.values():
        stored.lag = 2
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "kept.md").write_text("# Kept\n\nWords that stay.\n")
    (made / "changed.md").write_text("# Old\n\n" + "An old sentence stands here. " * 100)
    (made / "vanished.md").write_text("# Gone\n\nGone words.\n")
    records = [{"_id": str(number), "text": f"record {number}"} for number in range(3 * PAGE)]
    (made / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    return made


def connected(server: PineconeServer, patience: Patience = HASTY) -> PineconeIndex:
    """The index as another process has it."""
    return PineconeIndex(
        client_of(server),
        "passages",
        dense=DENSE,
        sparse=Bm25Encoder(),
        sparse_name="words" if "words" in server.indexes else None,
        namespace="docs",
        patience=patience,
    )


def change(folder: Path) -> None:
    (folder / "changed.md").write_text("# New\n\nA new sentence stands here.\n")
    (folder / "vanished.md").unlink()
    (folder / "added.md").write_text("# Added\n\nAdded words.\n")


def held(server: PineconeServer) -> dict[str, dict[str, tuple[str, Any]]]:
    """By index and id: the content hash, and the sparse values."""
    return {
        name: {
            id_: (record["metadata"]["content_hash"], record.get("sparseValues"))
            for id_, record in stored.namespaces["docs"].visible.items()
        }
        for name, stored in server.indexes.items()
    }


def fresh(folder: Path, *, two: bool) -> dict[str, dict[str, tuple[str, Any]]]:
    """What an index holds that nothing ever happened to."""
    with PineconeServer() as server:
        index = PineconeIndex.create(
            client_of(server),
            "passages",
            dense=DENSE,
            sparse=Bm25Encoder(),
            sparse_name="words" if two else None,
            namespace="docs",
        )
        ingest([folder], index)
        return held(server)


def settle(server: PineconeServer) -> None:
    for stored in server.indexes.values():
        for _ in range(5):
            stored.namespaces["docs"].read()


def assert_right(server: PineconeServer, folder: Path) -> None:
    settle(server)
    assert held(server) == fresh(folder, two=len(server.indexes) > 1)


def writes(server: PineconeServer) -> dict[str, int]:
    return dict(server.indexes["passages"].namespaces["docs"].writes)


def test_only_what_changed_is_written_and_what_vanished_is_removed(
    server: PineconeServer, index: PineconeIndex, folder: Path
) -> None:
    first = ingest([folder], index)
    assert (first.added, index.count()) == (4, first.passages)
    before = writes(server)
    again = ingest([folder], index)
    assert (again.unchanged, again.passages, writes(server)) == (4, 0, before)
    change(folder)
    report = ingest([folder], index)
    assert (report.added, report.updated, report.unchanged, report.removed) == (1, 1, 2, 1)
    written = sum(writes(server).values()) - sum(before.values())
    assert written == report.passages == 2
    assert_right(server, folder)


def test_another_process_goes_on_where_this_one_was(
    server: PineconeServer, index: PineconeIndex, folder: Path
) -> None:
    ingest([folder], index)
    other = connected(server)
    assert ingest([folder], other).unchanged == 4


@pytest.mark.parametrize("plane", ["passages", "words"])
@pytest.mark.parametrize("path", ["/vectors/upsert", "/vectors/delete"])
@pytest.mark.parametrize("skip", range(4))
def test_whichever_request_it_ends_at_the_next_ingestion_goes_on(
    server: PineconeServer, index: PineconeIndex, folder: Path, plane: str, path: str, skip: int
) -> None:
    if plane not in server.indexes:
        pytest.skip("there is one index")
    ingest([folder], index)
    change(folder)
    (folder / "kept.md").write_text("# Kept\n\n" + "These words have changed as well. " * 100)
    server.indexes[plane].faults.append(Fault(path, skip=skip, times=STORM, status=401))
    try:
        ingest([folder], index)
    except Exception as error:  # noqa: BLE001
        assert isinstance(error, PartialUpsert) or "pinecone" in type(error).__module__  # noqa: PT017
    server.indexes[plane].faults.clear()
    settle(server)  # the killed process waits for nothing; this is the time until the next one begins
    other = connected(server)
    ingest([folder], other)
    assert ingest([folder], other).unchanged == 4
    assert_right(server, folder)


@pytest.mark.parametrize("path", ["/vectors/list", "/query"])
def test_a_listing_that_is_interrupted_is_asked_for_again(
    server: PineconeServer, index: PineconeIndex, folder: Path, path: str
) -> None:
    ingest([folder], index)
    patient = connected(server, Patience(first_pause=0.001))
    server.indexes["passages"].faults.append(Fault(path, skip=2, times=1, status=503))
    assert len(patient.sources()) == 4


def test_sources_are_read_page_by_page(server: PineconeServer, index: PineconeIndex, folder: Path) -> None:
    report = ingest([folder], index)
    stored: IndexServer = server.indexes["passages"]
    asked = len(stored.bodies("/query"))
    sources = index.sources()
    assert sorted(Path(source).name for source in sources) == [
        "changed.md",
        "kept.md",
        "records.jsonl",
        "vanished.md",
    ]
    assert all(sources.values())
    pages = stored.bodies("/query")[asked:]
    assert len(pages) == -(-report.passages // PAGE)
    assert all(body["topK"] <= PAGE and not body.get("includeValues") for body in pages)


def test_a_source_whose_passages_disagree_counts_as_stale(index: PineconeIndex) -> None:
    index.upsert(
        [
            Passage("a#0", "river", source="a", metadata={"content_hash": "1"}),
            Passage("a#1", "river", source="a", metadata={"content_hash": "2"}),
            Passage("b#0", "river", source="b"),
            Passage("c#0", "river", source="c", metadata={"content_hash": "3", "source": "web"}),
            Passage("d#0", "river", metadata={"content_hash": "4"}),
        ]
    )
    assert index.sources() == {"a": "", "b": "", "c": "3"}


def test_passages_come_back_as_they_were(index: PineconeIndex, folder: Path) -> None:
    given = [
        Passage(f"p{n}", f"river {n}", "Title", "s", {"number": n, "source": "web"})
        for n in range(2 * PAGE + 1)
    ]
    index.upsert(given)
    index.wait_until_visible()
    assert sorted(index.passages(), key=lambda passage: passage.id) == sorted(given, key=lambda p: p.id)


def test_ones_own_writes_are_waited_for_and_others_are_not(
    server: PineconeServer, index: PineconeIndex
) -> None:
    index.upsert([Passage("a", "river", source="a")])
    assert index.sources() == {"a": ""}
    server.indexes["passages"].lag = 10_000
    index.upsert([Passage("b", "river", source="b")])
    assert index.in_namespace("docs").sources() == {"a": ""}


def test_records_of_other_encoders_are_not_ingested_upon(server: PineconeServer, folder: Path) -> None:
    index = PineconeIndex.create(client_of(server), "passages", dense=DENSE, sparse=Bm25Encoder())
    index.upsert([Passage(f"p{n}", "river", source="s") for n in range(3)])
    stored = server.indexes["passages"].namespaces[""].visible
    stored["p1"]["metadata"]["lara_embedding"] = "another"
    with pytest.raises(EmbeddingMismatch, match="another"):
        ingest([folder], index)


UNSTORABLE: dict[str, tuple[dict[str, object], str]] = {
    "number": ({"number": 2**53 + 1}, "metadata['number'] of passage "),
    "text": ({"text": "x" * 41_000}, "at most 40960 bytes in Pinecone: split the text"),
    "metadata": ({"note": "é" * 20_480}, "at most 40960 bytes in Pinecone"),
    "terms": ({"text": " ".join(map(str, range(1001)))}, "1001 sparse entries and Pinecone takes 1000"),
}


@pytest.mark.parametrize(("kind", "place"), [*((kind, 0) for kind in UNSTORABLE), ("number", 2 * BATCH)])
def test_a_source_that_pinecone_cannot_store_is_left_out_whole(
    server: PineconeServer, index: PineconeIndex, folder: Path, kind: str, place: int
) -> None:
    fault, sentence = UNSTORABLE[kind]
    # Where the fault comes late, earlier batches have been written and are taken back.
    sound: list[dict[str, object]] = [{"text": f"other words {number}"} for number in range(place + 2)]
    faulty = [*sound[:place], sound[place] | fault, *sound[place + 1 :]]
    path = folder / "faulty.jsonl"
    path.write_text("\n".join(map(json.dumps, faulty)))
    for _ in range(2):
        report = ingest([folder], index)
        ((name, reason),) = report.skipped
        assert name == str(path)
        assert reason.startswith("is left out whole: ")
        assert sentence in reason
        assert str(path) not in index.sources()
    assert (report.unchanged, report.added, report.passages) == (4, 0, 0)
    path.write_text("\n".join(map(json.dumps, sound)))
    mended = ingest([folder], index)
    assert (mended.added, mended.passages, mended.skipped) == (1, len(sound), [])
    path.write_text("\n".join(map(json.dumps, faulty)))
    spoilt = ingest([folder], index)
    assert (spoilt.removed, spoilt.updated, spoilt.unchanged, len(spoilt.skipped)) == (1, 0, 4, 1)
    path.unlink()
    assert_right(server, folder)


def test_a_record_that_its_content_hash_makes_too_long_is_left_out(
    server: PineconeServer, index: PineconeIndex, folder: Path
) -> None:
    """Until a source is whole, its first passage has no content hash, and 64 bytes less."""
    path = folder / "long.jsonl"
    outcomes = set()
    for length in range(40_300, 40_900, 40):
        path.write_text("\n".join(json.dumps({"text": text}) for text in ("x" * length, "short")))
        report = ingest([path], index)
        assert (str(path) in index.sources()) == bool(report.passages)
        outcomes.add(bool(report.skipped))
        assert bool(report.skipped) != bool(report.passages)
    assert outcomes == {True, False}
    path.unlink()
    ingest([folder], index)
    assert_right(server, folder)


def test_an_index_that_is_only_read_is_not_ingested_into(server: PineconeServer, folder: Path) -> None:
    PineconeIndex.create(client_of(server), "passages", dense=DENSE)
    index = PineconeIndex(client_of(server), "passages", dense=DENSE, layout="langchain")
    with pytest.raises(InvalidArgument, match="only read"):
        ingest([folder], index)
    with pytest.raises(InvalidArgument, match="only read"):
        next(index.passages())


def test_an_index_in_which_nothing_becomes_visible_ends_the_ingestion(
    server: PineconeServer, folder: Path
) -> None:
    patience = Patience(first_pause=0.001, visible_within=0.01)
    index = PineconeIndex.create(client_of(server), "passages", dense=DENSE, patience=patience)
    server.indexes["passages"].lag = 10_000
    with pytest.raises(NotYetVisible, match="not visible yet"):
        ingest([folder], index)


@pytest.mark.parametrize("identity", ["\u65e5\u672c", "x" * 600, "a\0b", "a\nb"])
def test_a_record_may_have_any_identity(index: PineconeIndex, tmp_path: Path, identity: str) -> None:
    (tmp_path / "records.jsonl").write_text(
        "\n".join(json.dumps({"_id": each, "text": "words"}) for each in (identity, "plain"))
    )
    assert ingest([tmp_path], index).skipped == []
    passages = list(index.passages())
    assert {passage.metadata["_id"] for passage in passages} == {identity, "plain"}
    assert sum(passage.id.endswith("#plain") for passage in passages) == 1
    assert ingest([tmp_path], index).unchanged == 1


def test_fields_that_an_index_has_for_itself_do_not_stop_an_ingestion(
    index: PineconeIndex, tmp_path: Path
) -> None:
    record = {"text": "words", "lara_text": "others", "$date": 1, "year": 2020}
    (tmp_path / "records.jsonl").write_text(json.dumps(record))
    assert ingest([tmp_path], index).added == 1
    (passage,) = index.passages()
    assert passage.text == "words"
    assert passage.metadata.keys() & record.keys() == {"year"}
