from __future__ import annotations

import json
import logging
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lara_plugins.errors import (
    EmbeddingMismatch,
    HybridIndexError,
    IndexInUse,
    IndexUnreadable,
    InvalidArgument,
)
from lara_plugins.passages import Passage
from lara_plugins.retrieval import Bm25Encoder, EmbeddedIndex, HybridIndex, Match, WordLlamaEncoder

pytest.importorskip("qdrant_edge", reason="needs lara-plugins[embedded]")
np = pytest.importorskip("numpy", reason="needs lara-plugins[embedded]")
pytest.importorskip("wordllama", reason="needs lara-plugins[embedded]")

ROOT = Path(__file__).parents[2]
TEXT = """river bank loan interest water bridge steel engine train station ticket price market fruit apple
orchard tree forest fire smoke alarm clock tower bell church music piano concert hall door key lock
safe money coin silver mine coal energy sun moon planet orbit rocket fuel tank army general peace"""
WORDS = TEXT.split()
QUESTIONS = (
    "river bank loan",
    "what is the price of a ticket",
    "moon rocket fuel",
    "zebra",
    "bell bell tower",
)


def passage(number: int, text: str, **fields: object) -> Passage:
    return Passage(id=f"p{number}", text=text, **fields)  # type: ignore[arg-type]


def corpus(size: int, seed: int = 0) -> list[Passage]:
    chance = random.Random(seed)  # noqa: S311
    return [
        passage(
            number,
            " ".join(chance.choices(WORDS, k=chance.randint(5, 60))),
            heading=chance.choice(WORDS),
            source=f"s{number // 3}",
        )
        for number in range(size)
    ]


def summed(folder: Path, passages: Sequence[Passage], question: str, alpha: float) -> dict[str, float]:
    """The hybrid score of every passage, without the index: encoders and one matrix product."""
    contents = [item.content for item in passages]
    average = json.loads((folder / "manifest.json").read_text())["average_length"]
    sparse = Bm25Encoder(average, frequencies=Bm25Encoder.fit(contents).frequencies)
    dense = WordLlamaEncoder()
    query = dict(zip(*_entries(sparse, question), strict=True))
    lexical = [
        sum(value * query.get(index, 0.0) for index, value in zip(vector.indices, vector.values, strict=True))
        for vector in sparse.encode_documents(contents)
    ]
    similar = np.array(dense.encode_documents(contents)) @ np.array(dense.encode_query(question))
    totals = alpha * similar + (1 - alpha) * np.array(lexical)
    return dict(zip((item.id for item in passages), totals.tolist(), strict=True))


def _entries(sparse: Bm25Encoder, question: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    vector = sparse.encode_query(question)
    return vector.indices, vector.values


def assert_exact(matches: Sequence[Match], totals: dict[str, float], limit: int) -> None:
    """The matches are the best by ``totals``, in order; scores closer than 1e-6 may change places."""
    best = sorted(totals.values(), reverse=True)[:limit]
    assert len(matches) == len(best)
    assert len({match.passage.id for match in matches}) == len(matches)
    for match, expected in zip(matches, best, strict=True):
        assert match.score == pytest.approx(expected, abs=1e-6)
        assert totals[match.passage.id] == pytest.approx(expected, abs=1e-6)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path / "index") as opened:
        yield opened


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    with EmbeddedIndex(tmp_path_factory.mktemp("filled") / "index") as opened:
        opened.upsert(corpus(400))
        yield opened


@pytest.mark.parametrize("alpha", [0, 0.05, 0.3, 0.5, 0.7, 0.95, 1])
def test_the_order_is_that_of_the_exact_sum(filled: EmbeddedIndex, alpha: float) -> None:
    for question in QUESTIONS:
        totals = summed(filled.path, corpus(400), question, alpha)
        for limit in (1, 10, 60, 1000):
            assert_exact(filled.search(question, limit=limit, alpha=alpha), totals, limit)


def test_a_match_says_what_its_score_is_made_of(filled: EmbeddedIndex) -> None:
    for match in filled.search(QUESTIONS[0], limit=50, alpha=0.3):
        assert match.score == pytest.approx(0.3 * match.dense + 0.7 * match.sparse)
        assert match.passage == next(item for item in corpus(400) if item.id == match.passage.id)


