"""One score space: what a score is does not depend on the engine that it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from cross_encoders import ANSWERING, EMBEDDED_FOLDER, PASSAGES, QUESTION, random_model
from hypothesis import given
from hypothesis import strategies as st
from pinecone_server import PineconeServer

from lara_plugins.gate import BLOCK_SIZE, ScoreKind, Scorer, ThresholdGate, load_scorer, score_in_time
from lara_plugins.gate.engines.caching import CachingScorer
from lara_plugins.gate.engines.callable import CallableScorer
from lara_plugins.gate.engines.langchain import LangChainScorer
from lara_plugins.gate.engines.onnx import OnnxCrossEncoder
from lara_plugins.gate.engines.pinecone import PineconeReranker
from lara_plugins.gate.engines.sentence_transformers import SentenceTransformersScorer
from lara_plugins.passages import Score

np = pytest.importorskip("numpy")

FINITE = st.floats(-1e6, 1e6)
SHARES = st.floats(0, 1)


class Listed:
    """A LangChain cross-encoder that returns what it was made with, text by text."""

    def __init__(self, scores: Sequence[float]) -> None:
        self.scores = dict(zip(texts_for(scores), scores, strict=True))

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [self.scores[text] for _, text in text_pairs]


def texts_for(scores: Sequence[float]) -> list[str]:
    return [f"text {position}" for position in range(len(scores))]


def injected(scores: Sequence[float], kind: ScoreKind) -> list[Scorer]:
    """These scores from every engine that takes another's."""
    listed = Listed(scores)

    def function(query: str, texts: Sequence[str]) -> list[float]:
        return listed.score([(query, text) for text in texts])

    langchain = LangChainScorer(listed, kind)
    return [CallableScorer(function, kind), langchain, CachingScorer(langchain, size=3)]


def values(scorer: Scorer, texts: Sequence[str]) -> list[Score | None]:
    return list(score_in_time(scorer, QUESTION, texts, lambda: math.inf).scores)


class TestValues:
    @given(st.lists(FINITE, min_size=1, max_size=80))
    def test_the_same_logit_is_the_same_value_through_every_engine(self, logits: list[float]) -> None:
        expected = [Score.from_logit(logit) for logit in logits]

        for scorer in injected(logits, "logit"):
            assert values(scorer, texts_for(logits)) == expected

    @given(st.lists(SHARES, min_size=1, max_size=80))
    def test_the_same_probability_is_the_same_value_through_every_engine(self, shares: list[float]) -> None:
        expected = [Score(share, share) for share in shares]

        for scorer in injected(shares, "probability"):
            assert values(scorer, texts_for(shares)) == expected

    @given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=20))
    def test_a_logits_type_does_not_matter(self, logits: list[float]) -> None:
        for kind in (np.float32, np.float64, float):
            typed = [kind(logit) for logit in logits]
            for scorer in injected(typed, "logit"):
                assert values(scorer, texts_for(logits)) == [Score.from_logit(logit) for logit in logits]

    def test_the_onnx_engines_logits_keep_their_values_when_passed_on(self) -> None:
        raw = OnnxCrossEncoder(EMBEDDED_FOLDER)
        expected = values(raw, PASSAGES)
        passed_on = CallableScorer(raw.score, "logit")

        assert values(CachingScorer(raw), PASSAGES) == expected
        assert values(passed_on, PASSAGES) == expected

    @pytest.mark.torch
    def test_the_same_weights_score_alike_on_torch_and_on_onnx(self, tmp_path: Path) -> None:
        folder = random_model(tmp_path / "model")
        export(folder)
        torch_scores = SentenceTransformersScorer(str(folder)).score(QUESTION, PASSAGES)

        # How far 8 bits are off depends on the processor: some add their products up in 16 bits.
        for model, tolerance in (("model.onnx", 1e-5), ("model_fp16.onnx", 1e-3), ("model_int8.onnx", 1e-1)):
            found = OnnxCrossEncoder(folder, model=f"onnx/{model}").score(QUESTION, PASSAGES)
            assert found == pytest.approx(torch_scores, abs=tolerance)


class TestTheta:
    @given(FINITE)
    def test_a_logit_at_theta_is_kept_by_every_engine(self, logit: float) -> None:
        gate = ThresholdGate(theta=Score.from_logit(logit).value)

        for scorer in injected([logit], "logit"):
            assert gate.admit(values(scorer, texts_for([logit]))).kept == (0,)

    @given(SHARES)
    def test_a_probability_at_theta_is_kept_and_the_next_below_is_not(self, share: float) -> None:
        shares = [share, math.nextafter(share, -1)] if share > 0 else [share]
        gate = ThresholdGate(theta=share)

        for scorer in injected(shares, "probability"):
            assert gate.admit(values(scorer, texts_for(shares))).kept == (0,)

    @pytest.mark.parametrize("name", ["embedded", f"onnx:{EMBEDDED_FOLDER}"])
    def test_an_engines_own_logit_at_theta_is_kept(self, name: str) -> None:
        [score] = values(load_scorer(name), [ANSWERING])
        assert score is not None

        assert ThresholdGate(theta=score.value).admit([score]).kept == (0,)
        assert (
            ThresholdGate(theta=math.nextafter(score.value, 1), on_empty="abstain").admit([score]).kept == ()
        )

    def test_a_lone_relevant_passage_is_kept(self) -> None:
        company = values(load_scorer("embedded"), PASSAGES)
        alone = values(load_scorer("embedded"), [ANSWERING])

        assert ThresholdGate().admit(alone).kept == (0,)
        assert 1 in ThresholdGate().admit(company).kept

    def test_a_lone_passage_that_is_not_relevant_is_not_kept(self) -> None:
        assert ThresholdGate().admit(values(load_scorer("embedded"), PASSAGES[:1])).kept == ()


