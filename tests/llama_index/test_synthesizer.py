"""RefineInThrees in the framework's own roles: every entry, streaming, prompts, events, citations."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Generator, Sequence

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMCompletionStartEvent
from llama_index.core.instrumentation.events.synthesis import (
    GetResponseEndEvent,
    GetResponseStartEvent,
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_lara import (
    ExtractiveLLM,
    LaraDecisionEvent,
    LatencyBudget,
    RefineInThrees,
    ThresholdGate,
    lara_query_engine,
)
from recorded_events import recorded_events
from support_traces import facts, lara
from towers import LOOKUP, UNANSWERABLE

from lara_plugins.answering import StepReply
from lara_plugins.answering.prompts import read_prompt

LISTING = "Which towers were completed?"


class QuotingLLM(CustomLLM):
    """Keeps the answer so far and adds the first sentence of every passage."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=100_000, num_output=1000)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponse:
        content = read_prompt(prompt)
        assert content is not None
        quotes = {item.number: item.passage.text.split(". ")[0] for item in content.passages}
        answer = " ".join([content.previous, *(f"{quote} [{number}]." for number, quote in quotes.items())])
        evidence = [{"passage": number, "quote": quote} for number, quote in quotes.items()]
        step = {"changed": True, "answer": answer, "evidence": evidence}
        whole = {"answer_found": True, "value": answer, "evidence": evidence}
        return CompletionResponse(text=json.dumps(step if content.reply is StepReply else whole))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: object
    ) -> CompletionResponseGen:
        reply = self.complete(prompt, formatted).text
        return (
            CompletionResponse(text=reply[: n + 9], delta=reply[n : n + 9]) for n in range(0, len(reply), 9)
        )


def given(nodes: Sequence[TextNode]) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=0.5) for node in nodes]


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [node.node_id for node in nodes]


def prompts(events: Sequence[BaseEvent]) -> list[str]:
    return [event.prompt for event in events if isinstance(event, LLMCompletionStartEvent)]


def kinds(events: Sequence[BaseEvent], *wanted: type[BaseEvent]) -> list[type[BaseEvent]]:
    return [type(event) for event in events if isinstance(event, wanted)]


def read(response: RESPONSE_TYPE) -> list[str]:
    assert isinstance(response, StreamingResponse)
    return list(response.response_gen)


async def aread(response: RESPONSE_TYPE) -> list[str]:
    assert isinstance(response, AsyncStreamingResponse)
    return [text async for text in response.async_response_gen()]


async def test_every_entry_gives_the_same_answer(nodes: list[TextNode], llm: LLM) -> None:
    whole, streaming = RefineInThrees(llm), RefineInThrees(llm, streaming=True)
    chosen = given(nodes[:3])
    texts = [node.get_content() for node in chosen]
    response = whole.synthesize(LOOKUP, chosen)
    assert isinstance(response, Response)
    expected = str(response)
    assert "330" in expected
    assert "[1]" in expected
    assert str(await whole.asynthesize(QueryBundle(LOOKUP), chosen)) == expected
    assert "".join(read(streaming.synthesize(LOOKUP, chosen))) == expected
    assert "".join(await aread(await streaming.asynthesize(LOOKUP, chosen))) == expected
    assert whole.get_response(LOOKUP, texts) == expected
    assert await whole.aget_response(LOOKUP, texts) == expected
    stream = streaming.get_response(LOOKUP, texts)
    assert isinstance(stream, Generator)
    assert "".join(stream) == expected
    astream = await streaming.aget_response(LOOKUP, texts)
    assert isinstance(astream, AsyncGenerator)
    assert "".join([text async for text in astream]) == expected


async def test_a_stream_comes_in_pieces_and_ends_with_its_metadata(nodes: list[TextNode], llm: LLM) -> None:
    whole = RefineInThrees(llm).synthesize(LOOKUP, given(nodes[:3]))
    streaming = RefineInThrees(llm, streaming=True)
    response = streaming.synthesize(LOOKUP, given(nodes[:3]))
    assert response.metadata is not None
    assert "lara" not in response.metadata, "the answer is not known before it is read"
    assert len(read(response)) > 1
    assert lara(response)["answer"] == lara(whole)["answer"]
    assert facts(response, "answer")["replayed"] is False
    later = await streaming.asynthesize(LOOKUP, given(nodes[:3]))
    assert len(await aread(later)) > 1
    assert lara(later)["answer"] == lara(whole)["answer"]


