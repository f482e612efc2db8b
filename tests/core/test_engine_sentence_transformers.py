from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from cross_encoders import PASSAGES, QUESTION, random_model

from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.sentence_transformers import SentenceTransformersScorer
from lara_plugins.gate.scorer import BLOCK_SIZE
from lara_plugins.passages import Score

ROOT = Path(__file__).parents[2]
COMMIT, OTHER_COMMIT = "c" * 40, "d" * 40


def test_only_the_published_model_has_a_known_scale() -> None:
    assert SentenceTransformersScorer("cross-encoder/ms-marco-MiniLM-L-6-v2").scale_known
    assert not SentenceTransformersScorer("BAAI/bge-reranker-v2-m3").scale_known


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(MissingExtra, match=r"sentence-transformers is.*\[cross-encoder\]"):
        SentenceTransformersScorer("cross-encoder/ms-marco-MiniLM-L-6-v2").load()


def test_every_setting_that_changes_scores_changes_the_fingerprint_and_leaves_no_name() -> None:
    settings: list[dict[str, object]] = [
        {},
        {"revision": OTHER_COMMIT},
        {"max_length": 256},
        {"precision": "bfloat16"},
        {"backend": "openvino"},
        {"backend": "onnx"},
        {"backend": "onnx", "file": "onnx/model_O3.onnx"},
    ]
    scorers = [
        SentenceTransformersScorer("owner/reranker", **{"revision": COMMIT, **setting})  # type: ignore[arg-type]
        for setting in settings
    ]

    assert SentenceTransformersScorer("owner/reranker").name == "owner/reranker"
    assert [scorer.name for scorer in scorers] == [None] * len(settings)
    assert scorers[0].fingerprint == f"sentence-transformers/owner/reranker@{COMMIT}/float32/512"
    assert len({scorer.fingerprint for scorer in scorers}) == len(settings)


