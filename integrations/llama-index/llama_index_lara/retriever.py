"""Hybrid retrieval as a LlamaIndex retriever."""

from __future__ import annotations

import copy

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import NodeWithScore, QueryBundle

from lara_plugins import HybridIndex, InvalidArgument
from lara_plugins.phases import arun_retrieval, run_retrieval
from lara_plugins.retrieval import Filter, Namespaces, PoolRule, SearchSettings
from lara_plugins.retrieval.index import check_index
from llama_index_lara.hyde import Writer
from llama_index_lara.nodes import node_from_match
from llama_index_lara.state import install, query_state
from llama_index_lara.templates import HYDE_QA_TEMPLATE, HYDE_VARIABLES, check_template


class HybridRetriever(BaseRetriever):
    """Finds nodes by a weighted sum of dense and sparse similarity.

    Weight and number follow the size of the index; the gate, not this retriever, decides how
    many are relevant.

    Args:
        index: a hybrid index, such as ``EmbeddedIndex`` or ``PineconeIndex``; it stays the caller's.
        limit: so many nodes in place of the plan's pool of candidates.
        alpha: weight of the dense half, 0..1, in place of the plan's.
        pool: the rule for the pool: ``fixed``, ``proportional`` or ``oversample``.
        top_k: what the last two rules count from, in place of the plan's.
        filter: which passages are searched, by their metadata and ``source``, such as
            ``{"year": {"$gte": 2020}}``.
        namespace: where in the index, for one that has namespaces.
        hyde: an LLM, best a fast one, that writes a hypothetical answer, which is embedded densely
            in place of the question; where it fails or takes too long, the question is.
        hyde_template: its prompt; variable ``query_str``, the question in a fence.
        callback_manager: the application's, where it has one.

    Raises:
        InvalidArgument: an argument is out of its range or of another kind, or the index has no
            namespaces.
    """

    def __init__(
        self,
        index: HybridIndex,
        limit: int | None = None,
        alpha: float | None = None,
        *,
        pool: PoolRule = "fixed",
        top_k: int | None = None,
        filter: Filter | None = None,
        namespace: str | None = None,
        hyde: LLM | None = None,
        hyde_template: BasePromptTemplate = HYDE_QA_TEMPLATE,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        check_index(index)
        check_template("hyde_template", hyde_template, HYDE_VARIABLES)
        if hyde is not None and not isinstance(hyde, LLM):
            raise InvalidArgument("hyde", hyde, "give an LLM of LlamaIndex, such as Settings.llm")
        settings = SearchSettings(limit, alpha, pool, top_k, filter, namespace)
        namespaces = Namespaces()
        namespaces.open(index, namespace)
        super().__init__(callback_manager=callback_manager)
        self.index = index
        self._settings = settings
        self._namespaces = namespaces
        self._hyde_llm = hyde
        self._hyde_template = hyde_template
        self._hyde = hyde is not None
        install()

    def load(self) -> None:
        """Load the index's encoders now, so that no query pays for it."""
        self.index.load()

    def narrowed(
        self,
        filter: Filter | None = None,
        namespace: str | None = None,
        limit: int | None = None,
        hyde: bool | None = None,
    ) -> HybridRetriever:
        """The same retriever for one call; this one stays as it is.

        Args:
            filter: further conditions; the retriever's own hold, too.
            namespace: in place of the retriever's.
            limit: in place of the retriever's.
            hyde: whether its LLM writes a hypothetical answer; None for as it stands.

        Raises:
            InvalidArgument: an argument is out of its range, or the retriever has no LLM for ``hyde``.
        """
        if hyde and self._hyde_llm is None:
            raise InvalidArgument("hyde", hyde, "give the retriever an LLM as hyde first")
        other = copy.copy(self)
        other._settings = self._settings.narrowed(filter, namespace, limit)
        other._namespaces.open(other.index, namespace)
        if hyde is not None:
            other._hyde = hyde
        return other

    def _get_prompts(self) -> PromptDictType:
        return {"hyde_template": self._hyde_template}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        if "hyde_template" in prompts:
            check_template("hyde_template", prompts["hyde_template"], HYDE_VARIABLES)
            self._hyde_template = prompts["hyde_template"]

    def _writer(self) -> Writer | None:
        if self._hyde_llm is None or not self._hyde:
            return None
        return Writer(self._hyde_llm, self._hyde_template)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        index = self._namespaces.open(self.index, self._settings.namespace)
        matches = run_retrieval(query_state(), query_bundle.query_str, index, self._settings, self._writer())
        return [node_from_match(match) for match in matches]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        index = self._namespaces.open(self.index, self._settings.namespace)
        matches = await arun_retrieval(
            query_state(), query_bundle.query_str, index, self._settings, self._writer()
        )
        return [node_from_match(match) for match in matches]
