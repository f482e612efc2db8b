from __future__ import annotations

import copy
import json
import math
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.batching import batches_by_length
from lara_plugins.gate.engines.callable import CallableScorer, ScoringFunction
from lara_plugins.gate.engines.embedded import EmbeddedCrossEncoder
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.sentence_transformers import SentenceTransformersScorer
from lara_plugins.gate.scorer import BLOCK_SIZE, Scorer
from lara_plugins.passages import Score

QUESTION = "who wrote the novel Frankenstein"
ANSWERING = "Frankenstein\nFrankenstein is an 1818 novel written by the English author Mary Shelley."
PASSAGES = [
    "Mount Etna\nMount Etna is an active volcano on the east coast of Sicily.",
    ANSWERING,
    "Glass\nThe batch is melted in a furnace at about 1500 degrees.",
    "Tariff\nA tariff is a tax on imports " + "or exports between sovereign states " * 20,
    "",
    "Приветствие\nЭто предложение написано по-русски.",
    "天気\n今日は雨が降っています。",
    "Short.",
]
LOGIT_OF_THETA = math.log(0.3 / 0.7)


@pytest.fixture(scope="module")
def scorer() -> EmbeddedCrossEncoder:
    return EmbeddedCrossEncoder()


@pytest.fixture(scope="module")
def embedded_folder(scorer: EmbeddedCrossEncoder) -> Path:
    import lara_plugins.gate

    return Path(lara_plugins.gate.__file__).parent / "embedded_model"


@pytest.fixture
def model_folder(embedded_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(embedded_folder, tmp_path / "model"))


def edit_config(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


@given(st.lists(st.integers(1, 600), max_size=100), st.integers(1, 4000))
def test_batches_hold_every_pair_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = batches_by_length(lengths, budget)

    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[p] for p in batch) <= budget