def test_a_stream_may_be_left_unread(nodes: list[TextNode], llm: LLM) -> None:
    response = RefineInThrees(llm, streaming=True).synthesize(LOOKUP, given(nodes[:3]))
    assert isinstance(response, StreamingResponse)
    assert next(iter(response.response_gen))
    assert isinstance(response.response_gen, Generator)
    response.response_gen.close()
    assert "330" in str(RefineInThrees(llm).synthesize(LOOKUP, given(nodes[:3])))


async def test_an_engine_streams(index: VectorStoreIndex) -> None:
    engine = lara_query_engine(
        index.as_retriever(similarity_top_k=50), QuotingLLM(), 60.0, "embedded", streaming=True
    )
    response = engine.query(LISTING)
    assert len(read(response)) > 1
    assert facts(response, "route")["regime"] == "batch"
    later = await engine.aquery(LISTING)
    assert len(await aread(later)) > 1
    assert lara(later)["answer"] == lara(response)["answer"]
    assert [phase["phase"] for phase in lara(later)["phases"]] == [
        *("retrieval", "gate", "budget", "route", "answer")
    ]


@pytest.mark.parametrize("count", range(13))
def test_as_many_calls_as_there_are_windows(nodes: list[TextNode], llm: LLM, count: int) -> None:
    with recorded_events() as events:
        response = RefineInThrees(llm).synthesize(LOOKUP, given(nodes[:count]))
    assert len(prompts(events)) == math.ceil(count / 3)
    answered = facts(response, "answer")
    assert (answered["calls"], answered["repairs"]) == (math.ceil(count / 3), 0)
    shown = [number for ask in answered["asks"] for number in ask["passages"]]
    assert shown == list(range(1, count + 1)), "every node once, in order"


@pytest.mark.parametrize(("window", "calls"), [(1, 12), (2, 6), (5, 3), (12, 1), (50, 1)])
def test_windows_of_another_size(nodes: list[TextNode], llm: LLM, window: int, calls: int) -> None:
    response = RefineInThrees(llm, window=window).synthesize(LOOKUP, given(nodes))
    assert facts(response, "answer")["calls"] == calls


def test_it_may_stop_at_a_complete_answer(nodes: list[TextNode], llm: LLM) -> None:
    response = RefineInThrees(llm, stop_when_complete=True).synthesize(LOOKUP, given(nodes))
    assert facts(response, "answer")["outcome"] == "sufficient"
    assert facts(response, "answer")["calls"] == 1


def test_an_unchanged_window_keeps_the_answer(nodes: list[TextNode], llm: LLM) -> None:
    alone = RefineInThrees(llm).synthesize(LOOKUP, given(nodes[:3]))
    response = RefineInThrees(llm).synthesize(LOOKUP, given(nodes))
    assert str(response) == str(alone)
    assert [ask["brought"] for ask in facts(response, "answer")["asks"]] == ["changed", *["unchanged"] * 3]


def test_an_answer_that_grows(nodes: list[TextNode]) -> None:
    response = RefineInThrees(QuotingLLM()).synthesize(LISTING, given(nodes))
    assert facts(response, "answer")["calls"] == 4
    for number, node in enumerate(nodes, start=1):
        assert f"{node.text.split('. ')[0]} [{number}]" in str(response)


def test_citations_are_spans_of_the_sources(nodes: list[TextNode]) -> None:
    response = RefineInThrees(QuotingLLM()).synthesize(LISTING, given(nodes))
    citations = facts(response, "answer")["citations"]
    assert list(citations) == [str(number) for number in range(1, 13)]
    for number, spans in citations.items():
        node = response.source_nodes[int(number) - 1].node
        assert isinstance(node, TextNode)
        for span in spans:
            assert span["passage_id"] == node.node_id
            assert node.text[span["start"] : span["end"]] == span["quote"]
        assert f"[{number}]" in str(response)
    assert lara(response)["answer"]["evidence"]


def test_metadata_is_plain_json(nodes: list[TextNode]) -> None:
    response = RefineInThrees(QuotingLLM()).synthesize(LISTING, given(nodes))
    assert response.metadata is not None
    assert json.loads(json.dumps(response.metadata)) == response.metadata
    assert response.metadata["p0"] == {"title": "Eiffel Tower"}


async def test_additional_sources_are_kept(nodes: list[TextNode], llm: LLM) -> None:
    more = given([TextNode(id_="more", text="Another source.")])
    for synthesizer in (RefineInThrees(llm), RefineInThrees(llm, streaming=True)):
        for some in (nodes[:2], []):
            expected = [*(node.node_id for node in some), "more"]
            assert ids(synthesizer.synthesize(LOOKUP, given(some), more).source_nodes) == expected
            later = await synthesizer.asynthesize(LOOKUP, given(some), more)
            assert ids(later.source_nodes) == expected


