"""What every plug-in promises as a runnable, sync and async."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any, Literal

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_lara import (
    ExtractiveChatModel,
    LatencyBudget,
    QuestionShapeRouter,
    RefineInThrees,
    ThresholdGate,
)
from langchain_lara.state import open_runs
from langchain_parts import descendants
from towers import COMPARISON, LISTING, LOOKUP

from lara_plugins import Call, CallableScorer, InvalidArgument, LatencyModel, Scorer, load_scorer

PlugIn = Runnable[dict[str, Any], Any]
Kind = Literal["sync", "async"]


class Watch:
    """The model behind a plug-in: counts its calls with their threads, and fails or waits on demand."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.error: Exception | None = None
        self.entered = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def called(self) -> None:
        """The model calls this before it works."""
        self.threads.append(threading.get_ident())
        self.entered.set()
        assert self.free.wait(30)
        if self.error is not None:
            raise self.error


def watched_scorer(watch: Watch) -> Scorer:
    scorer = load_scorer("embedded")

    def score(query: str, texts: Sequence[str]) -> list[float]:
        watch.called()
        return scorer.score(query, texts)

    return CallableScorer(score, scorer.score_kind, scale_known=True)


def watched_gate(watch: Watch) -> PlugIn:
    return ThresholdGate(scorer=watched_scorer(watch))


def watched_budget(watch: Watch) -> PlugIn:
    class Watched(LatencyModel):
        def predict(self, calls: Sequence[Call]) -> float:
            if calls:
                watch.called()
            return 100.0 * sum(call.passages for call in calls)

    return LatencyBudget(afford=350.0, latency=Watched())


def watched_refine(watch: Watch) -> PlugIn:
    return RefineInThrees(ExtractiveChatModel(watched_scorer(watch)))


def watched_router(watch: Watch) -> PlugIn:
    return QuestionShapeRouter(ExtractiveChatModel(watched_scorer(watch)))


PLUG_INS: dict[str, Callable[[Watch], PlugIn]] = {
    "gate": watched_gate,
    "budget": watched_budget,
    "refine": watched_refine,
    "router": watched_router,
}
COMPRESSORS = ["gate", "budget"]


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture(params=PLUG_INS)
def plug_in(request: pytest.FixtureRequest, watch: Watch) -> PlugIn:
    return PLUG_INS[request.param](watch)


@pytest.fixture(params=COMPRESSORS)
def compressor(request: pytest.FixtureRequest, watch: Watch) -> PlugIn:
    return PLUG_INS[request.param](watch)


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


async def called(
    plug_in: PlugIn, kind: Kind, given: dict[str, Any], config: RunnableConfig | None = None
) -> Any:  # noqa: ANN401 - plug-ins return documents, text or a mapping
    return plug_in.invoke(given, config) if kind == "sync" else await plug_in.ainvoke(given, config)


async def streamed(plug_in: PlugIn, kind: Kind, given: dict[str, Any]) -> list[Any]:
    if kind == "sync":
        return list(plug_in.stream(given))
    return [chunk async for chunk in plug_in.astream(given)]


async def batched(
    plug_in: PlugIn, kind: Kind, given: list[Any], return_exceptions: Literal[True, False] = False
) -> list[Any]:
    if kind == "sync":
        return plug_in.batch(given, return_exceptions=return_exceptions)
    return await plug_in.abatch(given, return_exceptions=return_exceptions)


async def test_nothing_to_read_asks_no_model(plug_in: PlugIn, kind: Kind, watch: Watch) -> None:
    await called(plug_in, kind, {"input": LOOKUP, "context": []})
    await batched(plug_in, kind, [{"input": LOOKUP, "context": []}] * 2)
    await streamed(plug_in, kind, {"input": LOOKUP, "context": []})
    assert watch.threads == []


async def test_of_nothing_a_compressor_keeps_nothing(compressor: PlugIn, kind: Kind) -> None:
    assert await called(compressor, kind, {"input": LOOKUP, "context": []}) == []


async def test_inputs_stay_as_they_are(plug_in: PlugIn, kind: Kind, documents: list[Document]) -> None:
    given = {"input": LOOKUP, "context": documents, "other": {"kept": [1]}}
    before = copy.deepcopy(given)
    await called(plug_in, kind, given)
    await streamed(plug_in, kind, given)
    assert given == before


async def test_a_compressor_returns_copies_with_id_text_and_metadata(
    compressor: PlugIn, kind: Kind, documents: list[Document]
) -> None:
    known = {document.id: document for document in documents}
    kept = await called(compressor, kind, {"input": LISTING, "context": documents})
    assert kept
    assert len({document.id for document in kept}) == len(kept)
    for document in kept:
        original = known[document.id]
        assert document.page_content == original.page_content
        assert document.metadata.items() >= original.metadata.items()
        document.metadata["changed"] = True
        assert "changed" not in original.metadata


async def test_documents_without_ids_are_served(
    compressor: PlugIn, kind: Kind, documents: list[Document]
) -> None:
    bare = [Document(document.page_content) for document in documents]
    kept = await called(compressor, kind, {"input": LOOKUP, "context": [*bare, bare[0]]})
    assert kept
    assert all(document.id is None for document in kept)


