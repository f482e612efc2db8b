"""Hybrid retrieval as a LlamaIndex retriever."""

from __future__ import annotations

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle

from lara_plugins import HybridIndex
from lara_plugins.arguments import check_count, check_share
from lara_plugins.phases import arun_retrieval, run_retrieval
from llama_index_lara.nodes import node_from_match
from llama_index_lara.state import install, query_state


class HybridRetriever(BaseRetriever):
    """Finds nodes by a weighted sum of dense and sparse similarity.

    Weight and number follow the size of the index; the gate, not this retriever, decides how
    many are relevant.

    Args:
        index: a hybrid index, such as ``EmbeddedIndex``; it stays the caller's.
        limit: so many nodes in place of the plan's pool of candidates.
        alpha: weight of the dense half, 0..1, in place of the plan's.
        callback_manager: the application's, where it has one.

    Raises:
        InvalidArgument: an argument is out of its range.
    """

    def __init__(
        self,
        index: HybridIndex,
        limit: int | None = None,
        alpha: float | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if limit is not None:
            check_count("limit", limit, "give the most nodes to find, 1 or more, or None")
        if alpha is not None:
            check_share("alpha", alpha, "give a weight from 0 to 1, or None for the plan's")
        super().__init__(callback_manager=callback_manager)
        self._index = index
        self._limit = limit
        self._alpha = alpha
        install()

    def load(self) -> None:
        """Load the index's encoders now, so that no query pays for it."""
        self._index.load()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        matches = run_retrieval(query_state(), query_bundle.query_str, self._index, self._limit, self._alpha)
        return [node_from_match(match) for match in matches]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        matches = await arun_retrieval(
            query_state(), query_bundle.query_str, self._index, self._limit, self._alpha
        )
        return [node_from_match(match) for match in matches]
