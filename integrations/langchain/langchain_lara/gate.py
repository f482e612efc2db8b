"""The threshold gate as a document compressor and a runnable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.documents import Document
from pydantic import SkipValidation

import lara_plugins
from langchain_lara.compressor import QueryCompressor
from langchain_lara.documents import SCORE, copied, shown_passage
from langchain_lara.queries import Part
from langchain_lara.state import install
from lara_plugins import Calibration, QueryState, Scorer
from lara_plugins.gate import (
    DEFAULT_SCORER,
    DEFAULT_THETA,
    OnEmpty,
    scorer_of,
    serializable_name,
    theta_of,
)
from lara_plugins.phases import run_gate
from lara_plugins.query import check_afford


class ThresholdGate(QueryCompressor):
    """Keeps every document whose cross-encoder score is at least theta, best first.

    How many is not a setting: an easy question keeps few, a hard one many. Every document is
    scored anew, on its text under its metadata's ``heading``; the score stands in the
    ``relevance_score`` of the copy's metadata. Weights load at first use, or up front by ``load()``.

    It belongs behind a retriever that unites the results of several queries, not inside of it: a
    passage with another score is another document there.

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
        name: its name in traces.

    Raises:
        CalibrationMismatch: theta was calibrated for another scorer.
        InvalidArgument: an argument is out of its range.
    """

    part: ClassVar[Part] = "gate"

    scorer: SkipValidation[str | Scorer] = DEFAULT_SCORER
    theta: SkipValidation[float | Calibration] = DEFAULT_THETA
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
        name: str | None = None,
    ) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        threshold = theta_of(theta)
        lara_plugins.ThresholdGate(threshold, max_k, on_empty).check(scorer_of(scorer))
        if afford is not None:
            check_afford(afford)
        super().__init__(  # type: ignore[call-arg]  # mypy takes it for the base's synthesised one
            scorer=scorer, theta=threshold, max_k=max_k, on_empty=on_empty, afford=afford, name=name
        )
        install()

    @property
    def lc_attributes(self) -> dict[str, Any]:
        theta = self.theta.model_dump() if isinstance(self.theta, Calibration) else self.theta
        return {"scorer": serializable_name(self.scorer), "theta": theta}

    def load(self) -> None:
        """Load the scorer's weights now, so that no query pays for it."""
        scorer_of(self.scorer).load()

    def _keep(self, state: QueryState, question: str, documents: Sequence[Document]) -> list[Document]:
        if self.afford is not None:
            state.clock.allow(self.afford)
        passages = [shown_passage(document) for document in documents]
        gate = lara_plugins.ThresholdGate(self.theta, self.max_k, self.on_empty)
        gated = run_gate(state, question, passages, scorer_of(self.scorer), gate)
        rescored = [
            copied(document, **{SCORE: None if score is None else score.value})
            for document, score in zip(documents, gated.scores, strict=True)
        ]
        best = {passage.id for passage in state.best}
        state.originals = {
            passage.id: document
            for passage, document in zip(passages, rescored, strict=True)
            if passage.id in best
        }
        return [rescored[position] for position in gated.decision.kept]