class TestTies:
    @given(st.lists(st.floats(8, 9), min_size=2, max_size=40))
    def test_logits_that_collapse_in_bfloat16_keep_the_retrieval_order(self, logits: list[float]) -> None:
        bits = np.array(logits, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        collapsed = [float(logit) for logit in bits.view(np.float32)]

        for scorer in injected(collapsed, "logit"):
            kept = ThresholdGate().admit(values(scorer, texts_for(logits))).kept
            assert list(kept) == sorted(range(len(logits)), key=lambda i: (-collapsed[i], i))

    @given(st.lists(st.floats(40, 700), min_size=2, max_size=40, unique=True))
    def test_logits_whose_values_saturate_are_ordered_by_logit(self, logits: list[float]) -> None:
        for scorer in injected(logits, "logit"):
            scores = values(scorer, texts_for(logits))
            kept = ThresholdGate().admit(scores).kept
            assert {score.value for score in scores if score} == {1.0}
            assert list(kept) == sorted(range(len(logits)), key=lambda i: -logits[i])

    @pytest.mark.torch
    def test_a_model_in_bfloat16_keeps_ties_in_retrieval_order(self, tmp_path: Path) -> None:
        folder = str(random_model(tmp_path / "model"))
        texts = [f"passage number {i}" for i in range(200)]
        exact = SentenceTransformersScorer(folder).score(QUESTION, texts)
        half = SentenceTransformersScorer(folder, precision="bfloat16")

        scores = [Score.from_logit(logit) for logit in half.score(QUESTION, texts)]

        ranks = [score.rank for score in scores]
        assert ranks == pytest.approx(exact, abs=0.05)
        assert len(set(ranks)) < len(set(exact))
        kept = ThresholdGate(theta=0.0).admit(scores).kept
        assert list(kept) == sorted(range(200), key=lambda i: (-ranks[i], i))


class TestTime:
    """Every engine stops after the block in which the time ends."""

    TEXTS = tuple(f"{PASSAGES[i % 8]} Passage {i}." for i in range(2 * BLOCK_SIZE + 10))

    @pytest.fixture(params=["embedded", "onnx", "callable", "langchain", "caching"])
    def scorer(self, request: pytest.FixtureRequest) -> Scorer:
        def zeros(query: str, texts: Sequence[str]) -> list[float]:
            return [0.0] * len(texts)

        class Zeros:
            def score(self, text_pairs: list[tuple[str, str]]) -> Iterable[float]:
                return zeros("", [text for _, text in text_pairs])

        engines: dict[str, Callable[[], Scorer]] = {
            "embedded": lambda: load_scorer("embedded"),
            "onnx": lambda: OnnxCrossEncoder(EMBEDDED_FOLDER),
            "callable": lambda: CallableScorer(zeros, "logit"),
            "langchain": lambda: LangChainScorer(Zeros(), "logit"),
            "caching": lambda: CachingScorer(load_scorer("embedded")),
        }
        return engines[str(request.param)]()

    def test_the_first_block_is_scored_and_no_other(self, scorer: Scorer) -> None:
        self.stops_after_the_first_block(scorer, BLOCK_SIZE)

    @pytest.mark.torch
    def test_sentence_transformers_stops(self, tmp_path: Path) -> None:
        folder = random_model(tmp_path / "model")
        self.stops_after_the_first_block(SentenceTransformersScorer(str(folder)), BLOCK_SIZE)

    @pytest.fixture
    def server(self) -> Iterator[PineconeServer]:
        with PineconeServer() as server:
            yield server

    def test_pinecone_stops(self, server: PineconeServer) -> None:
        pinecone = pytest.importorskip("pinecone", reason="pinecone is not installed")
        client = pinecone.Pinecone(api_key="key", host=server.url)

        self.stops_after_the_first_block(PineconeReranker(client=client), 100)
        assert len(server.requests) == 1

    def stops_after_the_first_block(self, scorer: Scorer, size: int) -> None:
        scored = score_in_time(scorer, QUESTION, self.TEXTS, lambda: 0.0)

        assert [score is not None for score in scored.scores] == [
            position < size for position in range(len(self.TEXTS))
        ]


def export(folder: Path) -> None:
    """The model beside its weights, as hubs have it: in float32, float16 and dynamic int8."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("sympy", reason="onnxruntime's converters need sympy")
    import torch
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.arange(1000, 1018).reshape(2, 9)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    (folder / "onnx").mkdir()
    path = folder / "onnx" / "model.onnx"
    torch.onnx.export(
        model,
        (ids, torch.ones_like(ids), torch.zeros_like(ids)),
        str(path),
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "batch", 1: "sequence"} for name in names} | {"logits": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )
    quantize_dynamic(path, path.with_name("model_int8.onnx"))
    onnx.save(convert_float_to_float16(onnx.load(path)), path.with_name("model_fp16.onnx"))