class TestEmbedded:
    def test_is_a_scorer_whose_scale_is_known(self, scorer: EmbeddedCrossEncoder) -> None:
        assert isinstance(scorer, Scorer)
        assert (scorer.name, scorer.score_kind, scorer.scale_known) == ("embedded", "logit", True)

    def test_keeps_the_passage_that_answers_and_drops_the_rest_at_the_published_threshold(
        self, scorer: EmbeddedCrossEncoder
    ) -> None:
        values = [Score.from_logit(logit).value for logit in scorer.score(QUESTION, PASSAGES)]

        english = [(text, value) for text, value in zip(PASSAGES, values, strict=True) if text.isascii()]
        assert [text for text, value in english if value >= 0.3] == [ANSWERING]

    def test_scores_are_python_floats_in_order_and_the_same_as_all_blocks(
        self, scorer: EmbeddedCrossEncoder
    ) -> None:
        texts = [f"{PASSAGES[i % 8]} Passage {i}." for i in range(2 * BLOCK_SIZE + 10)]

        blocks = list(scorer.blocks(QUESTION, texts))

        assert [len(block.scores) for block in blocks] == [BLOCK_SIZE, BLOCK_SIZE, 10]
        assert scorer.score(QUESTION, texts) == [score for block in blocks for score in block.scores]
        assert {type(score) for block in blocks for score in block.scores} == {float}

    @settings(max_examples=15)
    @given(st.permutations(range(len(PASSAGES))), st.integers(1, len(PASSAGES)))
    def test_a_score_does_not_depend_on_the_company(self, order: list[int], count: int) -> None:
        scorer = EmbeddedCrossEncoder()
        alone = [scorer.score(QUESTION, [text])[0] for text in PASSAGES]

        chosen = order[:count]

        assert scorer.score(QUESTION, [PASSAGES[i] for i in chosen]) == pytest.approx(
            [alone[i] for i in chosen], abs=1e-4
        )

    def test_equal_texts_have_equal_scores(self, scorer: EmbeddedCrossEncoder) -> None:
        texts = [ANSWERING, *PASSAGES, ANSWERING] * 10

        scores = scorer.score(QUESTION, texts)

        assert len({score for text, score in zip(texts, scores, strict=True) if text == ANSWERING}) == 1

    def test_no_texts_are_no_blocks(self, scorer: EmbeddedCrossEncoder) -> None:
        assert scorer.score(QUESTION, []) == []
        assert list(scorer.blocks(QUESTION, [])) == []

    def test_a_passage_beyond_the_window_is_reported_in_its_block(self, scorer: EmbeddedCrossEncoder) -> None:
        long = ANSWERING + " The weather was cold." * 400
        texts = ["Short."] * BLOCK_SIZE + [ANSWERING, long, "Short.", long]

        first, second = scorer.blocks(QUESTION, texts)

        assert (first.truncated, second.truncated) == ((), (1, 3))

    @pytest.mark.parametrize("question", ["who wrote it? " * 1_500, "x" * 20_000, "?!" * 10_000])
    def test_a_question_beyond_the_window_leaves_room_for_the_passage(
        self, scorer: EmbeddedCrossEncoder, question: str
    ) -> None:
        scores = scorer.score(question, [*PASSAGES, "word " * 2_000])

        assert all(math.isfinite(score) for score in scores)
        assert len(set(scores)) > 1

    @pytest.mark.parametrize("text", ["", " \n\t", "\x00", "\ud800 lone surrogate", "👩‍👩‍👧" * 50, "ﷺ" * 900])
    def test_odd_text_is_scored(self, scorer: EmbeddedCrossEncoder, text: str) -> None:
        assert math.isfinite(scorer.score(QUESTION, [text])[0])
        assert math.isfinite(scorer.score(text, [ANSWERING])[0])

    def test_serves_many_threads(self, scorer: EmbeddedCrossEncoder) -> None:
        questions = [f"{QUESTION} {i}" for i in range(16)]
        expected = [scorer.score(question, PASSAGES) for question in questions]

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda question: scorer.score(question, PASSAGES), questions))

        assert found == [pytest.approx(scores, abs=1e-4) for scores in expected]

    @pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])  # noqa: S301
    def test_copies_and_pickles_after_loading(
        self, scorer: EmbeddedCrossEncoder, clone: Callable[[EmbeddedCrossEncoder], EmbeddedCrossEncoder]
    ) -> None:
        scorer.load()

        twin = clone(scorer)

        assert twin.fingerprint == scorer.fingerprint
        assert twin.score(QUESTION, PASSAGES) == scorer.score(QUESTION, PASSAGES)

    @pytest.mark.skipif(sys.platform != "linux", reason="forking is the start method of Linux")
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_scores_in_a_forked_child(self) -> None:
        scorer = EmbeddedCrossEncoder(threads=2)
        expected = scorer.score(QUESTION, PASSAGES)
        receive, send = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(
            target=lambda: send.send(scorer.score(QUESTION, PASSAGES)), daemon=True
        )

        child.start()

        assert receive.poll(60), "the child waits for threads that it does not have"
        assert receive.recv() == pytest.approx(expected, abs=1e-4)
        child.join()

    def test_says_what_to_install(
        self, scorer: EmbeddedCrossEncoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(sys.modules, "lara_plugins.gate.engines.onnx_session", raising=False)
        monkeypatch.setitem(sys.modules, "onnxruntime", None)

        with pytest.raises(MissingExtra, match=r"onnxruntime is not installed.*lara-plugins\[embedded\]"):
            EmbeddedCrossEncoder().load()

    def test_refuses_no_threads(self) -> None:
        with pytest.raises(InvalidArgument, match="threads=0"):
            EmbeddedCrossEncoder(threads=0)


class TestOnnxFolder:
    def test_the_embedded_scorer_is_an_affine_of_its_raw_logits(
        self, scorer: EmbeddedCrossEncoder, embedded_folder: Path
    ) -> None:
        scaling = json.loads((embedded_folder / "config.json").read_text("utf-8"))["lara"]["scaling"]

        raw = OnnxCrossEncoder(embedded_folder).score(QUESTION, PASSAGES)

        expected = [scaling["scale"] * logit + scaling["shift"] for logit in raw]
        assert scorer.score(QUESTION, PASSAGES) == pytest.approx(expected)

    def test_a_folder_has_no_known_scale_and_is_its_name(self, model_folder: Path) -> None:
        scorer = OnnxCrossEncoder(model_folder)

        assert isinstance(scorer, Scorer)
        assert (scorer.name, scorer.scale_known) == (f"onnx:{model_folder}", False)

    def test_a_setting_that_the_name_does_not_carry_leaves_no_name(self, model_folder: Path) -> None:
        assert OnnxCrossEncoder(model_folder, max_length=128).name is None

    def test_a_smaller_window_cuts_sooner_and_changes_the_fingerprint(self, model_folder: Path) -> None:
        text = ANSWERING + " The weather was cold." * 30
        wide, narrow = OnnxCrossEncoder(model_folder), OnnxCrossEncoder(model_folder, max_length=64)

        assert [block.truncated for block in wide.blocks(QUESTION, [text])] == [()]
        assert [block.truncated for block in narrow.blocks(QUESTION, [text])] == [(0,)]
        assert wide.fingerprint != narrow.fingerprint

    def test_the_fingerprint_follows_the_weights_not_the_place(
        self, model_folder: Path, embedded_folder: Path
    ) -> None:
        same = OnnxCrossEncoder(model_folder).fingerprint
        (model_folder / "other.onnx").write_bytes((model_folder / "model.onnx").read_bytes() + b"\0")

        assert same == OnnxCrossEncoder(embedded_folder).fingerprint
        assert same != OnnxCrossEncoder(model_folder, model="other.onnx").fingerprint

    @pytest.mark.parametrize("place", ["onnx/model.onnx", "onnx/model_quantized.onnx"])
    def test_finds_the_model_where_hubs_put_it(self, model_folder: Path, place: str) -> None:
        expected = OnnxCrossEncoder(model_folder).score(QUESTION, [ANSWERING])
        (model_folder / "onnx").mkdir()
        (model_folder / "model.onnx").rename(model_folder / place)

        assert OnnxCrossEncoder(model_folder).score(QUESTION, [ANSWERING]) == expected

    def test_asks_which_of_several_models(self, model_folder: Path) -> None:
        (model_folder / "onnx").mkdir()
        (model_folder / "model.onnx").rename(model_folder / "onnx" / "model_int8.onnx")
        shutil.copy(model_folder / "onnx" / "model_int8.onnx", model_folder / "onnx" / "model_fp16.onnx")

        with pytest.raises(InvalidArgument, match=r"name one of onnx/model_fp16.onnx, onnx/model_int8.onnx"):
            OnnxCrossEncoder(model_folder)

        OnnxCrossEncoder(model_folder, model="onnx/model_int8.onnx").load()

    @pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "config.json"])
    def test_names_the_missing_file(self, model_folder: Path, file: str) -> None:
        (model_folder / file).unlink()

        with pytest.raises(InvalidArgument, match=f"has no {file}"):
            OnnxCrossEncoder(model_folder)

    def test_names_the_missing_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgument, match="no such folder"):
            OnnxCrossEncoder(tmp_path / "nowhere")

    @pytest.mark.parametrize("content", ["{", "[]"])
    def test_refuses_a_config_that_is_no_object(self, model_folder: Path, content: str) -> None:
        (model_folder / "config.json").write_text(content, "utf-8")

        with pytest.raises(InvalidArgument, match=r"its config\.json"):
            OnnxCrossEncoder(model_folder)

    def test_refuses_several_labels(self, model_folder: Path) -> None:
        edit_config(model_folder, id2label={"0": "contradiction", "1": "entailment", "2": "neutral"})

        with pytest.raises(InvalidArgument, match="3 labels; give a cross-encoder with one"):
            OnnxCrossEncoder(model_folder)

    def test_the_window_is_the_least_that_the_files_allow(self, model_folder: Path) -> None:
        (model_folder / "tokenizer_config.json").write_text('{"model_max_length": 256}', "utf-8")
        assert OnnxCrossEncoder(model_folder).max_length == 256

        edit_config(model_folder, max_position_embeddings=128)
        assert OnnxCrossEncoder(model_folder, max_length=512).max_length == 128

    @pytest.mark.parametrize("max_length", [0, 15, 513])
    def test_refuses_a_window_out_of_range(self, model_folder: Path, max_length: int) -> None:
        with pytest.raises(InvalidArgument, match=f"max_length={max_length}"):
            OnnxCrossEncoder(model_folder, max_length=max_length)


