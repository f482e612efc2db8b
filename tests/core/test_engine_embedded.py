from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from cross_encoders import ANSWERING, PASSAGES, QUESTION
from hypothesis import given, settings
from hypothesis import strategies as st

from lara_plugins.errors import InvalidArgument, MissingExtra
from lara_plugins.gate.engines.embedded import EmbeddedScorer
from lara_plugins.gate.scorer import BLOCK_SIZE, Scorer
from lara_plugins.passages import Score


@pytest.fixture(scope="module")
def scorer() -> EmbeddedScorer:
    return EmbeddedScorer()


def test_is_a_scorer_whose_scale_is_known(scorer: EmbeddedScorer) -> None:
    assert isinstance(scorer, Scorer)
    assert (scorer.name, scorer.score_kind, scorer.scale_known) == ("embedded", "logit", True)


def test_keeps_the_passage_that_answers_and_drops_the_rest_at_the_published_threshold(
    scorer: EmbeddedScorer,
) -> None:
    values = [Score.from_logit(logit).value for logit in scorer.score(QUESTION, PASSAGES)]

    english = [(text, value) for text, value in zip(PASSAGES, values, strict=True) if text.isascii()]
    assert [text for text, value in english if value >= 0.3] == [ANSWERING]


def test_scores_are_python_floats_in_order_and_the_same_as_all_blocks(scorer: EmbeddedScorer) -> None:
    texts = [f"{PASSAGES[i % 8]} Passage {i}." for i in range(2 * BLOCK_SIZE + 10)]

    blocks = list(scorer.blocks(QUESTION, texts))

    assert [len(block.scores) for block in blocks] == [BLOCK_SIZE, BLOCK_SIZE, 10]
    assert scorer.score(QUESTION, texts) == [score for block in blocks for score in block.scores]
    assert {type(score) for block in blocks for score in block.scores} == {float}


@settings(max_examples=15)
@given(st.permutations(range(len(PASSAGES))), st.integers(1, len(PASSAGES)))
def test_a_score_does_not_depend_on_the_company(order: list[int], count: int) -> None:
    scorer = EmbeddedScorer()
    alone = [scorer.score(QUESTION, [text])[0] for text in PASSAGES]

    chosen = order[:count]

    assert scorer.score(QUESTION, [PASSAGES[i] for i in chosen]) == [alone[i] for i in chosen]


def test_equal_texts_have_equal_scores(scorer: EmbeddedScorer) -> None:
    texts = [ANSWERING, *PASSAGES, ANSWERING] * 10

    scores = scorer.score(QUESTION, texts)

    assert len({score for text, score in zip(texts, scores, strict=True) if text == ANSWERING}) == 1


def test_no_texts_are_no_blocks(scorer: EmbeddedScorer) -> None:
    assert scorer.score(QUESTION, []) == []
    assert list(scorer.blocks(QUESTION, [])) == []


def test_a_passage_beyond_the_window_is_reported_in_its_block(scorer: EmbeddedScorer) -> None:
    long = ANSWERING + " The weather was cold." * 400
    texts = ["Short."] * BLOCK_SIZE + [ANSWERING, long, "Short.", long]

    first, second = scorer.blocks(QUESTION, texts)

    assert (first.truncated, second.truncated) == ((), (1, 3))


@pytest.mark.parametrize("question", ["who wrote it? " * 1_500, "x" * 20_000, "?!" * 10_000])
def test_a_question_beyond_the_window_leaves_room_for_the_passage(
    scorer: EmbeddedScorer, question: str
) -> None:
    scores = scorer.score(question, [*PASSAGES, "word " * 2_000])

    assert all(math.isfinite(score) for score in scores)
    assert len(set(scores)) > 1


@pytest.mark.parametrize("text", ["", " \n\t", "\x00", "\ud800 lone surrogate", "👩‍👩‍👧" * 50, "ﷺ" * 900])
def test_odd_text_is_scored(scorer: EmbeddedScorer, text: str) -> None:
    assert math.isfinite(scorer.score(QUESTION, [text])[0])
    assert math.isfinite(scorer.score(text, [ANSWERING])[0])


def test_serves_many_threads(scorer: EmbeddedScorer) -> None:
    questions = [f"{QUESTION} {i}" for i in range(16)]
    expected = [scorer.score(question, PASSAGES) for question in questions]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda question: scorer.score(question, PASSAGES), questions))

    assert found == [pytest.approx(scores, abs=1e-4) for scores in expected]


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])  # noqa: S301
def test_copies_and_pickles_after_loading(
    scorer: EmbeddedScorer, clone: Callable[[EmbeddedScorer], EmbeddedScorer]
) -> None:
    scorer.load()

    twin = clone(scorer)

    assert twin.fingerprint == scorer.fingerprint
    assert twin.score(QUESTION, PASSAGES) == scorer.score(QUESTION, PASSAGES)


@pytest.mark.skipif(sys.platform != "linux", reason="forking is the start method of Linux")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_scores_in_a_forked_child() -> None:
    scorer = EmbeddedScorer(threads=2)
    expected = scorer.score(QUESTION, PASSAGES)
    receive, send = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: send.send(scorer.score(QUESTION, PASSAGES)), daemon=True
    )

    child.start()

    assert receive.poll(60), "the child waits for threads that it does not have"
    assert receive.recv() == pytest.approx(expected, abs=1e-4)
    child.join()


def test_says_what_to_install(scorer: EmbeddedScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lara_plugins.gate.engines.onnx_session", raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    with pytest.raises(MissingExtra, match=r"onnxruntime is not installed.*lara-plugins\[embedded\]"):
        EmbeddedScorer().load()


def test_refuses_no_threads() -> None:
    with pytest.raises(InvalidArgument, match="threads=0"):
        EmbeddedScorer(threads=0)