def test_ties_are_broken_by_id(index: EmbeddedIndex) -> None:
    index.upsert([passage(number, "the same words") for number in (5, 3, 9, 1, 7)])
    for alpha in (0, 0.5, 1):
        found = [match.passage.id for match in index.search("same", limit=3, alpha=alpha)]
        assert found == ["p1", "p3", "p5"]
    assert [match.passage.id for match in index.search("else", limit=2, alpha=0)] == ["p1", "p3"]


def test_dense_text_replaces_the_dense_half_only(filled: EmbeddedIndex) -> None:
    plain = {match.passage.id: match for match in filled.search("river bank", limit=400, alpha=0.5)}
    other = {match.passage.id: match for match in filled.search("moon orbit", limit=400, alpha=0.5)}
    mixed = filled.search("river bank", limit=400, alpha=0.5, dense_text="moon orbit")
    for match in mixed:
        assert match.sparse == pytest.approx(plain[match.passage.id].sparse, abs=1e-6)
        assert match.dense == pytest.approx(other[match.passage.id].dense, abs=1e-6)


async def test_asearch_finds_the_same(filled: EmbeddedIndex) -> None:
    found = await filled.asearch("river bank", limit=20, alpha=0.5)
    assert found == filled.search("river bank", limit=20, alpha=0.5)


def test_it_is_a_hybrid_index(filled: EmbeddedIndex) -> None:
    assert isinstance(filled, HybridIndex)
    assert filled.alpha_ceiling == 0.6
    assert WordLlamaEncoder().fingerprint in filled.fingerprint
    assert Bm25Encoder().fingerprint in filled.fingerprint