class TestCallable:
    @staticmethod
    def overlap(query: str, texts: Sequence[str]) -> list[float]:
        return [len(set(query.split()) & set(text.split())) / len(query.split()) for text in texts]

    def test_any_function_is_a_scorer(self) -> None:
        scorer = CallableScorer(self.overlap, "probability")

        scorer.load()

        assert isinstance(scorer, Scorer)
        assert (scorer.name, scorer.score_kind, scorer.scale_known) == (None, "probability", False)
        assert scorer.score("a b", ["a", "b a", "c"]) == [0.5, 1.0, 0.0]

    def test_calls_the_function_block_by_block_and_passes_on_what_came(self) -> None:
        sizes: list[int] = []

        def two_too_few(query: str, texts: Sequence[str]) -> list[float]:
            sizes.append(len(texts))
            return [0.0] * (len(texts) - 2)

        blocks = list(CallableScorer(two_too_few, "logit").blocks("q", ["t"] * (BLOCK_SIZE + 5)))

        assert sizes == [BLOCK_SIZE, 5]
        assert [len(block.scores) for block in blocks] == [BLOCK_SIZE - 2, 3]

    def test_the_fingerprint_tells_functions_apart(self) -> None:
        class Model:
            def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
                return [0.0] * len(texts)

        functions: list[ScoringFunction] = [self.overlap, Model(), lambda query, texts: [1.0] * len(texts)]

        assert len({CallableScorer(function, "logit").fingerprint for function in functions}) == 3
        assert CallableScorer(self.overlap, "logit", fingerprint="overlap-2").fingerprint == "overlap-2"