async def test_no_nodes_are_a_reason_and_no_call(llm: LLM) -> None:
    reason = "No answer: no passage came to the answer."
    whole, streaming = RefineInThrees(llm), RefineInThrees(llm, streaming=True)
    with recorded_events() as events:
        response = whole.synthesize(LOOKUP, [])
        assert str(response) == reason
        assert str(await whole.asynthesize(LOOKUP, [])) == reason
        stream = streaming.synthesize(LOOKUP, [])
        assert read(stream) == [reason]
        astream = await streaming.asynthesize(LOOKUP, [])
        assert await aread(astream) == [reason]
        assert whole.get_response(LOOKUP, []) == reason
        assert await whole.aget_response(LOOKUP, []) == reason
    assert prompts(events) == []
    for each in (response, stream, astream):
        assert facts(each, "answer")["outcome"] == "no_passages"
        assert lara(each)["answer"]["answer_found"] is False


async def test_an_abstention_streams_its_reason_and_sources(index: VectorStoreIndex, llm: LLM) -> None:
    engine = index.as_query_engine(
        llm=llm,
        similarity_top_k=50,
        node_postprocessors=[ThresholdGate(scorer="embedded"), LatencyBudget(afford=60.0)],
        response_synthesizer=RefineInThrees(llm, streaming=True),
    )
    response = engine.query(UNANSWERABLE)
    later = await engine.aquery(UNANSWERABLE)
    assert read(response) == await aread(later)
    assert "reaches theta 0.3" in lara(response)["phases"][1]["reason"]
    assert len(response.source_nodes) == 3
    scores = [node.score or 0.0 for node in response.source_nodes]
    assert scores == sorted(scores, reverse=True)


SYNTHESIS = (SynthesizeStartEvent, GetResponseStartEvent, GetResponseEndEvent, SynthesizeEndEvent)


async def test_the_frameworks_events_are_fired(nodes: list[TextNode], llm: LLM) -> None:
    synthesizer = RefineInThrees(llm)
    with recorded_events() as events:
        response = synthesizer.synthesize(LOOKUP, given(nodes[:4]))
    assert kinds(events, *SYNTHESIS) == list(SYNTHESIS)
    [start] = [event for event in events if isinstance(event, GetResponseStartEvent)]
    assert start.query_str == LOOKUP
    assert len(start.text_chunks) == 4
    [end] = [event for event in events if isinstance(event, SynthesizeEndEvent)]
    assert str(end.response) == str(response)
    [decision] = [event for event in events if isinstance(event, LaraDecisionEvent)]
    assert (decision.phase, decision.facts["calls"]) == ("answer", 2)
    with recorded_events() as events:
        await synthesizer.asynthesize(LOOKUP, given(nodes[:4]))
    assert kinds(events, *SYNTHESIS) == list(SYNTHESIS)


def test_a_streams_events_come_as_it_is_read(nodes: list[TextNode], llm: LLM) -> None:
    with recorded_events() as events:
        response = RefineInThrees(llm, streaming=True).synthesize(LOOKUP, given(nodes[:3]))
        assert kinds(events, *SYNTHESIS) == [SynthesizeStartEvent, SynthesizeEndEvent]
        read(response)
        assert kinds(events, *SYNTHESIS)[2:] == [GetResponseStartEvent, GetResponseEndEvent]


def test_an_abstention_fires_no_response_events(llm: LLM) -> None:
    with recorded_events() as events:
        RefineInThrees(llm).synthesize(LOOKUP, [])
    assert kinds(events, *SYNTHESIS) == [SynthesizeStartEvent, SynthesizeEndEvent]


def test_the_legacy_callbacks_are_fired(nodes: list[TextNode], llm: LLM) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    synthesizer = RefineInThrees(llm, callback_manager=CallbackManager([debug]))
    response = synthesizer.synthesize(LOOKUP, given(nodes[:3]))
    [(opened, closed)] = debug.get_event_pairs(CBEventType.SYNTHESIZE)
    assert opened.payload == {EventPayload.QUERY_STR: LOOKUP}
    assert closed.payload == {EventPayload.RESPONSE: response}


def test_settings_llm_is_used_where_none_is_given(
    nodes: list[TextNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", ExtractiveLLM())
    assert "330" in str(RefineInThrees().synthesize(LOOKUP, given(nodes[:3])))