def test_an_empty_index_finds_nothing(index: EmbeddedIndex) -> None:
    index.upsert([])
    assert index.count() == 0
    assert index.sources() == {}
    assert index.search("anything", limit=5, alpha=0.5) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"dense_text": " "}, "dense_text"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 2.0}, "limit"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": 1.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
    ],
)
def test_a_bad_search_is_named(filled: EmbeddedIndex, arguments: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        filled.search(**{"text": "river", "limit": 5, "alpha": 0.5, **arguments})  # type: ignore[arg-type]
    assert caught.value.argument == named


@pytest.mark.parametrize(
    "bad",
    [
        Passage(id="bad", text=" "),
        Passage(id="", text="text"),
        Passage(id="bad", text="half \ud800"),
        Passage(id="bad", text="text", metadata={"score": math.nan}),
        Passage(id="bad", text="text", metadata={"nested": {"a": 1}}),  # type: ignore[dict-item]
        Passage(id="bad", text="text", metadata={"nothing": None}),  # type: ignore[dict-item]
        Passage(id="bad", text="text", metadata={"mixed": ["a", 1]}),  # type: ignore[list-item]
        Passage(id="bad", text="text", metadata={"huge": 2**63}),
    ],
)
def test_a_passage_that_cannot_be_stored_stops_the_whole_upsert(index: EmbeddedIndex, bad: Passage) -> None:
    with pytest.raises(InvalidArgument):
        index.upsert([passage(1, "good"), bad])
    assert index.count() == 0


def test_a_passage_comes_back_as_it_was(index: EmbeddedIndex) -> None:
    metadata = {
        "page": 3,
        "ratio": 0.5,
        "draft": False,
        "tags": ["a", "b"],
        "title": "Über 東京",
        "whole": 1.0,
    }
    given = Passage("id/1", "Text\nwith lines.", heading="Title", source="/a/b.md", metadata=metadata)  # type: ignore[arg-type]
    index.upsert([given])
    (match,) = index.search("lines", limit=1, alpha=0.5)
    assert match.passage == given


def test_a_text_that_no_encoder_knows_is_stored_and_found_last(index: EmbeddedIndex) -> None:
    index.upsert([passage(1, "!?"), passage(2, "river bank")])
    assert [match.passage.id for match in index.search("river", limit=5, alpha=0.6)] == ["p2", "p1"]
    assert len(index.search("?!", limit=5, alpha=0.6)) == 2


def test_of_two_passages_with_one_id_the_last_counts(index: EmbeddedIndex) -> None:
    index.upsert([passage(1, "river"), passage(1, "moon")])
    assert [match.passage.text for match in index.search("river", limit=5, alpha=0.5)] == ["moon"]


def test_scores_stay_right_when_passages_are_replaced_and_deleted(index: EmbeddedIndex) -> None:
    index.upsert(corpus(120))
    renewed = corpus(60, seed=1)
    index.upsert(renewed)
    index.delete_source("s5")
    index.delete_source("never heard of")
    left = [item for item in renewed + corpus(120)[60:] if item.source != "s5"]
    assert index.count() == len(left)
    for question in QUESTIONS:
        assert_exact(index.search(question, limit=30, alpha=0.5), summed(index.path, left, question, 0.5), 30)


def test_a_drift_of_the_average_length_reencodes_the_sparse_half(index: EmbeddedIndex) -> None:
    short = [passage(number, f"{word} river") for number, word in enumerate(WORDS)]
    index.upsert(short)
    before = json.loads((index.path / "manifest.json").read_text())["average_length"]
    long = [passage(1000 + number, " ".join(WORDS * 20) + f" {number}") for number in range(10)]
    index.upsert(long)
    after = json.loads((index.path / "manifest.json").read_text())["average_length"]
    assert after > 1.25 * before
    for alpha in (0, 0.5):
        totals = summed(index.path, short + long, "silver river", alpha)
        assert_exact(index.search("silver river", limit=30, alpha=alpha), totals, 30)


def test_an_interrupted_reencoding_is_finished_on_opening(tmp_path: Path) -> None:
    passages = corpus(50)
    with EmbeddedIndex(tmp_path) as index:
        index.upsert(passages)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    half_way = {**manifest, "average_length": 500.0, "reencoding": True}
    (tmp_path / "manifest.json").write_text(json.dumps(half_way))
    with EmbeddedIndex(tmp_path) as index:
        assert_exact(
            index.search("river bank", limit=20, alpha=0.2), summed(tmp_path, passages, "river bank", 0.2), 20
        )
    assert json.loads((tmp_path / "manifest.json").read_text())["reencoding"] is False


def test_sources_tell_stale_from_fresh(index: EmbeddedIndex) -> None:
    fresh = {"content_hash": "abc"}
    index.upsert(
        [
            passage(1, "one", source="a.md", metadata=fresh),
            passage(2, "two", source="a.md", metadata=fresh),
            passage(3, "three", source="b.md", metadata=fresh),
            passage(4, "four", source="b.md", metadata={"content_hash": "old"}),
            passage(5, "five", source="c.md"),
            passage(6, "six"),
        ]
    )
    assert index.sources() == {"a.md": "abc", "b.md": "", "c.md": ""}
    index.delete_source("a.md")
    assert index.sources() == {"b.md": "", "c.md": ""}
    index.upsert([passage(4, "four", source="b.md", metadata=fresh)])
    assert index.sources()["b.md"] == "abc"


def test_reopened_it_is_the_same(tmp_path: Path) -> None:
    with EmbeddedIndex(tmp_path / "index") as index:
        index.upsert(corpus(80))
        found = index.search("river bank", limit=20, alpha=0.4)
        sources = index.sources()
    with EmbeddedIndex(str(tmp_path / "index"), create=False) as index:
        assert index.search("river bank", limit=20, alpha=0.4) == found
        assert index.sources() == sources


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index")
    index.close()
    index.close()
    with pytest.raises(HybridIndexError, match="closed"):
        index.search("river", limit=1, alpha=0.5)


def test_reading_what_is_not_there_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no index here"):
        EmbeddedIndex(tmp_path / "typo", create=False)
    assert not (tmp_path / "typo").exists()


def test_a_file_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(InvalidArgument, match="folder"):
        EmbeddedIndex(tmp_path / "file")


def test_a_second_opening_is_refused_until_the_first_is_closed(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path)
    with pytest.raises(IndexInUse, match=str(tmp_path)):
        EmbeddedIndex(tmp_path)
    index.upsert([passage(1, "still works")])
    index.close()
    EmbeddedIndex(tmp_path).close()


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_another_process_is_refused(tmp_path: Path) -> None:
    script = "import sys; from lara_plugins import EmbeddedIndex; EmbeddedIndex(sys.argv[1])"
    with EmbeddedIndex(tmp_path):
        outcome = run(script, tmp_path)
    assert outcome.returncode == 1
    assert "IndexInUse" in outcome.stderr.splitlines()[-1]
    assert run(script, tmp_path).returncode == 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_loses_nothing_that_was_written(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from lara_plugins import EmbeddedIndex, Passage
index = EmbeddedIndex(sys.argv[1])
index.upsert([Passage(f"p{n}", f"river number {n}", source=f"s{n}") for n in range(50)])
index.upsert([Passage("p0", "moon", source="s0")])
index.delete_source("s1")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run(script, tmp_path).returncode == -signal.SIGKILL
    with EmbeddedIndex(tmp_path, create=False) as index:
        assert index.count() == 49
        assert index.search("moon", limit=1, alpha=0.5)[0].passage.id == "p0"
        left = [passage(n, f"river number {n}") for n in range(2, 50)] + [passage(0, "moon")]
        assert_exact(
            index.search("river number 7", limit=10, alpha=0.3),
            summed(tmp_path, left, "river number 7", 0.3),
            10,
        )


def test_an_interrupted_creation_is_noticed(tmp_path: Path) -> None:
    EmbeddedIndex(tmp_path / "index").close()
    (tmp_path / "index" / "manifest.json").unlink()
    with pytest.raises(IndexUnreadable, match="interrupted"):
        EmbeddedIndex(tmp_path / "index")


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("text")
    with pytest.raises(IndexUnreadable, match="no index"):
        EmbeddedIndex(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    "files",
    [
        ["thesis.txt"],
        ["manifest.json"],
        ["manifest.json", "index.html"],
        ["shard/notes.txt"],
        ["manifest.json", "shard/notes.txt"],
    ],
)
def test_the_advice_spares_a_folder_of_somebodys_own(tmp_path: Path, files: list[str], create: bool) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"name": "an application of their own"}')
    with pytest.raises(IndexUnreadable, match="give another folder") as caught:
        EmbeddedIndex(tmp_path, create=create)
    assert "delete" not in str(caught.value)


def test_a_folder_whose_name_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="surrogate"):
        EmbeddedIndex(tmp_path / "index\udcff")
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("locked", [".", "shard"])
def test_a_folder_that_may_not_be_written_is_no_damage(tmp_path: Path, locked: str) -> None:
    folder = _filled_and_closed(tmp_path) / locked
    folder.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=str(tmp_path)), EmbeddedIndex(tmp_path) as index:
            index.upsert([passage(1, "river")])
    finally:
        folder.chmod(0o700)


