"""The latency budget as a node postprocessor."""

from __future__ import annotations

from typing import get_args

from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import SkipValidation, field_serializer

from lara_plugins import LatencyGovernor, LatencyModel
from lara_plugins.arguments import check_choice
from lara_plugins.budget import CALL_PLANS, CallPlan, OnExhausted, latency_model, serializable_seconds
from lara_plugins.phases import run_budget
from lara_plugins.query import check_afford
from llama_index_lara.events import announce
from llama_index_lara.nodes import shown_passage
from llama_index_lara.saving import check_pickles
from llama_index_lara.state import install, query_state


class LatencyBudget(BaseNodePostprocessor):
    """Drops the last nodes until the rest fits the time that is left of the budget.

    The time since the query began counts: retrieval, reranking and whatever else came before.
    Order is kept and is taken to be best first, as the gate leaves it; scores play no part.

    Args:
        afford: seconds that the whole query may take.
        latency: a latency model, such as ``observe_latency(llm)``, the seconds of one passage, or
            None for 0.1 s a passage.
        on_exhausted: where not one node fits: ``abstain`` sends none, ``send_best`` sends the
            best one outside the guarantee, ``raise`` raises.
        calls: how the synthesizer reads the nodes: ``one_call``, ``in_threes``, or ``auto``, which
            is planned jointly with their number; a per-passage latency does not tell them apart.
        callback_manager: the application's; a query engine sets its own.

    Raises:
        InvalidArgument: an argument is out of its range.
    """

    afford: float = 4.0
    latency: SkipValidation[float | LatencyModel | None] = None
    on_exhausted: OnExhausted = "abstain"
    calls: CallPlan = "auto"

    def __init__(
        self,
        afford: float = 4.0,
        latency: float | LatencyModel | None = None,
        on_exhausted: OnExhausted = "abstain",
        calls: CallPlan = "auto",
        *,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        check_afford(afford)
        LatencyGovernor(latency_model(latency), on_exhausted)
        check_choice("calls", calls, get_args(CallPlan))
        super().__init__(  # type: ignore[call-arg]  # mypy takes it for the base's synthesised one
            afford=afford,
            latency=latency,
            on_exhausted=on_exhausted,
            calls=calls,
            callback_manager=callback_manager or CallbackManager(),
        )
        install()

    @classmethod
    def class_name(cls) -> str:
        return "LaraLatencyBudget"

    @field_serializer("latency")
    def _latency_seconds(self, latency: float | LatencyModel | None) -> float | None:
        return serializable_seconds(latency)

    def to_dict(self, **kwargs: object) -> dict[str, object]:
        serializable_seconds(self.latency)
        return super().to_dict(**kwargs)

    def __getstate__(self) -> dict[str, object]:
        check_pickles(self.latency, "give the seconds of one passage, or none")
        return super().__getstate__()

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        state = query_state()
        state.clock.allow(self.afford)
        passages = [shown_passage(node) for node in nodes]
        if not state.originals:
            state.originals = {node.node.node_id: node for node in nodes}
        governor = LatencyGovernor(latency_model(self.latency), self.on_exhausted)
        plan = run_budget(state, passages, governor, CALL_PLANS[self.calls])
        announce(state, "budget")
        return [NodeWithScore(node=node.node, score=node.score) for node in nodes[: plan.sent]]
