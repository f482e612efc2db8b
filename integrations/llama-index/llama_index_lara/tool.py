"""Hybrid retrieval as a tool of a LlamaIndex agent."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import RetrieverTool, ToolMetadata, ToolOutput
from pydantic import BaseModel, ValidationError

from lara_plugins import InvalidArgument
from lara_plugins.phases import FilterFields, fault_of, shown_to_agent, tool_arguments
from llama_index_lara.nodes import shown_passage
from llama_index_lara.retriever import HybridRetriever
from llama_index_lara.state import query_state


class HybridRetrieverTool(RetrieverTool):
    """A retriever tool whose arguments narrow the search; see ``retriever_tool``."""

    def __init__(
        self,
        retriever: HybridRetriever,
        metadata: ToolMetadata,
        arguments: type[BaseModel],
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
    ) -> None:
        super().__init__(retriever, metadata, list(node_postprocessors))
        self._hybrid = retriever
        self._arguments = arguments

    def call(self, *args: object, **kwargs: object) -> ToolOutput:
        try:
            query, retriever = self._asked(args, kwargs)
        except ValidationError as error:
            return self._refusal(kwargs, error)
        found = self._apply_node_postprocessors(retriever.retrieve(query), query)
        return self._output(kwargs, found)

    async def acall(self, *args: object, **kwargs: object) -> ToolOutput:
        try:
            query, retriever = self._asked(args, kwargs)
        except ValidationError as error:
            return self._refusal(kwargs, error)
        found = await self._async_apply_node_postprocessors(await retriever.aretrieve(query), query)
        return self._output(kwargs, found)

    def _asked(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[QueryBundle, HybridRetriever]:
        """What is searched for, and where; a lone positional argument is the query."""
        given = {**({"query": args[0]} if args else {}), **kwargs}
        asked = self._arguments.model_validate(given).model_dump()
        return QueryBundle(asked.pop("query")), self._hybrid.narrowed(**asked)

    def _output(self, given: dict[str, object], found: list[NodeWithScore]) -> ToolOutput:
        content = shown_to_agent(query_state(), [shown_passage(node) for node in found])
        return ToolOutput(
            content=content, tool_name=self.metadata.get_name(), raw_input=given, raw_output=found
        )

    def _refusal(self, given: dict[str, object], error: ValidationError) -> ToolOutput:
        return ToolOutput(
            content=fault_of(error),
            tool_name=self.metadata.get_name(),
            raw_input=given,
            raw_output=[],
            is_error=True,
            exception=error,
        )


def retriever_tool(
    retriever: HybridRetriever,
    name: str,
    description: str,
    *,
    node_postprocessors: Sequence[BaseNodePostprocessor] = (),
    namespaces: Sequence[str] = (),
    filters: bool | FilterFields = False,
    hyde: bool = False,
) -> HybridRetrieverTool:
    """A tool with which an agent searches, and narrows the search as far as it is let.

    The agent's filter adds to the retriever's own. Arguments that are wrong are answered with one
    sentence, so that the agent can mend them. It reads the passages numbered and fenced; the nodes
    are the output's ``raw_output``. The query's clock starts with the tool's run.

    Args:
        retriever: what searches.
        name: the tool's name, as the agent calls it.
        description: when to use it, for the agent.
        node_postprocessors: what stands behind the retriever, such as ``ThresholdGate`` and
            ``LatencyBudget``; without a gate the agent reads the whole pool of candidates.
        namespaces: those that the agent may choose from, the first by default; without any it has
            no such argument.
        filters: whether the agent may filter by metadata; or a description of each field that it
            may filter by.
        hyde: whether the agent decides on each call if the retriever's ``hyde`` LLM is asked.

    Raises:
        InvalidArgument: an argument is of another kind, the index has no namespaces, or the retriever
            no LLM for ``hyde``.
    """
    if not isinstance(retriever, HybridRetriever):
        raise InvalidArgument("retriever", retriever, "give a HybridRetriever")
    if not isinstance(node_postprocessors, Sequence):
        raise InvalidArgument("node_postprocessors", node_postprocessors, "give a list of them")
    if hyde:
        retriever = retriever.narrowed(hyde=True)
    arguments = tool_arguments(retriever.index, namespaces=namespaces, filters=filters, hyde=hyde)
    metadata = ToolMetadata(description, name, arguments)
    return HybridRetrieverTool(retriever, metadata, arguments, node_postprocessors)