def _filled_and_closed(folder: Path) -> Path:
    with EmbeddedIndex(folder) as index:
        index.upsert(corpus(20))
    return folder


def _engine_file(folder: Path, name: str) -> Path:
    return next((folder / "shard").rglob(name))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe"])
def test_a_damaged_manifest_is_unreadable(tmp_path: Path, content: bytes) -> None:
    (_filled_and_closed(tmp_path) / "manifest.json").write_bytes(content)
    with pytest.raises(IndexUnreadable, match=r"manifest\.json"):
        EmbeddedIndex(tmp_path)


@pytest.mark.parametrize("name", ["edge_config.json", "segment.json", "status.dat"])
def test_a_damaged_engine_file_is_unreadable(tmp_path: Path, name: str) -> None:
    file = _engine_file(_filled_and_closed(tmp_path), name)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(IndexUnreadable):
        EmbeddedIndex(tmp_path)
    # It is not left locked: the same sentence comes again.
    with pytest.raises(IndexUnreadable):
        EmbeddedIndex(tmp_path)


def test_a_lost_engine_file_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    def found(folder: Path) -> list[Match]:
        with EmbeddedIndex(folder) as index:
            return [
                match
                for alpha in (0, 0.5, 1)
                for limit in (3, 50)
                for match in index.search("river bank", limit=limit, alpha=alpha)
            ]

    whole = _filled_and_closed(tmp_path / "whole")
    expected = found(whole)
    files = [file.relative_to(whole) for file in (whole / "shard").rglob("*") if file.is_file()]
    noticed = set()
    for file in files:
        damaged = Path(shutil.copytree(whole, tmp_path / "damaged"))
        (damaged / file).unlink()
        try:
            assert found(damaged) == expected, file
        except IndexUnreadable:
            noticed.add("/".join(file.parts[-3:]))
        shutil.rmtree(damaged)
    assert "vector_storage-dense/vectors/status.dat" in noticed


