"""The response synthesizer that answers as the shape of the question asks for."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from lara_plugins import LatencyModel, Limits, Passage, QueryState, QuestionParser
from lara_plugins.answering import Loop
from lara_plugins.arguments import check_count
from lara_plugins.phases import answer_loop
from lara_plugins.question import DEFAULT_LIMITS
from llama_index_lara.synthesizer import AT_ONCE_REMEDY, TypedSynthesizer
from llama_index_lara.templates import REFINE_QA_TEMPLATE, TEXT_QA_TEMPLATE


class RoutedSynthesizer(TypedSynthesizer):
    """Answers one by one, in one call or in windows, as the shape of the question asks for.

    Args:
        llm: the LLM; ``Settings.llm`` where none is given.
        latency: as for every typed synthesizer.
        at_once: calls that the LLM takes at once; 1 reads no windows at once.
        text_qa_template: variables ``context_str`` and ``query_str``.
        refine_template: variables ``existing_answer``, ``context_msg`` and ``query_str``.
        streaming: respond with a stream.
        callback_manager: the application's, where it has one.
        parser: reads the question's shape; by default that of the package's lexicons.
        limits: the routing table.
        escalate: a sequential answer that is exhausted goes once to one call over all nodes.

    Raises:
        InvalidArgument: ``at_once`` is below 1.
    """

    def __init__(
        self,
        llm: LLM | None = None,
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
        check_count("at_once", at_once, AT_ONCE_REMEDY)
        super().__init__(
            llm,
            latency=latency,
            text_qa_template=text_qa_template,
            refine_template=refine_template,
            streaming=streaming,
            callback_manager=callback_manager,
        )
        self._at_once = at_once
        self._parser, self._limits, self._escalate = parser, limits, escalate

    def _loop(self, state: QueryState, question: str, passages: Sequence[Passage]) -> Loop:
        return answer_loop(
            state,
            question,
            passages,
            self._latency,
            self._model.fits(question),
            self._at_once,
            parser=self._parser,
            limits=self._limits,
            escalate=self._escalate,
        )
