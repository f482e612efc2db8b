"""Response synthesizers over LARA's answering loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.synthesis import (
    GetResponseEndEvent,
    GetResponseStartEvent,
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.types import RESPONSE_TEXT_TYPE

from lara_plugins import Answer, LatencyModel, Passage, QueryState
from lara_plugins.answering import Loop, aanswer, answer, astream_answer, stream_answer
from lara_plugins.arguments import check_count
from lara_plugins.budget import latency_model
from lara_plugins.gate import checked_question
from lara_plugins.phases import abstention, record_answer, refine_loop
from llama_index_lara.events import announce
from llama_index_lara.model import LlamaIndexModel
from llama_index_lara.nodes import originals, shown_passage
from llama_index_lara.state import install, query_state
from llama_index_lara.templates import (
    REFINE_QA_TEMPLATE,
    REFINE_VARIABLES,
    TEXT_QA_TEMPLATE,
    TEXT_QA_VARIABLES,
    check_template,
)

AT_ONCE_REMEDY = "give the calls that the LLM takes at once, 1 for one after the other"

_dispatcher = get_dispatcher(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    """One query as a synthesizer sees it."""

    state: QueryState
    question: str
    passages: tuple[Passage, ...]
    sources: list[NodeWithScore]
    metadata: dict[str, object]


class TypedSynthesizer(BaseSynthesizer):
    """A synthesizer whose answers are typed, verified against the nodes, and traced.

    ``response.metadata["lara"]`` holds the trace and the typed answer; of a streamed response
    it is whole when the stream has been read. ``[n]`` in the answer cites
    ``response.source_nodes[n - 1]``.

    Args:
        llm: the LLM; ``Settings.llm`` where none is given.
        latency: a latency model, the seconds of one passage, or None for that of the query's
            ``LatencyBudget``, or 0.1 s a passage where it has none.
        text_qa_template: variables ``context_str`` and ``query_str``.
        refine_template: variables ``existing_answer``, ``context_msg`` and ``query_str``.
        streaming: respond with a stream.
        callback_manager: the application's, where it has one.
    """

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        latency: float | LatencyModel | None = None,
        text_qa_template: BasePromptTemplate = TEXT_QA_TEMPLATE,
        refine_template: BasePromptTemplate = REFINE_QA_TEMPLATE,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(llm=llm, callback_manager=callback_manager, streaming=streaming)
        check_template("text_qa_template", text_qa_template, TEXT_QA_VARIABLES)
        check_template("refine_template", refine_template, REFINE_VARIABLES)
        self._model = LlamaIndexModel(self._llm, text_qa_template, refine_template)
        self._latency = None if latency is None else latency_model(latency)
        install()

    @abstractmethod
    def _loop(self, state: QueryState, question: str, passages: Sequence[Passage]) -> Loop:
        """The loop that answers over the passages."""

    def _get_prompts(self) -> PromptDictType:
        return {
            "text_qa_template": self._model.text_qa_template,
            "refine_template": self._model.refine_template,
        }

    def _update_prompts(self, prompts: PromptDictType) -> None:
        text_qa_template = prompts.get("text_qa_template", self._model.text_qa_template)
        refine_template = prompts.get("refine_template", self._model.refine_template)
        check_template("text_qa_template", text_qa_template, TEXT_QA_VARIABLES)
        check_template("refine_template", refine_template, REFINE_VARIABLES)
        self._model.text_qa_template, self._model.refine_template = text_qa_template, refine_template

    @_dispatcher.span
    def synthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: object,
    ) -> RESPONSE_TYPE:
        with self._synthesis(query, nodes, additional_source_nodes) as (work, respond):
            if self._streaming:
                return respond(StreamingResponse(self._stream(work), work.sources, work.metadata))
            return respond(Response(self._answer(work).text, work.sources, work.metadata))

    @_dispatcher.span
    async def asynthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: object,
    ) -> RESPONSE_TYPE:
        with self._synthesis(query, nodes, additional_source_nodes) as (work, respond):
            if self._streaming:
                return respond(AsyncStreamingResponse(self._astream(work), work.sources, work.metadata))
            return respond(Response((await self._aanswer(work)).text, work.sources, work.metadata))

    @contextmanager
    def _synthesis(
        self, query: QueryType, nodes: Sequence[NodeWithScore], more: Sequence[NodeWithScore] | None
    ) -> Iterator[tuple[_Work, Callable[[RESPONSE_TYPE], RESPONSE_TYPE]]]:
        """What surrounds an answer, sync or async: the events and callbacks of its start and end."""
        _dispatcher.event(SynthesizeStartEvent(query=query))
        work = self._work(query, nodes, more)
        with self._callback_manager.event(
            CBEventType.SYNTHESIZE, payload={EventPayload.QUERY_STR: work.question}
        ) as event:

            def respond(response: RESPONSE_TYPE) -> RESPONSE_TYPE:
                event.on_end(payload={EventPayload.RESPONSE: response})
                _dispatcher.event(SynthesizeEndEvent(query=query, response=response))
                return response

            yield work, respond

    def get_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: object
    ) -> RESPONSE_TEXT_TYPE:
        """Answer over bare texts, for components that have no nodes."""
        work = self._work_on_texts(query_str, text_chunks)
        return self._stream(work) if self._streaming else self._answer(work).text

    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: object
    ) -> RESPONSE_TEXT_TYPE:
        """As ``get_response``, without blocking the event loop."""
        work = self._work_on_texts(query_str, text_chunks)
        return self._astream(work) if self._streaming else (await self._aanswer(work)).text

    def _work(
        self, query: QueryType, nodes: Sequence[NodeWithScore], more: Sequence[NodeWithScore] | None
    ) -> _Work:
        question = checked_question(query.query_str if isinstance(query, QueryBundle) else query)
        state = query_state()
        sources = list(nodes) if nodes else originals(state.best, state.originals)
        sources = [*sources, *(more or [])]
        metadata: dict[str, object] = {node.node.node_id: node.node.metadata for node in sources}
        return _Work(state, question, tuple(shown_passage(node) for node in nodes), sources, metadata)

    def _work_on_texts(self, question: str, texts: Sequence[str]) -> _Work:
        passages = tuple(Passage(f"text-{number}", text) for number, text in enumerate(texts, start=1))
        return _Work(query_state(), checked_question(question), passages, [], {})

    def _answer(self, work: _Work) -> Answer:
        return self._finished(work, answer(self._started_loop(work), self._model, work.state.clock))

    async def _aanswer(self, work: _Work) -> Answer:
        return self._finished(work, await aanswer(self._started_loop(work), self._model, work.state.clock))

    def _stream(self, work: _Work) -> Generator[str, None, None]:
        yield from stream_answer(self._started_loop(work), self._model, work.state.clock, self._finish(work))

    async def _astream(self, work: _Work) -> AsyncGenerator[str, None]:
        async for text in astream_answer(
            self._started_loop(work), self._model, work.state.clock, self._finish(work)
        ):
            yield text

    def _started_loop(self, work: _Work) -> Loop:
        if not work.passages:
            return abstention(work.state)
        texts = [passage.text for passage in work.passages]
        _dispatcher.event(GetResponseStartEvent(query_str=work.question, text_chunks=texts))
        loop = self._loop(work.state, work.question, work.passages)
        announce(work.state, "route")
        return loop

    def _finish(self, work: _Work) -> Callable[[Answer], None]:
        def finish(answered: Answer) -> None:
            self._finished(work, answered)

        return finish

    def _finished(self, work: _Work, answered: Answer) -> Answer:
        record_answer(work.state, answered)
        work.metadata["lara"] = work.state.trace.to_dict()
        announce(work.state, "answer")
        if work.passages:
            _dispatcher.event(GetResponseEndEvent())
        return answered


class RefineInThrees(TypedSynthesizer):
    """The answer over windows of three nodes: ceil(n / 3) calls, fewer when the time ends.

    An existing engine takes it as ``response_synthesizer=RefineInThrees(llm)``.

    Args:
        llm: the LLM; ``Settings.llm`` where none is given.
        window: nodes in a window.
        stop_when_complete: end at the first answer that the LLM calls complete; sensible for a
            question that one value answers.
        latency: a latency model, the seconds of one passage, or None for that of the query's
            ``LatencyBudget``, or 0.1 s a passage where it has none.
        at_once: calls that the LLM takes at once. Above 1, windows that do not fit the time left
            one after the other are read at once and their answers merged; 1 never does that.
        text_qa_template: variables ``context_str`` and ``query_str``.
        refine_template: variables ``existing_answer``, ``context_msg`` and ``query_str``.
        streaming: respond with a stream; the last window's answer is streamed.
        callback_manager: the application's, where it has one.

    Raises:
        InvalidArgument: ``window`` or ``at_once`` is below 1.
    """

    def __init__(
        self,
        llm: LLM | None = None,
        window: int = 3,
        stop_when_complete: bool = False,
        streaming: bool = False,
        *,
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        text_qa_template: BasePromptTemplate = TEXT_QA_TEMPLATE,
        refine_template: BasePromptTemplate = REFINE_QA_TEMPLATE,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        check_count("window", window, "give the nodes of one window, 1 or more")
        check_count("at_once", at_once, AT_ONCE_REMEDY)
        super().__init__(
            llm,
            latency=latency,
            text_qa_template=text_qa_template,
            refine_template=refine_template,
            streaming=streaming,
            callback_manager=callback_manager,
        )
        self._window = window
        self._at_once = at_once
        self._stop_when_complete = stop_when_complete

    def _loop(self, state: QueryState, question: str, passages: Sequence[Passage]) -> Loop:
        return refine_loop(
            state,
            question,
            passages,
            self._latency,
            fits=self._model.fits(question),
            window=self._window,
            stop_when_complete=self._stop_when_complete,
            at_once=self._at_once,
        )
