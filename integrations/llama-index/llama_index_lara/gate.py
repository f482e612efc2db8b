"""The threshold gate as a node postprocessor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import SkipValidation

import lara_plugins
from lara_plugins import Calibration, QueryState, Scorer
from lara_plugins.gate import DEFAULT_SCORER, DEFAULT_THETA, OnEmpty, scorer_of, theta_of
from lara_plugins.phases import run_gate
from lara_plugins.query import check_afford
from llama_index_lara.events import announce
from llama_index_lara.nodes import checked_query, scored_passage
from llama_index_lara.saving import HoldsScorer
from llama_index_lara.state import install, query_state

_dispatcher = get_dispatcher(__name__)


class ThresholdGate(HoldsScorer, BaseNodePostprocessor):
    """Keeps every node whose cross-encoder score is at least theta, best first.

    How many is not a setting: an easy question keeps few, a hard one many. Every node is scored
    anew, on the content that is meant to be embedded; its earlier score plays no part. Weights
    load at first use, or up front by ``load()``.

    Args:
        scorer: a scorer or its name: ``"embedded"`` (in the wheel, no download), a hub id or a
            local folder of sentence-transformers, ``"onnx:<folder>"``.
        theta: threshold, a probability from 0 to 1, or a `Calibration`, which no other scorer than
            the one it was made for may use; it is saved as its plain values and made again from them.
        max_k: keep at most so many, or None.
        on_empty: where nothing reaches theta: ``abstain``, ``keep_best`` or ``raise``; None
            abstains on a known scale or where theta is calibrated, else keeps the best.
        afford: seconds that the whole query may take; opens its deadline, and scoring stops in
            its share of it. None opens none.

    Raises:
        CalibrationMismatch: theta was calibrated for another scorer.
        InvalidArgument: an argument is out of its range.
    """

    scorer: SkipValidation[str | Scorer] = DEFAULT_SCORER
    theta: float | Calibration = DEFAULT_THETA
    max_k: int | None = None
    on_empty: OnEmpty | None = None
    afford: float | None = None

    def __init__(
        self,
        scorer: str | Scorer = DEFAULT_SCORER,
        theta: float | Calibration | Mapping[str, object] = DEFAULT_THETA,
        max_k: int | None = None,
        on_empty: OnEmpty | None = None,
        afford: float | None = None,
        *,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        threshold = theta_of(theta)
        lara_plugins.ThresholdGate(threshold, max_k, on_empty).check(scorer_of(scorer))
        if afford is not None:
            check_afford(afford)
        super().__init__(  # type: ignore[call-arg]  # mypy takes it for the base's synthesised one
            scorer=scorer,
            theta=threshold,
            max_k=max_k,
            on_empty=on_empty,
            afford=afford,
            callback_manager=callback_manager or CallbackManager(),
        )
        install()

    @classmethod
    def class_name(cls) -> str:
        return "LaraThresholdGate"

    def load(self) -> None:
        """Load the scorer's weights now, so that no query pays for it."""
        scorer_of(self.scorer).load()

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        question = checked_query(query_bundle.query_str if query_bundle else None)
        state = query_state()
        if self.afford is not None:
            state.clock.allow(self.afford)
        scorer = scorer_of(self.scorer)
        model = scorer.name or scorer.fingerprint
        _dispatcher.event(
            ReRankStartEvent(
                query=query_bundle, nodes=nodes, top_n=self.max_k or len(nodes), model_name=model
            )
        )
        with self.callback_manager.event(
            CBEventType.RERANKING,
            payload={
                EventPayload.NODES: nodes,
                EventPayload.MODEL_NAME: model,
                EventPayload.QUERY_STR: question,
                EventPayload.TOP_K: self.max_k or len(nodes),
            },
        ) as event:
            kept = self._kept(state, question, nodes, scorer)
            event.on_end(payload={EventPayload.NODES: kept})
        _dispatcher.event(ReRankEndEvent(nodes=kept))
        announce(state, "gate")
        return kept

    def _kept(
        self, state: QueryState, question: str, nodes: Sequence[NodeWithScore], scorer: Scorer
    ) -> list[NodeWithScore]:
        gate = lara_plugins.ThresholdGate(self.theta, self.max_k, self.on_empty)
        gated = run_gate(state, question, [scored_passage(node) for node in nodes], scorer, gate)
        rescored = [
            NodeWithScore(node=node.node, score=None if score is None else score.value)
            for node, score in zip(nodes, gated.scores, strict=True)
        ]
        best = {passage.id for passage in state.best}
        state.originals = {node.node.node_id: node for node in rescored if node.node.node_id in best}
        return [rescored[position] for position in gated.decision.kept]