def test_the_fingerprint_of_a_hub_id_is_the_commit_of_its_branch(tmp_path: Path) -> None:
    repository = tmp_path / "models--owner--reranker"
    (repository / "refs").mkdir(parents=True)
    for branch, commit in (("main", COMMIT), ("v2", OTHER_COMMIT)):
        (repository / "refs" / branch).write_text(commit, "utf-8")
        (repository / "snapshots" / commit).mkdir(parents=True)
        (repository / "snapshots" / commit / "config.json").write_text("{}", "utf-8")
    # A fresh process, because the hub's library reads its settings when it is imported.
    code = (
        "from lara_plugins.gate.engines.sentence_transformers import SentenceTransformersScorer\n"
        "for revision in (None, 'v2'):\n"
        "    print(SentenceTransformersScorer('owner/reranker', revision=revision).fingerprint)"
    )
    found = []
    for variable in ("HF_HUB_CACHE", "SENTENCE_TRANSFORMERS_HOME"):
        hub = {variable: str(tmp_path), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-W", "ignore", "-c", code]
        found.append(subprocess.check_output(command, text=True, env=os.environ | hub).split())  # noqa: S603

    expected = [
        f"sentence-transformers/owner/reranker@{commit}/float32/512" for commit in (COMMIT, OTHER_COMMIT)
    ]
    assert found == [expected, expected]


@pytest.mark.parametrize("changed", ["model.safetensors", "config.json", "tokenizer.json", "vocab.txt"])
def test_the_fingerprint_of_a_folder_follows_what_its_scores_depend_on(tmp_path: Path, changed: str) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for file in ("model.safetensors", "config.json", "tokenizer.json", "vocab.txt", "README.md"):
        (here / file).write_text(file, "utf-8")
    there = Path(shutil.copytree(here, tmp_path / "there"))
    (there / "README.md").write_text("moved", "utf-8")
    fingerprint = SentenceTransformersScorer(here).fingerprint

    assert SentenceTransformersScorer(str(there)).fingerprint == fingerprint
    (there / changed).write_text("something else", "utf-8")
    assert SentenceTransformersScorer(str(there)).fingerprint != fingerprint


def test_a_folder_without_weights_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="has no weights for torch"):
        _ = SentenceTransformersScorer(str(tmp_path)).fingerprint


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"model": ""}, "scorer=''"),
        ({"model": None}, "neither a folder"),
        ({"model": str(Path(__file__).parent), "revision": "v1"}, "revision='v1'"),
        ({"max_length": 8}, "max_length=8"),
        ({"backend": "tensorrt"}, "backend='tensorrt': choose one of torch, onnx, openvino"),
        ({"precision": "int8"}, "precision='int8': choose one of float32, bfloat16, float16"),
        ({"file": "onnx/model.onnx"}, "torch takes none"),
        ({"backend": "onnx", "file": 3}, "file=3"),
        ({"revision": 3}, "revision=3"),
        ({"backend": "onnx", "precision": "float16"}, "give the onnx file of that precision"),
    ],
)
def test_refuses_settings_that_do_not_fit(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        SentenceTransformersScorer(**{"model": "owner/reranker", **settings})  # type: ignore[arg-type]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("backend", "module"), [("onnx", "optimum.onnxruntime"), ("openvino", "optimum.intel")]
)
@pytest.mark.parametrize("optimum_is_there", [True, False])
def test_says_what_a_backend_needs(
    backend: str, module: str, optimum_is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    monkeypatch.setattr(
        "lara_plugins.gate.engines.sentence_transformers.find_spec",
        lambda name: ModuleSpec(name, None) if optimum_is_there and name == "optimum" else None,
    )
    missing = module if optimum_is_there else "optimum"

    with pytest.raises(
        MissingExtra, match=rf"{missing} is not installed.*sentence-transformers\[{backend}\]"
    ):
        SentenceTransformersScorer("owner/reranker", backend=backend).load()  # type: ignore[arg-type]


@pytest.mark.torch
def test_returns_logits_block_by_block(tmp_path: Path) -> None:
    folder = random_model(tmp_path / "model")
    texts = [f"{PASSAGES[i % 8]} Passage {i}." for i in range(BLOCK_SIZE)] + ["word " * 2_000, "Short."]
    scorer = SentenceTransformersScorer(str(folder))

    first, second = scorer.blocks(QUESTION, texts)

    from sentence_transformers import CrossEncoder

    probabilities = CrossEncoder(str(folder)).predict([(QUESTION, text) for text in texts])
    values = [Score.from_logit(logit).value for logit in first.scores + second.scores]
    assert values == pytest.approx([float(p) for p in probabilities], abs=1e-5)
    assert (first.truncated, second.truncated) == ((), (0,))
    twin = pickle.loads(pickle.dumps(scorer))  # noqa: S301
    assert twin.score(QUESTION, texts[:3]) == pytest.approx(first.scores[:3], abs=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("activation", ["activation.Sigmoid", "linear.Identity"])
def test_returns_logits_whatever_the_models_config_says(tmp_path: Path, activation: str) -> None:
    folder = random_model(tmp_path / "model")
    expected = SentenceTransformersScorer(str(folder)).score(QUESTION, PASSAGES)
    named = Path(shutil.copytree(folder, tmp_path / "named"))
    config = json.loads((named / "config.json").read_text("utf-8"))
    config["sentence_transformers"] = {"activation_fn": f"torch.nn.modules.{activation}"}
    (named / "config.json").write_text(json.dumps(config), "utf-8")

    assert SentenceTransformersScorer(str(named)).score(QUESTION, PASSAGES) == expected


@pytest.mark.torch
def test_a_score_depends_neither_on_the_company_nor_on_repetition(tmp_path: Path) -> None:
    scorer = SentenceTransformersScorer(str(random_model(tmp_path / "model")))
    alone = [scorer.score(QUESTION, [text])[0] for text in PASSAGES]

    scores = scorer.score(QUESTION, PASSAGES * 20)

    assert scores == pytest.approx(alone * 20, abs=1e-5)
    assert len(set(scores)) == len(PASSAGES)


@pytest.mark.torch
@pytest.mark.parametrize("text", ["", "\x00", "\ud800 lone surrogate", "word " * 1_000_000])
def test_odd_text_is_scored(tmp_path: Path, text: str) -> None:
    scorer = SentenceTransformersScorer(str(random_model(tmp_path / "model")))

    [block] = scorer.blocks(QUESTION, [text])

    assert block.truncated == ((0,) if len(text) > 1_000 else ())
    assert Score.from_logit(block.scores[0])


@pytest.mark.torch
def test_serves_many_threads(tmp_path: Path) -> None:
    scorer = SentenceTransformersScorer(str(random_model(tmp_path / "model")))
    expected = scorer.score(QUESTION, PASSAGES)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: scorer.score(QUESTION, PASSAGES), range(16)))

    assert found == [pytest.approx(expected, abs=1e-5)] * 16


