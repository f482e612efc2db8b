from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pytest

from lara_plugins.errors import InvalidArgument, ScoreError
from lara_plugins.gate import Block, ScoreKind, score_in_time
from lara_plugins.gate.engines.callable import CallableScorer, ScoringFunction
from lara_plugins.gate.engines.langchain import LangChainScorer
from lara_plugins.gate.scorer import BLOCK_SIZE, Scorer


def overlap(query: str, texts: Sequence[str]) -> list[float]:
    return [len(set(query.split()) & set(text.split())) / len(query.split()) for text in texts]


def test_any_function_is_a_scorer() -> None:
    scorer = CallableScorer(overlap, "probability")

    scorer.load()

    assert isinstance(scorer, Scorer)
    assert (scorer.name, scorer.score_kind, scorer.scale_known) == (None, "probability", False)
    assert scorer.score("a b", ["a", "b a", "c"]) == [0.5, 1.0, 0.0]


def test_calls_the_function_block_by_block_and_scores_equal_texts_once() -> None:
    sizes: list[int] = []

    def counted(query: str, texts: Sequence[str]) -> list[float]:
        sizes.append(len(texts))
        return overlap(query, texts)

    blocks = list(CallableScorer(counted, "probability").blocks("a b", [f"a {i % 70}" for i in range(130)]))

    assert sizes == [BLOCK_SIZE, 70 - BLOCK_SIZE]
    assert [block.scores for block in blocks] == [[0.5] * BLOCK_SIZE, [0.5] * BLOCK_SIZE, [0.5] * 2]


def test_a_block_too_many_does_not_make_up_for_one_too_few() -> None:
    """Else every score from there on would be another passage's."""
    drift = iter([1, -1])

    def drifting(query: str, texts: Sequence[str]) -> list[float]:
        return [0.5] * (len(texts) + next(drift))

    with pytest.raises(ScoreError, match="65 scores for 64 passages"):
        CallableScorer(drifting, "probability").score("q", [str(i) for i in range(2 * BLOCK_SIZE)])


@pytest.mark.parametrize(
    "returned", [None, 0.5, [None], ["0.5"], [[0.5]], [1 + 0j], [10**400], [b"1"], "1", {}]
)
@pytest.mark.parametrize("kind", ["logit", "probability"])
def test_what_is_no_series_of_numbers_is_refused(returned: list[float], kind: ScoreKind) -> None:
    class Returning:
        def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
            return returned

    class Own(CallableScorer):
        def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
            yield Block(returned)

    scorers: list[Scorer] = [
        CallableScorer(lambda query, texts: returned, kind),
        LangChainScorer(Returning(), kind),
    ]
    if isinstance(returned, list):
        scorers.append(Own(overlap, kind))

    for scorer in scorers:
        with pytest.raises(ScoreError):
            score_in_time(scorer, "q", ["a"], lambda: 1.0)


def test_another_kind_of_score_is_refused() -> None:
    scorer = CallableScorer(overlap, "probability")
    scorer.score_kind = "logits"  # type: ignore[assignment]

    with pytest.raises(InvalidArgument, match="score_kind='logits': choose one of logit, probability"):
        score_in_time(scorer, "a b", ["a"], lambda: 1.0)


def test_refuses_what_is_no_function_and_an_unknown_kind() -> None:
    with pytest.raises(InvalidArgument, match="function=3"):
        CallableScorer(3, "logit")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="score_kind='cosine': choose one of logit, probability"):
        CallableScorer(overlap, "cosine")  # type: ignore[arg-type]


def made(constant: float) -> ScoringFunction:
    def function(query: str, texts: Sequence[str]) -> list[float]:
        return [constant] * len(texts)

    return function


def constant(query: str, texts: Sequence[str], of: float = 0.0) -> list[float]:
    return [of] * len(texts)


def test_the_fingerprint_tells_functions_apart() -> None:
    class Model:
        def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
            return [0.0] * len(texts)

    functions: list[ScoringFunction] = [
        overlap,
        Model(),
        made(0.0),
        made(1.0),
        partial(constant, of=0.0),
        partial(constant, of=1.0),
        lambda query, texts: [0.0] * len(texts),
        lambda query, texts: [1.0] * len(texts),
    ]

    assert len({CallableScorer(function, "logit").fingerprint for function in functions}) == len(functions)
    assert CallableScorer(overlap, "logit").fingerprint == CallableScorer(overlap, "logit").fingerprint
    assert CallableScorer(overlap, "logit", fingerprint="overlap-2").fingerprint == "overlap-2"


class Overlap:
    """A cross-encoder as LangChain has them, whose score is the share of the question's words."""

    model_name = "overlap"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self.calls.append(len(text_pairs))
        return [overlap(query, [text])[0] for query, text in text_pairs]


class TestLangChain:
    def test_any_cross_encoder_of_langchain_is_a_scorer(self) -> None:
        cross_encoders = pytest.importorskip("langchain_core.cross_encoders")

        class Encoder(Overlap, cross_encoders.BaseCrossEncoder):  # type: ignore[misc, name-defined]
            pass

        scorer = LangChainScorer(Encoder(), "probability")

        scorer.load()

        assert isinstance(scorer, Scorer)
        assert (scorer.name, scorer.score_kind, scorer.scale_known) == (None, "probability", False)
        assert scorer.score("a b", ["a", "b a", "c"]) == [0.5, 1.0, 0.0]

    def test_scores_block_by_block_and_equal_texts_once(self) -> None:
        encoder = Overlap()
        texts = [f"a {i % 70}" for i in range(3 * BLOCK_SIZE)]

        blocks = list(LangChainScorer(encoder, "probability").blocks("a b", texts))

        assert [len(block.scores) for block in blocks] == [BLOCK_SIZE] * 3
        assert {score for block in blocks for score in block.scores} == {0.5}
        assert encoder.calls == [BLOCK_SIZE, 70 - BLOCK_SIZE]

    def test_numpy_and_iterators_come_out_as_floats(self) -> None:
        numpy = pytest.importorskip("numpy")

        class Returning:
            def __init__(self, scores: Iterable[float]) -> None:
                self.scores = scores

            def score(self, text_pairs: list[tuple[str, str]]) -> Iterable[float]:
                return self.scores

        for scores in (numpy.array([0.5, 1.0], dtype=numpy.float32), iter([0.5, 1.0])):
            found = LangChainScorer(Returning(scores), "logit").score("q", ["a", "b"])
            assert found == [0.5, 1.0]
            assert [type(score) for score in found] == [float, float]

    def test_a_wrong_count_is_refused(self) -> None:
        class Short:
            def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
                return [0.5]

        with pytest.raises(ScoreError, match="1 scores for 2 passages"):
            LangChainScorer(Short(), "probability").score("q", ["a", "b"])

    def test_the_fingerprint_tells_encoders_and_models_apart(self) -> None:
        class Other(Overlap):
            model_name = "other"

        encoders = [Overlap(), Other()]

        assert len({LangChainScorer(encoder, "logit").fingerprint for encoder in encoders}) == 2
        assert LangChainScorer(Overlap(), "logit").fingerprint.endswith("Overlap/overlap/logit")
        assert LangChainScorer(Overlap(), "logit", fingerprint="mine").fingerprint == "mine"

    def test_refuses_what_is_no_cross_encoder(self) -> None:
        with pytest.raises(InvalidArgument, match="encoder="):
            LangChainScorer(overlap, "logit")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="score_kind='cosine': choose one of logit, probability"):
            LangChainScorer(Overlap(), "cosine")  # type: ignore[arg-type]
