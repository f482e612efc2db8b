"""``lara ingest`` and ``lara ask`` over an index at Pinecone, through the real SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Lara

pytest.importorskip("pinecone", reason="lara-plugins[pinecone] is not installed")
from pinecone_clients import client_of, create_index
from pinecone_http import Fault
from pinecone_server import PineconeServer

from lara_plugins import Bm25Encoder

AMPLE = "--afford=600"
QUESTION = "How tall is the Eiffel Tower?"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        monkeypatch.setenv("PINECONE_API_KEY", "key")
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", server.url)
        yield server


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tower.md").write_text(
        "# Eiffel Tower\n\nThe Eiffel Tower is a wrought-iron lattice tower in Paris, France. "
        "The tower is 330 metres tall. It was completed in 1889.\n"
    )
    (folder / "bridge.txt").write_text("The Golden Gate Bridge in San Francisco opened to traffic in 1937.")
    monkeypatch.chdir(tmp_path)
    return folder


def test_it_ingests_and_answers(lara: Lara, server: PineconeServer, docs: Path) -> None:
    first = lara("ingest", docs, "--pinecone", "towers")
    assert first.code == 0, first.err
    assert first.out.startswith("2 added, 0 updated, 0 unchanged, 0 removed; 2 passages written")
    assert first.out.splitlines()[-1].endswith("lara ask --pinecone towers needs: towers.bm25.json")
    assert Bm25Encoder.load("towers.bm25.json").frequencies.documents == 2
    asked = lara("ask", QUESTION, "--pinecone", "towers", AMPLE)
    assert asked.code == 0, asked.err
    assert "330 metres tall. [1]" in asked.out
    told = json.loads(lara("ask", QUESTION, "--pinecone", "towers", "--json", AMPLE).out)
    assert told["sources"][0]["heading"] == "Eiffel Tower"
    (docs / "tower.md").write_text("# Eiffel Tower\n\nThe Eiffel Tower is 331 metres tall.")
    (docs / "bridge.txt").unlink()
    second = lara("ingest", docs, "--pinecone", "towers")
    assert second.out.startswith("0 added, 1 updated, 0 unchanged, 1 removed; 1 passages written")
    assert "331 metres tall. [1]" in lara("ask", QUESTION, "--pinecone", "towers", AMPLE).out
    assert Bm25Encoder.load("towers.bm25.json").frequencies.documents == 1


def test_lost_statistics_are_counted_again(lara: Lara, server: PineconeServer, docs: Path) -> None:
    lara("ingest", docs, "--pinecone", "towers")
    written = Path("towers.bm25.json").read_text()
    Path("towers.bm25.json").unlink()
    assert "lara ingest --pinecone writes it" in lara("ask", QUESTION, "--pinecone", "towers").err
    again = lara("ingest", docs, "--pinecone", "towers")
    assert again.out.startswith("0 added, 0 updated, 2 unchanged, 0 removed; 0 passages written")
    assert json.loads(Path("towers.bm25.json").read_text()) == json.loads(written)


def test_statistics_are_a_namespaces_own(lara: Lara, server: PineconeServer, docs: Path) -> None:
    lara("ingest", docs, "--pinecone", "towers")
    ran = lara("ingest", docs / "tower.md", "--pinecone", "towers", "--namespace", "a/b")
    assert ran.code == 0, ran.err
    assert Bm25Encoder.load("towers.bm25.json").frequencies.documents == 2
    assert Bm25Encoder.load("towers.a%2Fb.bm25.json").frequencies.documents == 1
    where = ("--pinecone", "towers", "--namespace", "a/b", "--bm25", "towers.a%2Fb.bm25.json")
    assert "1 candidates of 1 passages" in lara("ask", QUESTION, *where, AMPLE).out


def test_what_was_exported_is_asked_with_its_own_statistics(
    lara: Lara, server: PineconeServer, docs: Path
) -> None:
    fitted = Bm25Encoder.fit([path.read_text() for path in docs.iterdir()])
    fitted.save("fitted.json")
    where = ("--pinecone", "towers", "--bm25", "fitted.json")
    assert lara("ingest", docs, *where).code == 0
    assert Bm25Encoder.load("fitted.json").average_length == fitted.average_length
    assert "330 metres tall. [1]" in lara("ask", QUESTION, *where, AMPLE).out
    refused = lara("ingest", docs, "--pinecone", "towers", "--bm25", "other.json")
    assert (refused.code, "was created for other encoders" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ([], ("aws", "us-east-1")),
        (["--region", "eu-west-1"], ("aws", "eu-west-1")),
        (["--cloud", "gcp"], ("gcp", "us-central1")),
        (["--cloud", "azure"], ("azure", "eastus2")),
        (["--cloud", "gcp", "--region", "europe-west4"], ("gcp", "europe-west4")),
    ],
)
def test_a_new_index_is_created_where_it_is_said(
    lara: Lara, server: PineconeServer, docs: Path, options: list[str], place: tuple[str, str]
) -> None:
    for _ in range(2):
        ran = lara("ingest", docs / "bridge.txt", "--pinecone", "towers", *options)
        assert ran.code == 0, ran.err
        assert server.places["towers"] == {"cloud": place[0], "region": place[1]}
    elsewhere = lara("ingest", docs, "--pinecone", "towers", "--region", "us-west-2")
    assert (elsewhere.code, elsewhere.out) == (2, "")
    where = f"--region='us-west-2': the index towers is in {' '.join(place)}"
    assert elsewhere.err == f"error: {where}: leave this out, or name another index\n"


def test_what_pinecone_cannot_store_is_named_and_the_rest_is_asked(
    lara: Lara, server: PineconeServer, docs: Path
) -> None:
    (docs / "ids.jsonl").write_text(json.dumps({"text": "A huge number.", "number": 2**53 + 1}))
    for done in ("2 added, 0 updated, 0 unchanged", "0 added, 0 updated, 2 unchanged"):
        ran = lara("ingest", docs, "--pinecone", "towers")
        assert ran.code == 0, ran.err
        assert ran.out.startswith(done)
        assert "Skipped 1:" in ran.out
        assert "docs/ids.jsonl is left out whole: metadata['number'] of passage" in " ".join(ran.out.split())
    assert "330 metres tall. [1]" in lara("ask", QUESTION, "--pinecone", "towers", AMPLE).out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ingest", "docs"], "give either a folder as --index, or --pinecone"),
        (["ingest", "docs", "--index", "i", "--pinecone", "towers"], "give either a folder"),
        (["ingest", "docs", "--index", "i", "--namespace", "n"], "give either a folder"),
        (["ingest", "docs", "--index", "i", "--cloud", "gcp"], "give either a folder"),
        (["ingest", "docs", "--index", "i", "--region", "eu-west-1"], "give either a folder"),
        (["ingest", "docs", "--pinecone", "towers", "--cloud", "amazon"], "give one of aws, gcp, azure"),
        (["ingest", "docs", "--pinecone", "towers", "--region", " "], "name a region of the cloud"),
        (["ask", "Why?"], "give either a folder"),
        (["ask", "Why?", "--pinecone", "absent", "--bm25", "saved.json"], "Pinecone: "),
        (["ask", "Why?", "--pinecone", "absent"], "there is no such file"),
        (["ingest", "absent", "--pinecone", "towers"], "absent does not exist"),
        (["ingest", "docs", "--pinecone", "cosine"], "has the metric cosine, and only dotproduct"),
        (["ingest", "docs", "--pinecone", "short"], "has 3 dimensions and the encoder gives 256"),
        (["ingest", "docs", "--pinecone", "towers", "--bm25", "docs/tower.md"], "is no saved Bm25Encoder"),
        (["ingest", "docs", "--pinecone", "towers", "--bm25", "no/b.json"], "its folder does not exist"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(
    lara: Lara, server: PineconeServer, arguments: list[str], sentence: str
) -> None:
    client = client_of(server)
    create_index(client, "cosine", dimension=256, metric="cosine")
    create_index(client, "short", dimension=3, metric="dotproduct")
    Bm25Encoder().save("saved.json")
    ran = lara(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert sentence in ran.err
    assert "towers" not in server.indexes


def test_without_a_key_nothing_is_created(
    lara: Lara, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINECONE_API_KEY")
    ran = lara("ingest", "docs", "--pinecone", "towers")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: PINECONE_API_KEY=None: set this environment variable to your key for Pinecone\n"
    assert not server.indexes


def test_an_ingestion_that_fails_goes_on_next_time(lara: Lara, server: PineconeServer, docs: Path) -> None:
    lara("ingest", docs / "bridge.txt", "--pinecone", "towers")
    server.indexes["towers"].faults.append(Fault("/vectors/upsert", times=1, status=401))
    failed = lara("ingest", docs, "--pinecone", "towers")
    assert (failed.code, "401" in failed.err) == (2, True)
    assert lara("ingest", docs, "--pinecone", "towers").out.startswith("1 added, 0 updated, 1 unchanged")
    assert "330 metres tall. [1]" in lara("ask", QUESTION, "--pinecone", "towers", AMPLE).out