def test_passages_that_are_gone_are_noticed(tmp_path: Path) -> None:
    shard = _filled_and_closed(tmp_path) / "shard"
    for file in (*shard.rglob("mutable_id_tracker.*"), *(shard / "wal").iterdir()):
        file.unlink()
    with pytest.raises(IndexUnreadable, match="20 passages"):
        EmbeddedIndex(tmp_path)


def test_a_lost_engine_folder_is_unreadable(tmp_path: Path) -> None:
    (_filled_and_closed(tmp_path) / "shard").rename(tmp_path / "elsewhere")
    with pytest.raises(IndexUnreadable):
        EmbeddedIndex(tmp_path)


def test_another_format_is_unreadable(tmp_path: Path) -> None:
    file = _filled_and_closed(tmp_path) / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
    with pytest.raises(IndexUnreadable, match="format 99"):
        EmbeddedIndex(tmp_path)


def test_other_encoders_are_refused(tmp_path: Path) -> None:
    _filled_and_closed(tmp_path)
    with pytest.raises(EmbeddingMismatch, match=r"k1=1\.2"):
        EmbeddedIndex(tmp_path, sparse=Bm25Encoder(k1=1.2))
    EmbeddedIndex(tmp_path).close()


class Unit:
    """A dense encoder that returns what it is told to."""

    fingerprint = "unit/2"
    dimension = 2
    alpha_ceiling = 1.0

    def __init__(self, *vector: float) -> None:
        self.vector = list(vector)

    def encode_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.vector for _ in texts]

    def encode_query(self, text: str) -> list[float]:
        return self.vector


@pytest.mark.parametrize("vector", [(math.nan, 0.0), (math.inf, 0.0), (3.0, 4.0), (1.0,), (1.0, 0.0, 0.0)])
def test_a_bad_vector_never_goes_in(tmp_path: Path, vector: tuple[float, ...]) -> None:
    with EmbeddedIndex(tmp_path, dense=Unit(*vector)) as index:
        with pytest.raises(InvalidArgument, match="must return"):
            index.upsert([passage(1, "text")])
        assert index.count() == 0


def test_ones_own_encoder_serves(tmp_path: Path) -> None:
    with EmbeddedIndex(tmp_path, dense=Unit(0.6, 0.8)) as index:
        index.upsert([passage(1, "river"), passage(2, "moon")])
        first, second = index.search("moon", limit=2, alpha=0.5)
        assert (first.passage.id, second.passage.id) == ("p2", "p1")
        assert first.dense == pytest.approx(1.0)
        assert index.alpha_ceiling == 1.0


def test_many_threads_search_while_one_writes(index: EmbeddedIndex) -> None:
    passages = corpus(300)
    index.upsert(passages[:50])
    problems: list[BaseException] = []
    written = threading.Event()

    def search() -> None:
        try:
            while not written.is_set():
                found = index.search("river bank loan", limit=40, alpha=0.5)
                scores = [match.score for match in found]
                assert len(found) == 40
                assert scores == sorted(scores, reverse=True)
        except BaseException as error:  # noqa: BLE001 - it is looked at below
            problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(50, 300, 10):
        index.upsert(passages[start : start + 10])
        index.delete_source(passages[start].source)
        index.upsert(passages[max(0, start - 3) : start + 10])
    written.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert_exact(
        index.search("river bank loan", limit=100, alpha=0.5),
        summed(index.path, passages, "river bank loan", 0.5),
        100,
    )


def test_the_dense_encoder_gives_unit_vectors_or_zero_and_leaves_logging_alone() -> None:
    script = """
import logging
from lara_plugins.retrieval import WordLlamaEncoder
vectors = WordLlamaEncoder().encode_documents(["river bank", ""])
print(len(vectors[0]), round(sum(x * x for x in vectors[0]), 4), sum(map(abs, vectors[1])))
print(logging.root.handlers, logging.root.level)
"""
    outcome = run(script, Path())
    assert outcome.stdout.splitlines() == ["256 1.0 0.0", f"[] {logging.WARNING}"]


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    script = """
import sys
from lara_plugins import EmbeddedIndex, retrieval_plan
print([name for name in ("numpy", "wordllama", "qdrant_edge") if name in sys.modules])
EmbeddedIndex(sys.argv[1])
print([name for name in ("numpy", "wordllama") if name in sys.modules])
"""
    assert run(script, tmp_path / "index").stdout.splitlines() == ["[]", "[]"]