@pytest.mark.torch
def test_refuses_several_labels(tmp_path: Path) -> None:
    folder = random_model(tmp_path / "model", labels=3)

    with pytest.raises(InvalidArgument, match="3 labels"):
        SentenceTransformersScorer(str(folder)).load()


@pytest.mark.torch
def test_a_hub_id_is_loaded_from_the_commit_that_its_fingerprint_names(tmp_path: Path) -> None:
    repository = tmp_path / "models--owner--reranker"
    folder = random_model(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, "utf-8")
    code = (
        "from lara_plugins import load_scorer\n"
        "scorer = load_scorer('owner/reranker')\n"
        "logits = scorer.score('who wrote it', ['Mary Shelley wrote it.'])\n"
        "print(COMMIT in scorer.fingerprint, logits)"
    ).replace("COMMIT", repr(COMMIT))
    command = [sys.executable, "-W", "ignore", "-c", code]
    hub = {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    expected = SentenceTransformersScorer(folder).score("who wrote it", ["Mary Shelley wrote it."])

    printed = subprocess.check_output(command, text=True, env=os.environ | hub)  # noqa: S603

    assert printed.split(maxsplit=1)[0] == "True"
    assert json.loads(printed.split(maxsplit=1)[1]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.torch
def test_refuses_a_body_without_a_head(tmp_path: Path) -> None:
    folder = random_model(tmp_path / "model")
    from transformers import BertModel

    BertModel.from_pretrained(folder).save_pretrained(folder)

    with pytest.raises(InvalidArgument, match="is a BertModel, without a head"):
        SentenceTransformersScorer(folder).load()


@pytest.mark.torch
@pytest.mark.parametrize("cut", [0, 100])
@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
)
def test_names_what_is_damaged(tmp_path: Path, file: str, cut: int) -> None:
    folder = random_model(tmp_path / "model")
    (folder / file).write_bytes((folder / file).read_bytes()[:cut])

    named = "weights are damaged" if file == "model.safetensors" else f"{file} is no JSON"
    with pytest.raises(InvalidArgument, match=f"scorer=.*: its {named}"):
        SentenceTransformersScorer(folder).load()


@pytest.mark.torch
def test_names_the_missing_config(tmp_path: Path) -> None:
    folder = random_model(tmp_path / "model")
    (folder / "config.json").unlink()

    with pytest.raises(InvalidArgument, match=r"scorer=.*: has no config\.json"):
        SentenceTransformersScorer(folder).load()


@pytest.mark.torch
def test_refuses_a_tokenizer_without_words(tmp_path: Path) -> None:
    folder = random_model(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")

    # transformers 5 makes a tokenizer without words of that, transformers 4 raises.
    with pytest.raises((InvalidArgument, TypeError)):
        SentenceTransformersScorer(folder).load()


@pytest.mark.torch
def test_a_window_beyond_the_models_positions_is_the_models(tmp_path: Path) -> None:
    folder = random_model(tmp_path / "model")
    long = ["word " * 4_000]

    [block] = SentenceTransformersScorer(folder, max_length=4_096).blocks(QUESTION, long)

    assert block.truncated == (0,)
    assert block.scores == SentenceTransformersScorer(folder).score(QUESTION, long)


@pytest.mark.torch
def test_a_folder_that_changes_is_loaded_again(tmp_path: Path) -> None:
    folder = random_model(tmp_path / "model")
    scorer = SentenceTransformersScorer(folder)
    before = (scorer.fingerprint, scorer.score(QUESTION, PASSAGES))
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"] += 1.0
    save_file(weights, folder / "model.safetensors", {"format": "pt"})

    assert scorer.fingerprint != before[0]
    assert scorer.score(QUESTION, PASSAGES) == pytest.approx([logit + 1 for logit in before[1]], abs=1e-5)
