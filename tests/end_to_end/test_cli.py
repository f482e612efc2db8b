"""The ``lara`` command as a user runs it, with the embedded parts; no deadline that a slow machine misses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Lara

from lara_plugins.cli.demo import CORPUS
from lara_plugins.version import __version__

AMPLE = "--afford=600"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tower.md").write_text(
        "# Eiffel Tower\n\nThe Eiffel Tower is a wrought-iron lattice tower in Paris, France. "
        "The tower is 330 metres tall. It was completed in 1889.\n"
    )
    (folder / "bridge.txt").write_text("The Golden Gate Bridge in San Francisco opened to traffic in 1937.")
    (folder / "photo.txt").write_bytes(b"\x89PNG\0\0")
    return folder


@pytest.fixture
def index(lara: Lara, docs: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    assert lara("ingest", docs, "--index", folder).code == 0
    return folder


def test_ingest_says_what_it_did_and_what_it_skipped(lara: Lara, docs: Path, tmp_path: Path) -> None:
    first = lara("ingest", docs, "--index", tmp_path / "index")
    assert first.out.startswith("2 added, 0 updated, 0 unchanged, 0 removed; 2 passages written")
    assert "Skipped 1:" in first.out
    assert "photo.txt is binary, not text" in " ".join(first.out.split())
    assert first.err == ""
    second = lara("ingest", docs, "--index", tmp_path / "index")
    assert second.out.startswith("0 added, 0 updated, 2 unchanged, 0 removed; 0 passages written")


def test_export_writes_import_files_and_bm25(lara: Lara, docs: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="lara-plugins[storage] is not installed")
    ran = lara("export", docs, "--parquet", tmp_path / "import", "--namespace", "towers")
    assert ran.out.startswith("2 added, 0 updated, 0 unchanged, 0 removed; 2 passages written")
    files = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "import").rglob("*.*"))
    assert files == ["import/bm25.json", "import/towers/00000.parquet"]
    again = lara("export", docs, "--parquet", tmp_path / "import", "--namespace", "towers")
    assert (again.code, "towers holds files" in again.err) == (2, True)


def test_an_index_inside_the_path_is_not_read(lara: Lara, docs: Path) -> None:
    for _ in range(2):
        assert "Skipped 1:" in lara("ingest", docs, "--index", docs / "index").out


def test_ask_shows_answer_sources_and_trace(lara: Lara, index: Path) -> None:
    ran = lara("ask", "How tall is the Eiffel Tower?", "--index", index, AMPLE)
    assert ran.code == 0
    assert "330 metres tall. [1]" in ran.out
    assert '    "The tower is 330 metres tall."' in ran.out
    rows = [line.split()[0] for line in ran.out.splitlines() if line.endswith(" s")]
    assert rows == ["retrieval", "gate", "budget", "route", "answer", "total"]
    assert "2 candidates of 2 passages" in ran.out
    assert "of 600.0 s allowed" in ran.out


def test_ask_says_that_there_is_no_answer(lara: Lara, index: Path) -> None:
    ran = lara("ask", "Who painted the ceiling of the Sistine Chapel?", "--index", index, AMPLE)
    assert ran.code == 0
    assert ran.out.startswith("No answer: none of 2 scored passages reaches theta 0.3")
    assert "0 calls, no_passages" in ran.out


def test_theta_is_the_users(lara: Lara, index: Path) -> None:
    ran = lara("ask", "How tall is the Eiffel Tower?", "--index", index, "--theta=1", AMPLE)
    assert "reaches theta 1;" in ran.out


def test_json_is_one_object_whose_quotes_are_verbatim(lara: Lara, index: Path) -> None:
    ran = lara("ask", "How tall is the Eiffel Tower?", "--index", index, "--json", AMPLE)
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    assert told["answer_found"]
    assert "330 metres" in told["answer"]
    assert [phase["phase"] for phase in told["trace"]["phases"]][-1] == "answer"
    assert told["citations"]
    for number, spans in told["citations"].items():
        text = told["sources"][int(number) - 1]["text"]
        assert all(text[span["start"] : span["end"]] == span["quote"] for span in spans)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ask", "Why?", "--index", "nowhere"], "there is no index here"),
        (["ask", "Why?", "--index", "nowhere", "--json"], "there is no index here"),
        (["ask", " ", "--index", "index"], "question"),
        (["ask", "Why?", "--index", "index", "--afford=0"], "afford=0.0"),
        (["ask", "Why?", "--index", "index", "--theta=2"], "theta=2.0"),
        (["ingest", "absent", "--index", "new"], "absent does not exist"),
        (["ingest", "docs", "--index", "docs/bridge.txt"], "it is a file"),
        (["ingest", "index", "--index", "docs"], "give another folder"),
    ],
)
@pytest.mark.usefixtures("index")
def test_an_error_is_one_line_and_exit_code_2(
    lara: Lara, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = lara(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert sentence in ran.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", [["export", "docs", "--parquet"], ["ingest", "--index=i"]])
def test_an_error_of_a_store_is_one_line(
    lara: Lara, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    pytest.importorskip("s3fs", reason="needs lara-plugins[storage]")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(docs.parent)
    ran = lara(*command, "s3://bucket/folder")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: Unable to locate credentials\n"


def test_an_index_that_is_open_elsewhere_is_refused(lara: Lara, index: Path) -> None:
    from lara_plugins.retrieval.embedded import EmbeddedIndex

    with EmbeddedIndex(index):
        ran = lara("ask", "Why?", "--index", index)
    assert ran.code == 2
    assert ran.err.startswith("error: the index at")


def test_output_is_clean_on_a_narrow_terminal(
    lara: Lara, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")  # the captured output passes for a terminal
    ran = lara("ask", "How tall is the Eiffel Tower?", "--index", index, AMPLE)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", ran.out)
    assert max(map(len, shown.splitlines())) == 40


def test_lines_are_whole_in_a_pipe(
    lara: Lara, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    pictures = [f"a picture whose name fits into no line of a terminal {number}.png" for number in range(30)]
    for name in pictures:
        (docs / name).write_bytes(b"\x89PNG")
    sentence = "The Eiffel Tower, a lattice tower on the Champ de Mars in Paris, is 330 metres tall."
    (docs / "tower.md").write_text(sentence)
    ingested = lara("ingest", docs, "--index", tmp_path / "index").out
    skipped = {line.partition(" is not read")[0] for line in ingested.splitlines()}
    assert {f"  {docs / name}" for name in pictures} <= skipped
    asked = lara("ask", "How tall is the Eiffel Tower?", "--index", tmp_path / "index", AMPLE).out
    assert f"{sentence} [1]" in asked.splitlines()
    assert f'    "{sentence}"' in asked.splitlines()
    assert max(map(len, asked.splitlines())) < 200
    assert "\x1b" not in ingested + asked


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_the_demo_answers_what_its_pages_answer_and_only_that(
    lara: Lara, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    ran = lara("demo", AMPLE)
    assert ran.code == 0
    head, *answers = re.split(r"\n\n(?:a|one) .* \u2500+\n", ran.out)
    lookup, boolean, listing, comparison, unanswerable = (" ".join(answer.split()) for answer in answers)
    assert "54 pages" in head
    assert "as of version 3.37.0 (2021-11-27)" in lookup.split("[1]")[0].lower()
    assert "AUTOINCREMENT is not allowed on WITHOUT ROWID tables" in boolean
    assert "Every table must have at least one non-generated column" in listing
    assert "STORED columns take up space in the database file" in comparison
    assert "No answer: none of 200 scored passages reaches theta" in unanswerable
    assert "0 calls" in unanswerable
    assert 'lara demo "' in ran.out.splitlines()[-1]


def test_the_demo_takes_a_question_and_keeps_its_index(
    lara: Lara, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    for _ in range(2):
        ran = lara("demo", "What is the difference between json_each and json_tree?", AMPLE)
        assert ran.code == 0
        assert "json_tree(X) function recursively walks" in " ".join(ran.out.split())
    assert "indexed in" not in ran.out


def test_the_numbered_lists_of_the_demo_count() -> None:
    item = re.compile(r"( *)(\d+)\. (?!\|)")
    for page in CORPUS.glob("*.md"):
        last: dict[str, int] = {}
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := item.match(line):
                indent, number = found[1], int(found[2])
                assert number != last.get(indent), f"{page.name}: {line}"
                last = {outer: above for outer, above in last.items() if len(outer) < len(indent)}
                last[indent] = number
            elif not line.startswith(" "):
                last = {}


def test_version(lara: Lara) -> None:
    assert lara("--version").out == f"lara {__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from lara_plugins.cli.main import main\n"
        "sys.argv = ['lara', 'ask', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers', 'wordllama', 'qdrant_edge', 'pypdf'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    ran = _python(script)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_without_the_extra_the_command_says_what_to_install() -> None:
    script = "import sys; sys.modules['typer'] = None\nfrom lara_plugins.cli.main import main\nmain()"
    ran = _python(script)
    assert ran.returncode == 2
    assert ran.stderr == "error: typer is not installed: pip install 'lara-plugins[cli]'\n"


def _python(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def test_route_prints_shape_rule_words_and_regime(lara: Lara) -> None:
    ran = lara("route", "Please tell me how long the warranty lasts")
    lines = {line.split("  ")[0]: line for line in ran.out.splitlines()}
    assert ran.code == 0
    assert "duration (en)" in lines["shape"]
    assert 'how-long: "how long"' in lines["parsed by"]
    assert "sequential, by rule one-passage" in lines["regime"]
    assert "One passage can hold the one duration that is asked for" in lines["why"]


def test_route_as_json(lara: Lara) -> None:
    ran = lara("route", "Who wrote it and when was it signed?", "--json")
    found = json.loads(ran.out)
    assert (found["decomposition"], found["regime"], found["rule"]) == (
        "several_asks",
        "batch",
        "several-asks",
    )
    assert found["words"] == found["question"][slice(*found["span"])]


def test_route_in_a_language_that_is_told(lara: Lara) -> None:
    assert json.loads(lara("route", "Garantie", "--language", "de", "--json").out)["language"] == "de"
    ran = lara("route", "Garantie", "--language", "german!")
    assert ran.code == 2
    assert ran.err.startswith("error: language='german!'")


def test_route_refuses_an_empty_question(lara: Lara) -> None:
    ran = lara("route", "  ")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: text=' '")
