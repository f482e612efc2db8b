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

from lara_plugins import Calibration, LatencyModel, Limits, QuestionParser, Scorer
from lara_plugins.budget import latency_model
from lara_plugins.gate import DEFAULT_SCORER, DEFAULT_THETA, checked_question
from lara_plugins.query import current_state
from lara_plugins.question import DEFAULT_LIMITS, load_parser
from llama_index_lara.budget import LatencyBudget
from llama_index_lara.gate import ThresholdGate
from llama_index_lara.retriever import HybridRetriever
from llama_index_lara.routed import RoutedSynthesizer
from llama_index_lara.state import query_state
from llama_index_lara.templates import REFINE_QA_TEMPLATE, TEXT_QA_TEMPLATE


class QuestionShapeQueryEngine(RetrieverQueryEngine):
    """Sends single-value lookups passage by passage, listings and comparisons in one call.

    The parse of the question is deterministic and asks no LLM; ``response.metadata["lara"]``
    says which rule chose which regime.

    Args:
        retriever: finds the candidates; give it 50 to 200 where a gate follows.
        llm: the LLM; ``Settings.llm`` where none is given.
        node_postprocessors: what stands between retriever and answer, in order.
        latency: a latency model, such as ``observe_latency(llm)``, the seconds of one passage, or
            None for 0.1 s a passage.
        at_once: calls that the LLM takes at once. Above 1, windows that do not fit the time left
            one after the other are read at once; 1 never does that.
        text_qa_template: variables ``context_str`` and ``query_str``.
        refine_template: variables ``existing_answer``, ``context_msg`` and ``query_str``.
        streaming: respond with a stream.
        callback_manager: the application's, where it has one.
        parser: reads the question's shape; by default that of the package's lexicons.
        limits: the routing table, budget exits of the sequential regime included.
        escalate: where no node alone gave a complete answer, ask once over all of them, if they
            look as if they answer (the gate kept them), fit one call, and the budget pays for it.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: LLM | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        *,
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        text_qa_template: BasePromptTemplate = TEXT_QA_TEMPLATE,
        refine_template: BasePromptTemplate = REFINE_QA_TEMPLATE,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
        parser: QuestionParser | None = None,
        limits: Limits = DEFAULT_LIMITS,
        escalate: bool = False,
    ) -> None:
        super().__init__(
            retriever,
            RoutedSynthesizer(
                llm,
                latency=latency,
                at_once=at_once,
                text_qa_template=text_qa_template,
                refine_template=refine_template,
                streaming=streaming,
                callback_manager=callback_manager,
                parser=parser,
                limits=limits,
                escalate=escalate,
            ),
            list(node_postprocessors),
            callback_manager,
        )
        self._latency = None if latency is None else latency_model(latency)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self._begin(query_bundle)
        return super().retrieve(query_bundle)

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self._begin(query_bundle)
        return await super().aretrieve(query_bundle)

    def _begin(self, query_bundle: QueryBundle) -> None:
        """Refuse an empty question, open the deadline, and tell the gate what answering will take.

        The deadline is open before the gate opens it: a retriever may ask an LLM, too.
        """
        checked_question(query_bundle.query_str)
        for part in self._node_postprocessors:
            if isinstance(part, ThresholdGate | LatencyBudget) and part.afford is not None:
                query_state().clock.allow(part.afford)
        state = current_state()
        if state is not None and state.latency is None:
            state.latency = self._latency


def lara_query_engine(
    retriever: BaseRetriever,
    llm: LLM | None = None,
    afford: float = 4.0,
    scorer: str | Scorer = DEFAULT_SCORER,
    *,
    theta: float | Calibration = DEFAULT_THETA,
    latency: float | LatencyModel | None = None,
    at_once: int = 1,
    streaming: bool = False,
    parser: QuestionParser | None = None,
    limits: Limits = DEFAULT_LIMITS,
    escalate: bool = False,
) -> QuestionShapeQueryEngine:
    """The five phases over a retriever: gate, budget, route, answer.

    Scorer, parser and a ``HybridRetriever``'s encoders are loaded here, so that no query pays for it.

    Args:
        retriever: finds the candidates, 50 to 200 of them.
        llm: the LLM; ``Settings.llm`` where none is given.
        afford: seconds that a query may take.
        scorer: a scorer or its name; ``"embedded"`` needs no download.
        theta: the gate's threshold, or a ``Calibration`` of this scorer.
        latency: a latency model, such as ``observe_latency(llm)``, the seconds of one passage, or
            None for 0.1 s a passage.
        at_once: calls that the LLM takes at once; above 1, windows may be read at once.
        streaming: respond with a stream.
        parser: reads the question's shape; by default that of the package's lexicons.
        limits: the routing table, budget exits of the sequential regime included.
        escalate: where no node alone gave a complete answer, ask once over all of them.

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
    return QuestionShapeQueryEngine(
        retriever,
        llm,
        [gate, budget],
        latency=latency,
        at_once=at_once,
        streaming=streaming,
        parser=parser,
        limits=limits,
        escalate=escalate,
    )