class TestSentenceTransformers:
    @staticmethod
    def random_model(folder: Path, embedded_folder: Path, labels: int = 1) -> Path:
        pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
        import torch
        from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

        torch.manual_seed(0)
        config = BertConfig(
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            num_labels=labels,
        )
        BertForSequenceClassification(config).save_pretrained(folder)
        special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
        PreTrainedTokenizerFast(
            tokenizer_file=str(embedded_folder / "tokenizer.json"), model_max_length=512, **special
        ).save_pretrained(folder)
        return folder

    def test_only_the_published_model_has_a_known_scale(self) -> None:
        assert SentenceTransformersScorer("cross-encoder/ms-marco-MiniLM-L-6-v2").scale_known
        assert not SentenceTransformersScorer("BAAI/bge-reranker-v2-m3").scale_known

    def test_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)

        with pytest.raises(MissingExtra, match=r"sentence-transformers is.*\[cross-encoder\]"):
            SentenceTransformersScorer("cross-encoder/ms-marco-MiniLM-L-6-v2").load()

    @pytest.mark.torch
    def test_returns_logits_block_by_block(self, tmp_path: Path, embedded_folder: Path) -> None:
        folder = self.random_model(tmp_path / "model", embedded_folder)
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
    def test_serves_many_threads(self, tmp_path: Path, embedded_folder: Path) -> None:
        scorer = SentenceTransformersScorer(str(self.random_model(tmp_path / "model", embedded_folder)))
        expected = scorer.score(QUESTION, PASSAGES)

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: scorer.score(QUESTION, PASSAGES), range(16)))

        assert found == [pytest.approx(expected, abs=1e-5)] * 16

    @pytest.mark.torch
    def test_refuses_several_labels(self, tmp_path: Path, embedded_folder: Path) -> None:
        folder = self.random_model(tmp_path / "model", embedded_folder, labels=3)

        with pytest.raises(InvalidArgument, match="3 labels"):
            SentenceTransformersScorer(str(folder)).load()


def test_nothing_heavy_is_imported_before_the_first_score() -> None:
    script = (
        "import sys; from lara_plugins.gate.loading import load_scorer\n"
        "load_scorer('embedded').fingerprint; load_scorer('cross-encoder/any')\n"
        "print([m for m in ('numpy', 'onnxruntime', 'tokenizers', 'torch') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.strip() == "[]"
