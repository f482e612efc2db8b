from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cross_encoders import ANSWERING, EMBEDDED_FOLDER, PASSAGES, QUESTION

from lara_plugins.errors import InvalidArgument
from lara_plugins.gate import Scorer, load_scorer
from lara_plugins.gate.engines.embedded import EmbeddedScorer
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.similarity import cosines

ROOT = Path(__file__).parents[2]


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EMBEDDED_FOLDER, tmp_path / "model"))


def other_weights(folder: Path) -> None:
    """Reverse the middle of the file, which is a part of the word vectors."""
    file = folder / "model.onnx"
    data = file.read_bytes()
    file.write_bytes(data[:4_000_000] + data[4_000_000:9_000_000][::-1] + data[9_000_000:])


def other_vocabulary(folder: Path) -> None:
    """Swap the ids of two words."""
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text("utf-8"))
    words = tokenizer["model"]["vocab"]
    words["novel"], words["volcano"] = words["volcano"], words["novel"]
    file.write_text(json.dumps(tokenizer), "utf-8")


def edit_config(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


def test_the_embedded_scorer_sums_weighed_evidence() -> None:
    weights = json.loads((EMBEDDED_FOLDER / "config.json").read_text("utf-8"))["lara"]["fusion"]

    logits = OnnxCrossEncoder(EMBEDDED_FOLDER).score(QUESTION, PASSAGES)

    expected = [
        weights["cross_encoder"] * logit + weights["similarity"] * cosine + weights["bias"]
        for logit, cosine in zip(logits, cosines(QUESTION, PASSAGES), strict=True)
    ]
    assert EmbeddedScorer().score(QUESTION, PASSAGES) == pytest.approx(expected)


def test_a_folder_has_no_known_scale_and_is_its_name(model_folder: Path) -> None:
    scorer = OnnxCrossEncoder(model_folder)

    assert isinstance(scorer, Scorer)
    assert (scorer.name, scorer.scale_known) == (f"onnx:{model_folder}", False)


def test_a_setting_that_the_name_does_not_carry_leaves_no_name(model_folder: Path) -> None:
    assert OnnxCrossEncoder(model_folder, max_length=128).name is None


def test_a_smaller_window_cuts_sooner_and_changes_the_fingerprint(model_folder: Path) -> None:
    text = ANSWERING + " The weather was cold." * 30
    wide, narrow = OnnxCrossEncoder(model_folder), OnnxCrossEncoder(model_folder, max_length=64)

    assert [block.truncated for block in wide.blocks(QUESTION, [text])] == [()]
    assert [block.truncated for block in narrow.blocks(QUESTION, [text])] == [(0,)]
    assert wide.fingerprint != narrow.fingerprint


def test_the_fingerprint_follows_the_weights_not_the_place(model_folder: Path) -> None:
    same = OnnxCrossEncoder(model_folder).fingerprint
    (model_folder / "other.onnx").write_bytes((model_folder / "model.onnx").read_bytes() + b"\0")

    assert same == OnnxCrossEncoder(EMBEDDED_FOLDER).fingerprint
    assert same != OnnxCrossEncoder(model_folder, model="other.onnx").fingerprint


def test_the_fingerprint_follows_weights_that_change_in_place(model_folder: Path) -> None:
    scorer = OnnxCrossEncoder(model_folder)
    before = scorer.fingerprint
    (model_folder / "model.onnx").write_bytes((model_folder / "model.onnx").read_bytes() + b"\0")

    assert scorer.fingerprint != before


@pytest.mark.parametrize("change", [other_weights, other_vocabulary])
def test_files_that_change_are_loaded_again(
    model_folder: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    scorer = OnnxCrossEncoder(model_folder)
    before = (scorer.fingerprint, scorer.score(QUESTION, PASSAGES))
    elsewhere = Path(shutil.copytree(model_folder, tmp_path / "elsewhere"))

    change(model_folder)
    change(elsewhere)

    expected = OnnxCrossEncoder(elsewhere)
    assert scorer.fingerprint == expected.fingerprint != before[0]
    assert scorer.score(QUESTION, PASSAGES) == expected.score(QUESTION, PASSAGES) != before[1]


def test_the_fingerprint_covers_weights_in_a_second_file(model_folder: Path) -> None:
    before = OnnxCrossEncoder(model_folder).fingerprint
    (model_folder / "model.onnx_data").write_bytes(b"weights")

    assert OnnxCrossEncoder(model_folder).fingerprint != before


@pytest.mark.parametrize("place", ["onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_finds_the_model_where_hubs_put_it(model_folder: Path, place: str) -> None:
    expected = OnnxCrossEncoder(model_folder).score(QUESTION, [ANSWERING])
    (model_folder / "onnx").mkdir()
    (model_folder / "model.onnx").rename(model_folder / place)

    assert OnnxCrossEncoder(model_folder).score(QUESTION, [ANSWERING]) == expected


def test_asks_which_of_several_models(model_folder: Path) -> None:
    (model_folder / "onnx").mkdir()
    (model_folder / "model.onnx").rename(model_folder / "onnx" / "model_int8.onnx")
    shutil.copy(model_folder / "onnx" / "model_int8.onnx", model_folder / "onnx" / "model_fp16.onnx")

    with pytest.raises(InvalidArgument, match=r"name one of onnx/model_fp16.onnx, onnx/model_int8.onnx"):
        OnnxCrossEncoder(model_folder)

    OnnxCrossEncoder(model_folder, model="onnx/model_int8.onnx").load()


def test_a_name_carries_the_file(model_folder: Path) -> None:
    (model_folder / "onnx").mkdir()
    shutil.copy(model_folder / "model.onnx", model_folder / "onnx" / "model_int8.onnx")
    scorer = OnnxCrossEncoder(model_folder, model="onnx/model_int8.onnx")
    assert scorer.name == f"onnx:{model_folder}/onnx/model_int8.onnx"

    again = load_scorer(scorer.name)

    assert again.name == scorer.name
    assert again.fingerprint == scorer.fingerprint
    assert again.fingerprint.startswith("onnx/model_int8-")


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "config.json"])
def test_names_the_missing_file(model_folder: Path, file: str) -> None:
    (model_folder / file).unlink()

    with pytest.raises(InvalidArgument, match=f"has no {file}"):
        OnnxCrossEncoder(model_folder)


def test_names_the_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no such folder"):
        OnnxCrossEncoder(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["{", "[]"])
def test_refuses_a_config_that_is_no_object(model_folder: Path, content: str) -> None:
    (model_folder / "config.json").write_text(content, "utf-8")

    with pytest.raises(InvalidArgument, match=r"its config\.json"):
        OnnxCrossEncoder(model_folder)


def test_refuses_several_labels(model_folder: Path) -> None:
    edit_config(model_folder, id2label={"0": "contradiction", "1": "entailment", "2": "neutral"})

    with pytest.raises(InvalidArgument, match="3 labels; give a cross-encoder with one"):
        OnnxCrossEncoder(model_folder)


def test_the_window_is_the_least_that_the_files_allow(model_folder: Path) -> None:
    (model_folder / "tokenizer_config.json").write_text('{"model_max_length": 256}', "utf-8")
    assert OnnxCrossEncoder(model_folder).max_length == 256

    edit_config(model_folder, max_position_embeddings=128)
    assert OnnxCrossEncoder(model_folder, max_length=512).max_length == 128


@pytest.mark.parametrize("content", [b"", b"{}", b"version https://git-lfs.github.com/spec/v1\n", None])
@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_names_the_damaged_file(model_folder: Path, file: str, content: bytes | None) -> None:
    whole = (model_folder / file).read_bytes()
    (model_folder / file).write_bytes(whole[: len(whole) // 2] if content is None else content)

    with pytest.raises(InvalidArgument, match=rf"{file}.*: export or download it again \(.+\)"):
        OnnxCrossEncoder(model_folder).load()


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("folder", value) for value in (None, 3, b"model")],
        *[("model", value) for value in (3, "", b"model.onnx")],
        *[("revision", value) for value in (3, " ")],
        *[("max_length", value) for value in (0, 15, 513, 64.5, "64", True)],
        *[("threads", value) for value in (0, 1.5, "2", True)],
    ],
)
def test_refuses_arguments_that_do_not_fit(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=f"{argument}={re.escape(repr(value))}: give"):
        OnnxCrossEncoder(**{"folder": EMBEDDED_FOLDER, argument: value})  # type: ignore[arg-type]


def test_a_passage_without_end_is_read_as_far_as_the_window_can_need() -> None:
    scorer = OnnxCrossEncoder(EMBEDDED_FOLDER)
    endless = "The weather was cold. " * 500_000

    [block] = scorer.blocks(QUESTION, [endless])

    assert block.truncated == (0,)
    assert block.scores == pytest.approx(scorer.score(QUESTION, [endless[:50_000]]))


@pytest.mark.parametrize("asked", ["3", " 3 ", "3,2", "3 , 2,1"])
def test_threads_are_those_of_the_application(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert OnnxCrossEncoder(EMBEDDED_FOLDER).threads == 3
    assert OnnxCrossEncoder(EMBEDDED_FOLDER, threads=2).threads == 2


@pytest.mark.parametrize("asked", [None, "", "0", "-1", "two", ",3"])
def test_threads_are_few_where_the_application_names_no_number(
    monkeypatch: pytest.MonkeyPatch, asked: str | None
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)

    assert 1 <= OnnxCrossEncoder(EMBEDDED_FOLDER).threads <= 4


def test_a_folder_has_no_revision(model_folder: Path) -> None:
    with pytest.raises(InvalidArgument, match="revision='v1'"):
        OnnxCrossEncoder(model_folder, revision="v1")


class TestHub:
    """The hub's library with a cache on disk and no network."""

    @staticmethod
    def scored(cache: Path, *arguments: str) -> str:
        """What a fresh process, offline, makes of a scorer's constructor arguments."""
        code = (
            "import sys\n"
            "from lara_plugins.gate.engines.onnx import OnnxCrossEncoder\n"
            "hub_id, revision, model = (word or None for word in sys.argv[1:])\n"
            "scorer = OnnxCrossEncoder(hub_id, revision=revision, model=model)\n"
            "print(scorer.name, scorer.fingerprint, scorer.score('who wrote it', ['Mary Shelley wrote it.']))"
        )
        command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
        hub = {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | hub)  # noqa: S603
        return ran.stdout.strip() if ran.returncode == 0 else ran.stderr.strip().splitlines()[-1]

    @pytest.fixture
    def cache(self, tmp_path: Path) -> Path:
        repository = tmp_path / "models--owner--reranker"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text("a" * 40, "utf-8")
        snapshot = Path(shutil.copytree(EMBEDDED_FOLDER, repository / "snapshots" / ("a" * 40)))
        (snapshot / "onnx").mkdir()
        (snapshot / "model.onnx").rename(snapshot / "onnx" / "model.onnx")
        shutil.copy(snapshot / "onnx" / "model.onnx", snapshot / "onnx" / "model_int8.onnx")
        return tmp_path

    def test_a_hub_id_is_found_in_the_cache(self, cache: Path) -> None:
        expected = OnnxCrossEncoder(EMBEDDED_FOLDER)
        scores = expected.score("who wrote it", ["Mary Shelley wrote it."])

        found = self.scored(cache, "owner/reranker", "", "")

        assert found == f"onnx:owner/reranker {expected.fingerprint} {scores}"

    def test_a_file_and_a_revision_are_found(self, cache: Path) -> None:
        named = self.scored(cache, "owner/reranker", "", "onnx/model_int8.onnx")
        revised = self.scored(cache, "owner/reranker", "a" * 40, "")

        assert named.startswith("onnx:owner/reranker/onnx/model_int8.onnx onnx/model_int8-")
        assert revised.startswith("None onnx/model-")

    def test_weights_in_a_second_file_are_found_beside_their_link(self, tmp_path: Path) -> None:
        onnx = pytest.importorskip("onnx", reason="onnx is not installed")
        snapshot = tmp_path / "snapshots" / "model"
        shutil.copytree(EMBEDDED_FOLDER, snapshot)
        blobs = tmp_path / "blobs"
        blobs.mkdir()
        expected = OnnxCrossEncoder(snapshot).score(QUESTION, PASSAGES)
        model = onnx.load(snapshot / "model.onnx")
        onnx.save(model, snapshot / "model.onnx", save_as_external_data=True, location="model.onnx_data")
        for number, file in enumerate(("model.onnx", "model.onnx_data")):  # as the hub's cache has them
            (snapshot / file).rename(blobs / str(number))
            (snapshot / file).symlink_to(f"../../blobs/{number}")

        assert OnnxCrossEncoder(snapshot).score(QUESTION, PASSAGES) == expected

    def test_a_model_that_is_nowhere_is_the_hub_librarys_error(self, cache: Path) -> None:
        assert "LocalEntryNotFoundError" in self.scored(cache, "owner/other", "", "")

    def test_nothing_is_looked_up_before_the_first_use(self) -> None:
        scorer = load_scorer("onnx:owner/reranker/onnx/model_int8.onnx")

        assert (scorer.name, scorer.scale_known) == ("onnx:owner/reranker/onnx/model_int8.onnx", False)
