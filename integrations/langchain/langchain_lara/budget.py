"""The latency budget as a document compressor and a runnable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, get_args

from langchain_core.documents import Document
from pydantic import SkipValidation

from langchain_lara.compressor import QueryCompressor
from langchain_lara.documents import copied, shown_passage
from langchain_lara.queries import Part
from langchain_lara.state import install
from lara_plugins import LatencyGovernor, LatencyModel, QueryState
from lara_plugins.arguments import check_choice
from lara_plugins.budget import CALL_PLANS, CallPlan, OnExhausted, latency_model, serializable_seconds
from lara_plugins.phases import run_budget
from lara_plugins.query import check_afford


class LatencyBudget(QueryCompressor):
    """Drops the last documents until the rest fits the time that is left of the budget.

    The time since the chain began counts, or in an agent since the tool run began: retrieval,
    reranking and whatever else came before. Order is kept and is taken to be best first, as the
    gate leaves it; scores play no part.

    Args:
        afford: seconds that the whole query may take.
        latency: a latency model, such as ``observe_latency(llm)``, the seconds of one passage, or
            None for 0.1 s a passage. A model is kept as it is, so that copies and batches share
            what it learns.
        on_exhausted: where not one document fits: ``abstain`` sends none, ``send_best`` sends the
            best one outside the guarantee, ``raise`` raises.
        calls: how the documents are read: ``one_call``, ``in_threes``, or ``auto``, which is
            planned jointly with their number; a per-passage latency does not tell them apart.
        name: its name in traces.

    Raises:
        InvalidArgument: an argument is out of its range.
    """

    part: ClassVar[Part] = "budget"

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
        name: str | None = None,
    ) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        check_afford(afford)
        LatencyGovernor(latency_model(latency), on_exhausted)
        check_choice("calls", calls, get_args(CallPlan))
        super().__init__(  # type: ignore[call-arg]  # mypy takes it for the base's synthesised one
            afford=afford, latency=latency, on_exhausted=on_exhausted, calls=calls, name=name
        )
        install()

    @property
    def lc_attributes(self) -> dict[str, Any]:
        return {"latency": serializable_seconds(self.latency)}

    def _keep(self, state: QueryState, question: str, documents: Sequence[Document]) -> list[Document]:
        state.clock.allow(self.afford)
        passages = [shown_passage(document) for document in documents]
        if not state.originals:
            state.originals = {
                passage.id: document for passage, document in zip(passages, documents, strict=True)
            }
        governor = LatencyGovernor(latency_model(self.latency), self.on_exhausted)
        plan = run_budget(state, passages, governor, CALL_PLANS[self.calls])
        return [copied(document) for document in documents[: plan.sent]]
