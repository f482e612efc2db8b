"""Query engines that answer as the shape of the question asks for."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from lara_plugins import Calibration, LatencyModel, Scorer
from lara_plugins.gate import DEFAULT_THETA, checked_question
from lara_plugins.question import load_parser
from llama_index_lara.budget import LatencyBudget
from llama_index_lara.gate import DEFAULT_SCORER, ThresholdGate
from llama_index_lara.retriever import HybridRetriever
from llama_index_lara.synthesizer import RoutedSynthesizer
from llama_index_lara.templates import REFINE_QA_TEMPLATE, TEXT_QA_TEMPLATE


class QuestionShapeQueryEngine(RetrieverQueryEngine):
    """Sends single-value lookups passage by passage, listings and comparisons in one call.

    The parse of the question is deterministic and asks no LLM; ``response.metadata["lara"]``
    says which rule chose which regime.

    Args:
        retriever: finds the candidates; give it 50 to 200 where a gate follows.
        llm: the LLM; ``Settings.llm`` where none is given.
        node_postprocessors: what stands between retriever and answer, in order.
        latency: a latency model, the seconds of one passage, or None for 0.1 s a passage.
        text_qa_template: variables ``context_str`` and ``query_str``.
        refine_template: variables ``existing_answer``, ``context_msg`` and ``query_str``.
        streaming: respond with a stream.
        callback_manager: the application's, where it has one.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: LLM | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        *,
        latency: float | LatencyModel | None = None,
        text_qa_template: BasePromptTemplate = TEXT_QA_TEMPLATE,
        refine_template: BasePromptTemplate = REFINE_QA_TEMPLATE,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(
            retriever,
            RoutedSynthesizer(
                llm,
                latency=latency,
                text_qa_template=text_qa_template,
                refine_template=refine_template,
                streaming=streaming,
                callback_manager=callback_manager,
            ),
            list(node_postprocessors),
            callback_manager,
        )

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        checked_question(query_bundle.query_str)
        return super().retrieve(query_bundle)

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        checked_question(query_bundle.query_str)
        return await super().aretrieve(query_bundle)


def lara_query_engine(
    retriever: BaseRetriever,
    llm: LLM | None = None,
    afford: float = 4.0,
    scorer: str | Scorer = DEFAULT_SCORER,
    *,
    theta: float | Calibration = DEFAULT_THETA,
    latency: float | LatencyModel | None = None,
    streaming: bool = False,
) -> QuestionShapeQueryEngine:
    """The five phases over a retriever: gate, budget, route, answer.

    Scorer, parser and a ``HybridRetriever``'s encoders are loaded here, so that no query pays for it.

    Args:
        retriever: finds the candidates, 50 to 200 of them.
        llm: the LLM; ``Settings.llm`` where none is given.
        afford: seconds that a query may take.
        scorer: a scorer or its name; ``"embedded"`` needs no download.
        theta: the gate's threshold, or a ``Calibration`` of this scorer.
        latency: a latency model, the seconds of one passage, or None for 0.1 s a passage.
        streaming: respond with a stream.

    Raises:
        InvalidArgument: ``afford`` is not positive, or the scorer is unknown.
        CalibrationMismatch: ``theta`` was calibrated on another scorer.
        MissingExtra: what the scorer needs is not installed.
    """
    gate = ThresholdGate(scorer=scorer, theta=theta, afford=afford)
    gate.load()
    load_parser()
    if isinstance(retriever, HybridRetriever):
        retriever.load()
    budget = LatencyBudget(afford=afford, latency=latency)
    return QuestionShapeQueryEngine(retriever, llm, [gate, budget], streaming=streaming)
