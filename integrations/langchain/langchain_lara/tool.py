"""Hybrid retrieval as a tool of a LangChain agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackManager, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.tools import StructuredTool
from pydantic import ValidationError

from langchain_lara.documents import shown_passage
from langchain_lara.retriever import HybridRetriever
from langchain_lara.state import query_state
from lara_plugins import InvalidArgument, QueryState
from lara_plugins.phases import FilterFields, fault_of, shown_to_agent, tool_arguments


def retriever_tool(
    retriever: HybridRetriever,
    name: str,
    description: str,
    *,
    compressors: Sequence[BaseDocumentCompressor] = (),
    namespaces: Sequence[str] = (),
    filters: bool | FilterFields = False,
    hyde: bool = False,
) -> StructuredTool:
    """A tool with which an agent searches, and narrows the search as far as it is let.

    The agent's filter adds to the retriever's own. Arguments that are wrong are answered with one
    sentence, so that the agent can mend them. It reads the passages numbered and fenced; the
    documents are the tool message's ``artifact``. The query's clock starts with the tool's run.

    Args:
        retriever: what searches.
        name: the tool's name, as the agent calls it.
        description: when to use it, for the agent.
        compressors: what stands behind the retriever, such as ``ThresholdGate`` and
            ``LatencyBudget``; without a gate the agent reads the whole pool of candidates.
        namespaces: those that the agent may choose from, the first by default; without any it has
            no such argument.
        filters: whether the agent may filter by metadata; or a description of each field that it
            may filter by.
        hyde: whether the agent decides on each call if the retriever's ``hyde`` model is asked.

    Raises:
        InvalidArgument: an argument is of another kind, the index has no namespaces, or the retriever
            no model for ``hyde``.
    """
    if not isinstance(retriever, HybridRetriever):
        raise InvalidArgument("retriever", retriever, "give a HybridRetriever")
    if not isinstance(compressors, Sequence):
        raise InvalidArgument("compressors", compressors, "give a list of them")
    if hyde and retriever.hyde is None:
        raise InvalidArgument("hyde", hyde, "give the retriever an LLM as hyde first")

    def search(query: str, callbacks: Callbacks = None, **narrowing: Any) -> tuple[str, list[Document]]:  # noqa: ANN401 - as the arguments' model has them
        found = retriever.invoke(query, {"callbacks": callbacks}, **narrowing)
        for compressor in compressors:
            found = list(compressor.compress_documents(found, query, callbacks))
        return _shown(query, callbacks, found)

    async def asearch(
        query: str,
        callbacks: Callbacks = None,
        **narrowing: Any,  # noqa: ANN401
    ) -> tuple[str, list[Document]]:
        found = await retriever.ainvoke(query, {"callbacks": callbacks}, **narrowing)
        for compressor in compressors:
            found = list(await compressor.acompress_documents(found, query, callbacks))
        return _shown(query, callbacks, found)

    return StructuredTool(
        name=name,
        description=description,
        func=search,
        coroutine=asearch,
        args_schema=tool_arguments(retriever.index, namespaces=namespaces, filters=filters, hyde=hyde),
        response_format="content_and_artifact",
        handle_validation_error=_refusal,
    )


def _shown(query: str, callbacks: Callbacks, found: list[Document]) -> tuple[str, list[Document]]:
    run = callbacks.parent_run_id if isinstance(callbacks, BaseCallbackManager) else None
    state = QueryState() if run is None else query_state(run, "answer", query)
    return shown_to_agent(state, [shown_passage(document) for document in found]), found


def _refusal(error: object) -> str:
    assert isinstance(error, ValidationError)  # noqa: S101 - the arguments' model is of pydantic 2
    return fault_of(error)
