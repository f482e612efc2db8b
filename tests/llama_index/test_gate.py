"""The gate as a node postprocessor, and the contract that it shares with the budget."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fake_time import FakeTime
from listed_nodes import SCORES, as_listed, given, ids, listed
from llama_index.core import VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import LLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_lara import LaraDecisionEvent, LatencyBudget, RefineInThrees, ThresholdGate
from recorded_events import recorded_events
from towers import LOOKUP, UNANSWERABLE

from lara_plugins import (
    CallableScorer,
    NothingKept,
    QueryClock,
    load_scorer,
)
from lara_plugins.gate import Block, ScoreKind
from lara_plugins.query import current_state

BEST_FIRST = ["p7", "p1", "p4", "p11", "p0", "p8", "p2"]


class Costly:
    """A scorer whose fingerprint costs a look at its weights, or at a hub."""

    name: str | None = None
    score_kind: ScoreKind = "probability"
    scale_known = True
    described = 0

    @property
    def fingerprint(self) -> str:
        self.described += 1
        return "costly"

    def load(self) -> None:
        """Nothing to load."""

    def blocks(self, query: str, texts: Sequence[str]) -> Iterator[Block]:
        yield Block(self.score(query, texts))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return as_listed(query, texts)


def test_the_gate_keeps_what_reaches_theta_best_first(nodes: list[TextNode]) -> None:
    kept = ThresholdGate(scorer=listed()).postprocess_nodes(given(nodes), query_str=LOOKUP)
    assert ids(kept) == BEST_FIRST
    assert [node.score for node in kept] == sorted((s for s in SCORES if s >= 0.3), reverse=True)


def test_theta_is_a_probability_whatever_the_scorer_returns(nodes: list[TextNode]) -> None:
    logits = CallableScorer(lambda query, texts: [-1.0, 0.0, 40.0, 41.0], "logit")
    kept = ThresholdGate(scorer=logits, theta=0.5).postprocess_nodes(given(nodes[:4]), query_str=LOOKUP)
    assert ids(kept) == ["p3", "p2", "p1"], "saturated probabilities are still in the order of their logits"
    assert kept[2].score == 0.5


def test_each_passage_is_gated_on_its_own(nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer="embedded")
    alone = gate.postprocess_nodes(given(nodes[:1]), query_str=LOOKUP)
    among = gate.postprocess_nodes(given(nodes), query_str=LOOKUP)
    assert ids(alone) == ["p0"]
    assert alone[0].score == pytest.approx(among[0].score, abs=1e-5)


@pytest.mark.parametrize("part", [ThresholdGate(scorer="embedded", theta=0.0), LatencyBudget(afford=900.0)])
def test_inputs_stay_as_they_are(part: ThresholdGate | LatencyBudget, nodes: list[TextNode]) -> None:
    nodes_in = given(nodes, score=None)
    before = copy.deepcopy(nodes_in)
    hashes = [node.node.hash for node in nodes_in]
    out = part.postprocess_nodes(nodes_in, query_str=LOOKUP)
    assert nodes_in == before
    assert [node.node.hash for node in nodes_in] == hashes
    assert sorted(ids(out)) == sorted(ids(nodes_in))
    by_id = {node.node_id: node for node in nodes_in}
    for node in out:
        assert node is not by_id[node.node_id]
        assert node.node is by_id[node.node_id].node, "the node itself is passed on, not copied"


def test_scores_are_plain_floats(nodes: list[TextNode]) -> None:
    arrays = CallableScorer(
        lambda query, texts: np.full(len(texts), 0.7, np.float32),
        "probability",
    )
    for scorer in ("embedded", listed(), arrays):
        kept = ThresholdGate(scorer=scorer).postprocess_nodes(given(nodes), query_str=LOOKUP)
        assert all(type(node.score) is float for node in kept)
        assert json.loads(json.dumps([node.to_dict() for node in kept]))


def test_earlier_scores_play_no_part(nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer="embedded")
    scored = [NodeWithScore(node=node, score=0.1 * n) for n, node in enumerate(nodes)]
    kept = gate.postprocess_nodes(scored, query_str=LOOKUP)
    assert kept == gate.postprocess_nodes(given(nodes, score=None), query_str=LOOKUP)
    budget = LatencyBudget(afford=900.0, latency=400.0)
    for nodes_in in (scored, given(nodes, score=None)):
        assert ids(budget.postprocess_nodes(nodes_in, query_str=LOOKUP)) == ["p0", "p1"]


def test_the_gate_takes_what_another_postprocessor_leaves(index: VectorStoreIndex, llm: LLM) -> None:
    engine = index.as_query_engine(
        llm=llm,
        similarity_top_k=50,
        node_postprocessors=[
            ThresholdGate(scorer="embedded"),
            SimilarityPostprocessor(similarity_cutoff=0.9),
            ThresholdGate(scorer="embedded", max_k=1),
        ],
        response_synthesizer=RefineInThrees(llm),
    )
    assert ids(engine.query(LOOKUP).source_nodes) == ["p0"]


def test_a_gate_is_made_without_a_look_at_the_weights() -> None:
    scorer = Costly()

    ThresholdGate(scorer=scorer)

    assert scorer.described == 0


def test_no_nodes_are_no_work() -> None:
    def never(query: str, texts: Sequence[str]) -> list[float]:
        raise AssertionError("there is nothing to score")

    gate = ThresholdGate(scorer=CallableScorer(never, "probability"), on_empty="raise")
    assert gate.postprocess_nodes([], query_str=LOOKUP) == []
    assert LatencyBudget(on_exhausted="raise").postprocess_nodes([], query_str=LOOKUP) == []


def test_the_frameworks_events_are_fired(nodes: list[TextNode]) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    gate = ThresholdGate(scorer="embedded", callback_manager=CallbackManager([debug]))
    with recorded_events() as events:
        kept = gate.postprocess_nodes(given(nodes), query_str=LOOKUP)
    [start] = [event for event in events if isinstance(event, ReRankStartEvent)]
    [end] = [event for event in events if isinstance(event, ReRankEndEvent)]
    [decision] = [event for event in events if isinstance(event, LaraDecisionEvent)]
    assert isinstance(start.query, QueryBundle)
    assert (start.query.query_str, start.top_n, start.model_name) == (LOOKUP, 12, "embedded")
    assert ids(start.nodes) == ids(given(nodes))
    assert ids(end.nodes) == ids(kept)
    assert decision.phase == "gate"
    assert (decision.facts["candidates"], decision.facts["kept"]) == (12, 2)
    assert "2 of 12 scored passages reach theta 0.3" in decision.reason
    [(opened, closed)] = debug.get_event_pairs(CBEventType.RERANKING)
    assert opened.payload is not None
    assert closed.payload is not None
    assert opened.payload[EventPayload.QUERY_STR] == LOOKUP
    assert opened.payload[EventPayload.MODEL_NAME] == "embedded"
    assert opened.payload[EventPayload.TOP_K] == 12
    assert ids(closed.payload[EventPayload.NODES]) == ids(kept)


def test_a_capped_gate_announces_its_cap(nodes: list[TextNode]) -> None:
    with recorded_events() as events:
        ThresholdGate(scorer=listed(), max_k=3).postprocess_nodes(given(nodes), query_str=LOOKUP)
    [start] = [event for event in events if isinstance(event, ReRankStartEvent)]
    assert start.top_n == 3
    assert start.model_name.startswith("callable/"), "a scorer without a name is told by its fingerprint"


async def test_async_is_the_same(nodes: list[TextNode]) -> None:
    for part in (ThresholdGate(scorer="embedded"), LatencyBudget(afford=900.0, latency=400.0)):
        whole = part.postprocess_nodes(given(nodes), query_str=LOOKUP)
        assert await part.apostprocess_nodes(given(nodes), query_str=LOOKUP) == whole


async def test_one_gate_serves_many_at_once(nodes: list[TextNode]) -> None:
    gate = ThresholdGate(scorer=load_scorer("embedded"))
    questions = [LOOKUP, UNANSWERABLE, "When was Tokyo Tower completed?", "Who built the Eiffel Tower?"] * 4

    def kept(question: str) -> list[tuple[str, float | None]]:
        out = gate.postprocess_nodes(given(nodes), query_str=question)
        return [(node.node_id, node.score) for node in out]

    one_by_one = [kept(question) for question in questions]
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(kept, questions)) == one_by_one
    at_once = await asyncio.gather(*(gate.apostprocess_nodes(given(nodes), query_str=q) for q in questions))
    assert [[(node.node_id, node.score) for node in out] for out in at_once] == one_by_one


def test_where_nothing_reaches_theta(nodes: list[TextNode]) -> None:
    def kept(gate: ThresholdGate) -> list[str]:
        return ids(gate.postprocess_nodes(given(nodes), query_str=LOOKUP))

    low = CallableScorer(lambda query, texts: [0.1, 0.2, *([0.0] * 10)], "probability", scale_known=True)
    unknown = CallableScorer(lambda query, texts: [0.1, 0.2, *([0.0] * 10)], "probability")
    assert kept(ThresholdGate(scorer=low)) == []
    assert kept(ThresholdGate(scorer=unknown)) == ["p1"], "on an unknown scale a threshold means nothing yet"
    assert kept(ThresholdGate(scorer=low, on_empty="keep_best")) == ["p1"]
    assert kept(ThresholdGate(scorer=unknown, on_empty="abstain")) == []
    with pytest.raises(NothingKept, match=r"none of 12 scored passages reaches theta 0.3; the best has 0.2"):
        kept(ThresholdGate(scorer=low, on_empty="raise"))


def test_a_cap_is_only_a_cap(nodes: list[TextNode]) -> None:
    for cap in (1, 3, 7, 100):
        kept = ThresholdGate(scorer=listed(), max_k=cap).postprocess_nodes(given(nodes), query_str=LOOKUP)
        assert ids(kept) == BEST_FIRST[:cap]


def test_scoring_stops_in_its_share_of_the_budget(nodes: list[TextNode]) -> None:
    now = FakeTime()

    def slow(query: str, texts: Sequence[str]) -> list[float]:
        now.seconds += 1.0
        return [0.9] * len(texts)

    many = [TextNode(id_=f"n{n}", text=f"text {n}") for n in range(200)]
    gate = ThresholdGate(scorer=CallableScorer(slow, "probability"), afford=5.0)
    with QueryClock(now=now):
        kept = gate.postprocess_nodes(given(many), query_str=LOOKUP)
        state = current_state()
    assert ids(kept) == [f"n{n}" for n in range(128)], "two blocks of 64 in the gate's 2 of 5 seconds"
    assert state is not None
    decided = state.trace.last("gate")
    assert decided is not None
    assert decided.facts["unscored"] == 72
    assert decided.facts["noise_rate"] == 0.0