@pytest.mark.parametrize(
    "bad",
    [
        {"input": "", "context": []},
        {"input": None, "context": []},
        {"context": []},
        {1: 2, "question": LOOKUP},
        {"input": LOOKUP},
        {"input": LOOKUP, "context": "text"},
        {"input": LOOKUP, "context": ["text"]},
        "a question",
    ],
    ids=str,
)
async def test_a_bad_input_in_a_batch_spoils_no_other(
    plug_in: PlugIn, kind: Kind, documents: list[Document], bad: object
) -> None:
    good = {"input": LOOKUP, "context": documents}
    first, refused, second = await batched(plug_in, kind, [good, bad, good], return_exceptions=True)
    assert isinstance(refused, InvalidArgument)
    assert refused.remedy
    assert "\n" not in str(refused)
    assert first == second == await called(plug_in, kind, good)
    with pytest.raises(InvalidArgument):
        await batched(plug_in, kind, [good, bad])


async def test_an_argument_that_nothing_would_come_of_is_refused(
    plug_in: PlugIn, kind: Kind, documents: list[Document]
) -> None:
    bound = plug_in.bind(theta=0.5)
    for call in (called, streamed):
        with pytest.raises(InvalidArgument, match=r"^theta=0.5: .* at construction$"):
            await call(bound, kind, {"input": LOOKUP, "context": documents})


async def test_the_models_error_comes_through(
    plug_in: PlugIn, kind: Kind, documents: list[Document], watch: Watch
) -> None:
    watch.error = ConnectionError("the model is down")
    given = {"input": LOOKUP, "context": documents}
    with pytest.raises(ConnectionError, match="the model is down"):
        await called(plug_in, kind, given)
    with pytest.raises(ConnectionError, match="the model is down"):
        await streamed(plug_in, kind, given)
    with pytest.raises(ConnectionError, match="the model is down"):
        await batched(plug_in, kind, [given, given])
    # The first error ends the batch; its other item ends by itself.
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*rest, return_exceptions=True)
    assert open_runs() == 0


async def test_no_model_works_on_the_event_loops_thread(
    plug_in: PlugIn, documents: list[Document], watch: Watch
) -> None:
    given = {"input": LOOKUP, "context": documents}
    await plug_in.ainvoke(given)
    await plug_in.abatch([given, given])
    await streamed(plug_in, "async", given)
    assert watch.threads
    assert threading.get_ident() not in watch.threads


async def test_cancellation_leaves_nothing_pending(
    plug_in: PlugIn, documents: list[Document], watch: Watch
) -> None:
    watch.free.clear()
    given = {"input": LOOKUP, "context": documents}
    task = asyncio.create_task(plug_in.ainvoke(given))
    assert await asyncio.to_thread(watch.entered.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert open_runs() == 0
    watch.free.set()
    assert await plug_in.ainvoke(given) is not None


async def test_a_stream_ends_with_what_invoke_gives(
    plug_in: PlugIn, kind: Kind, documents: list[Document]
) -> None:
    given = {"input": LOOKUP, "context": documents}
    assert reduce(add, await streamed(plug_in, kind, given)) == await called(plug_in, kind, given)


async def test_many_at_once_give_what_one_gives(
    plug_in: PlugIn, kind: Kind, documents: list[Document]
) -> None:
    given = [
        {"input": question, "context": documents} for question in (LOOKUP, LISTING, COMPARISON) for _ in "abc"
    ]
    one_by_one = [await called(plug_in, kind, each) for each in given]
    assert await batched(plug_in, kind, given) == one_by_one
    assert await asyncio.gather(*(plug_in.ainvoke(each) for each in given)) == one_by_one


async def test_config_reaches_the_run_and_all_below_it(
    plug_in: PlugIn, kind: Kind, documents: list[Document]
) -> None:
    collector = RunCollectorCallbackHandler()
    config: RunnableConfig = {
        "callbacks": [collector],
        "tags": ["mine"],
        "metadata": {"tenant": "a"},
        "run_name": "my step",
    }
    await called(plug_in, kind, {"input": LOOKUP, "context": documents}, config)
    [run] = collector.traced_runs
    assert run.name == "my step"
    for below in descendants(run):
        assert "mine" in (below.tags or [])
        assert below.metadata["tenant"] == "a"
        assert below.end_time is not None


async def test_an_unnamed_run_is_named_after_the_plug_in(plug_in: PlugIn, kind: Kind) -> None:
    collector = RunCollectorCallbackHandler()
    handlers: list[BaseCallbackHandler] = [collector]
    await called(plug_in, kind, {"input": LOOKUP, "context": []}, {"callbacks": handlers})
    assert collector.traced_runs[0].name == plug_in.get_name()


def test_schemas_are_of_use_to_tools_and_graphs(plug_in: PlugIn, documents: list[Document]) -> None:
    schema = plug_in.get_input_jsonschema()
    assert {"input", "context"} <= set(schema["properties"])
    assert set(schema["required"]) == {"input", "context"}
    assert plug_in.get_output_jsonschema()["type"] in {"array", "string", "object"}
    tool = plug_in.as_tool(name="step", description="a step")
    assert {"input", "context"} <= set(tool.args)
    given = {"input": LOOKUP, "context": [document.model_dump() for document in documents]}
    assert tool.invoke(given) == plug_in.invoke({"input": LOOKUP, "context": documents})
    graph = plug_in.get_graph()
    assert len(graph.nodes) >= 3
