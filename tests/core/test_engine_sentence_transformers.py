from __future__ import annotations

import json
import pickle
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cross_encoders import PASSAGES, QUESTION, random_model

from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.sentence_transformers import SentenceTransformersScorer
from lara_plugins.gate.scorer import BLOCK_SIZE
from lara_plugins.passages import Score


def test_only_the_published_model_has_a_known_scale() -> None:
    assert SentenceTransformersScorer("cross-encoder/ms-marco-MiniLM-L-6-v2").scale_known
    assert not SentenceTransformersScorer("BAAI/bge-reranker-v2-m3").scale_known


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(MissingExtra, match=r"sentence-transformers is.*\[cross-encoder\]"):
        SentenceTransformersScorer("cross-encoder/ms-marco-MiniLM-L-6-v2").load()


def test_every_setting_that_changes_scores_changes_the_fingerprint_and_leaves_no_name() -> None:
    plain = SentenceTransformersScorer("owner/reranker")
    others = [
        SentenceTransformersScorer("owner/reranker", revision="v2"),
        SentenceTransformersScorer("owner/reranker", max_length=256),
        SentenceTransformersScorer("owner/reranker", precision="bfloat16"),
        SentenceTransformersScorer("owner/reranker", backend="openvino"),
        SentenceTransformersScorer("owner/reranker", backend="onnx"),
        SentenceTransformersScorer("owner/reranker", backend="onnx", file="onnx/model_O3.onnx"),
    ]

    assert plain.name == "owner/reranker"
    assert plain.fingerprint == "sentence-transformers/owner/reranker@main/float32/512"
    assert [scorer.name for scorer in others] == [None] * len(others)
    assert len({scorer.fingerprint for scorer in [plain, *others]}) == len(others) + 1


def test_the_fingerprint_of_a_folder_follows_its_weights(tmp_path: Path) -> None:
    def fingerprint(folder: str, weights: bytes) -> str:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.safetensors").write_bytes(weights)
        return SentenceTransformersScorer(str(tmp_path / folder)).fingerprint

    assert fingerprint("here", b"weights") == fingerprint("there", b"weights")
    assert fingerprint("other", b"other weights") != fingerprint("fourth", b"weights")


def test_a_folder_without_weights_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="has no weights for torch"):
        _ = SentenceTransformersScorer(str(tmp_path)).fingerprint


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_length": 8}, "max_length=8"),
        ({"backend": "tensorrt"}, "backend='tensorrt': choose one of torch, onnx, openvino"),
        ({"precision": "int8"}, "precision='int8': choose one of float32, bfloat16, float16"),
        ({"file": "onnx/model.onnx"}, "torch takes none"),
        ({"backend": "onnx", "precision": "float16"}, "give the onnx file of that precision"),
    ],
)
def test_refuses_settings_that_do_not_fit(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        SentenceTransformersScorer("owner/reranker", **settings)  # type: ignore[arg-type]


@pytest.mark.torch
@pytest.mark.parametrize(("backend", "extra"), [("onnx", r"\[onnx\]"), ("openvino", r"\[openvino\]")])
def test_says_what_a_backend_needs(backend: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    monkeypatch.setattr("lara_plugins.gate.engines.sentence_transformers.find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match=rf"optimum is not installed.*sentence-transformers{extra}"):
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
