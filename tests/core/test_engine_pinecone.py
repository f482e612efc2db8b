from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from pinecone_server import PineconeServer

from lara_plugins.errors import InvalidArgument, MissingExtra, ScoreError
from lara_plugins.gate import Scorer, load_scorer, score_in_time
from lara_plugins.gate.engines.pinecone import API_KEY, PineconeReranker


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        yield server


def reranker(server: PineconeServer, model: str = "bge-reranker-v2-m3") -> PineconeReranker:
    """A reranker whose client is the real SDK's, pointed at the stand-in."""
    pinecone = pytest.importorskip("pinecone", reason="pinecone is not installed")
    return PineconeReranker(model, client=pinecone.Pinecone(api_key="key", host=server.url))


def test_declares_probabilities_on_an_unknown_scale() -> None:
    scorer = load_scorer("pinecone:bge-reranker-v2-m3")

    assert isinstance(scorer, Scorer)
    assert (scorer.name, scorer.score_kind, scorer.scale_known) == (
        "pinecone:bge-reranker-v2-m3",
        "probability",
        False,
    )
    assert scorer.fingerprint != load_scorer("pinecone:pinecone-rerank-v0").fingerprint


def test_scores_come_back_in_the_order_of_the_passages(server: PineconeServer) -> None:
    scores = reranker(server).score("red green", ["blue", "green red", "red", ""])

    assert scores == [0.0, 1.0, 0.5, 0.0]
    assert {type(score) for score in scores} == {float}


def test_asks_within_the_limits_and_for_no_text_back(server: PineconeServer) -> None:
    texts = [f"red {i}" for i in range(250)]

    blocks = list(reranker(server).blocks("red", [*texts, texts[0]]))

    assert [len(block.scores) for block in blocks] == [100, 100, 51]
    assert [len(request["documents"]) for request in server.bodies("/rerank")] == [100, 100, 50]
    for request in server.bodies("/rerank"):
        assert request["model"] == "bge-reranker-v2-m3"
        assert request["top_n"] == len(request["documents"])
        assert request["return_documents"] is False


def test_stops_in_time(server: PineconeServer) -> None:
    scored = score_in_time(reranker(server), "red", [f"red {i}" for i in range(250)], lambda: 0.0)

    assert [score is not None for score in scored.scores] == [True] * 100 + [False] * 150
    assert len(server.requests) == 1


def test_nothing_is_sent_without_passages(server: PineconeServer) -> None:
    assert reranker(server).score("red", []) == []
    assert server.requests == []


def test_a_passage_beyond_the_window_is_cut_by_the_service(server: PineconeServer) -> None:
    assert reranker(server).score("red", ["red " * 3_000]) == [1.0]
    assert server.bodies("/rerank")[0]["parameters"] == {"truncate": "END"}


def test_a_passage_without_end_is_sent_as_far_as_the_window_can_need(server: PineconeServer) -> None:
    [block] = reranker(server).blocks("red", ["red " * 100_000])

    assert block.truncated == (0,)
    assert len(server.bodies("/rerank")[0]["documents"][0]["text"]) < 40_000


def test_models_that_know_no_truncation_are_told_of_none(server: PineconeServer) -> None:
    reranker(server, "cohere-rerank-3.5").score("red", ["red"])

    assert not server.bodies("/rerank")[0].get("parameters")


def test_what_the_service_refuses_is_the_sdks_error(server: PineconeServer) -> None:
    scorer = reranker(server, "cohere-rerank-3.5")

    with pytest.raises(Exception, match="too long") as raised:
        scorer.score("red", ["red " * 3_000])

    assert type(raised.value).__module__.startswith("pinecone")


@pytest.mark.parametrize(
    ("indexes", "count"), [([0], 1), ([0, 0], 2), ([0, 2], 2), ([-1, 0], 2), ([0, 1, 1], 3), ([], 0)]
)
def test_a_reply_without_one_score_for_each_passage_is_refused(indexes: list[int], count: int) -> None:
    data = [{"index": index, "score": 0.5} for index in indexes]
    with PineconeServer(lambda reply: reply | {"data": data}) as server:
        scorer = reranker(server)
        with pytest.raises(ScoreError, match=f"{count} scores for 2 passages"):
            scorer.score("red", ["red", "blue"])


def test_a_lone_surrogate_is_sent_as_a_question_mark(server: PineconeServer) -> None:
    assert reranker(server).score("red \ud800", ["\ud800 red"]) == [1.0]
    assert server.bodies("/rerank")[0]["query"] == "red ?"


def test_another_models_scores_are_refused() -> None:
    with PineconeServer(lambda reply: reply | {"model": "other"}) as server:
        scorer = reranker(server)
        with pytest.raises(ScoreError, match="other instead of bge-reranker-v2-m3"):
            scorer.score("red", ["red"])


def test_a_name_takes_its_account_from_the_environment(
    server: PineconeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pinecone", reason="pinecone is not installed")
    monkeypatch.setenv(API_KEY, "key of this test")
    monkeypatch.setenv("PINECONE_CONTROLLER_HOST", server.url)
    scorer = load_scorer("pinecone:bge-reranker-v2-m3")
    scorer.load()
    assert server.requests == []

    assert scorer.score("red", ["red"]) == [1.0]
    for twin in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):  # noqa: S301
        assert twin.score("red", ["blue"]) == [0.0]


def test_says_what_to_set_and_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(API_KEY, raising=False)
    with pytest.raises(InvalidArgument, match=API_KEY):
        PineconeReranker().load()

    monkeypatch.setenv(API_KEY, "another key of this test")
    monkeypatch.setitem(sys.modules, "pinecone", None)
    with pytest.raises(MissingExtra, match=r"pinecone is not installed.*lara-plugins\[pinecone\]"):
        PineconeReranker().load()


def test_a_scorer_with_a_client_of_its_own_has_no_name() -> None:
    client = SimpleNamespace(inference=SimpleNamespace())

    assert PineconeReranker(client=client).name is None


@pytest.mark.parametrize("model", ["", " ", None, 3])
def test_refuses_a_model_without_a_name(model: object) -> None:
    with pytest.raises(InvalidArgument, match="model="):
        PineconeReranker(model)  # type: ignore[arg-type]
