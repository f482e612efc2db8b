"""The retriever's tool among LlamaIndex's own parts."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import RetrieverTool, ToolOutput
from llama_index_lara import ExtractiveLLM, HybridRetriever, LatencyBudget, ThresholdGate, retriever_tool
from llama_index_lara.state import query_state
from pydantic import PrivateAttr
from towers import LOOKUP

from lara_plugins import EmbeddedIndex, InvalidArgument, QueryState
from lara_plugins.query import current_state

KINDS = ["sync", "async"]


class Recorder(BaseNodePostprocessor):
    """Keeps the state that each run finds."""

    _states: list[QueryState] = PrivateAttr(default_factory=list)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self._states.append(query_state())
        return nodes


@pytest.mark.parametrize("kind", KINDS)
async def test_each_run_is_a_query_from_the_tools_start(hybrid: EmbeddedIndex, kind: str) -> None:
    recorder = Recorder()
    tool = retriever_tool(
        HybridRetriever(hybrid),
        "search",
        "About towers.",
        node_postprocessors=[ThresholdGate(scorer="embedded"), LatencyBudget(afford=60.0), recorder],
    )
    assert isinstance(tool, RetrieverTool)
    for _ in range(2):
        output = tool.call(query=LOOKUP) if kind == "sync" else await tool.acall(query=LOOKUP)
        assert output.raw_output[0].node_id == "p0"
        assert output.raw_input == {"query": LOOKUP}
    first, second = recorder._states
    assert first.trace.clock == second.trace.clock == "tool run"
    assert first is not second
    assert [phase.name for phase in first.trace.phases] == ["retrieval", "gate", "budget"]
    assert first.closed
    assert current_state() is None


async def test_it_is_called_by_hand_with_a_question(hybrid: EmbeddedIndex) -> None:
    tool = retriever_tool(HybridRetriever(hybrid, limit=3), "search", "About towers.")
    outputs: list[ToolOutput] = [tool(LOOKUP), tool.call(LOOKUP), await tool.acall(LOOKUP)]
    assert all("330 metres" in output.content for output in outputs)


def test_the_prompt_for_hyde_is_updated_as_any_other(hybrid: EmbeddedIndex) -> None:
    retriever = HybridRetriever(hybrid, hyde=ExtractiveLLM())
    assert list(retriever.get_prompts()) == ["hyde_template"]
    mine = PromptTemplate("Imagine: {query_str}")
    retriever.update_prompts({"hyde_template": mine})
    assert retriever.get_prompts()["hyde_template"] == mine
    with pytest.raises(InvalidArgument, match=r"needs \{query_str\}"):
        retriever.update_prompts({"hyde_template": PromptTemplate("Imagine.")})


def test_narrowing_leaves_the_retriever_as_it_is(hybrid: EmbeddedIndex) -> None:
    retriever = HybridRetriever(hybrid, limit=5)
    narrowed: Any = retriever.narrowed(filter={"source": "0.md"})
    assert [node.node_id for node in narrowed.retrieve(LOOKUP)] == ["p0"]
    assert len(retriever.retrieve(LOOKUP)) == 5
