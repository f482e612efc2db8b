"""Hybrid retrieval as a LangChain retriever."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import PrivateAttr, SkipValidation

from langchain_lara.documents import document_from_match
from langchain_lara.hyde import Writer
from langchain_lara.limits import Model, check_model
from langchain_lara.prompts import HYDE_PROMPT, HYDE_VARIABLES, check_prompt
from langchain_lara.state import install, query_state
from lara_plugins import HybridIndex, InvalidArgument
from lara_plugins.phases import arun_retrieval, run_retrieval
from lara_plugins.retrieval import Filter, Namespaces, PoolRule, SearchSettings
from lara_plugins.retrieval.index import check_index


class HybridRetriever(BaseRetriever):
    """Finds documents by a weighted sum of dense and sparse similarity.

    Weight and number follow the size of the index; the gate, not this retriever, decides how
    many are relevant.

    A call may narrow it: ``retriever.invoke(question, filter=..., namespace=..., limit=...,
    hyde=...)``, or ``retriever.bind(...)`` in a chain. A call's filter adds to the retriever's, and
    ``hyde`` says whether its LLM is asked; the others stand in place of the retriever's.

    Args:
        index: a hybrid index, such as ``EmbeddedIndex`` or ``PineconeIndex``; it stays the caller's.
        limit: so many documents in place of the plan's pool of candidates.
        alpha: weight of the dense half, 0..1, in place of the plan's.
        pool: the rule for the pool: ``fixed``, ``proportional`` or ``oversample``.
        top_k: what the last two rules count from, in place of the plan's.
        filter: which passages are searched, by their metadata and ``source``, such as
            ``{"year": {"$gte": 2020}}``.
        namespace: where in the index, for one that has namespaces.
        hyde: a model, best a fast one, that writes a hypothetical answer, which is embedded densely
            in place of the question; where it fails or takes too long, the question is.
        hyde_prompt: its prompt; variable ``input``, the question in a fence.
        name: its name in traces.
        tags: tags of each of its runs.
        metadata: metadata of each of its runs.

    Raises:
        InvalidArgument: an argument is out of its range or of another kind, or the index has no
            namespaces.
    """

    index: SkipValidation[HybridIndex]
    limit: int | None = None
    alpha: float | None = None
    pool: PoolRule = "fixed"
    top_k: int | None = None
    filter: SkipValidation[Filter | None] = None
    namespace: str | None = None
    hyde: SkipValidation[Model | None] = None
    hyde_prompt: SkipValidation[BasePromptTemplate[Any]] = HYDE_PROMPT
    _namespaces: Namespaces = PrivateAttr()

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
        hyde: Model | None = None,
        hyde_prompt: BasePromptTemplate[Any] = HYDE_PROMPT,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        # Checked here, so that the sentence comes as it is and not inside a ValidationError.
        check_index(index)
        check_prompt("hyde_prompt", hyde_prompt, HYDE_VARIABLES)
        if hyde is not None:
            check_model(hyde, "hyde")
        SearchSettings(limit, alpha, pool, top_k, filter, namespace)
        namespaces = Namespaces()
        namespaces.open(index, namespace)
        super().__init__(  # type: ignore[call-arg]  # mypy takes it for the base's synthesised one
            index=index,
            limit=limit,
            alpha=alpha,
            pool=pool,
            top_k=top_k,
            filter=filter,
            namespace=namespace,
            hyde=hyde,
            hyde_prompt=hyde_prompt,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        self._namespaces = namespaces
        install()

    def load(self) -> None:
        """Load the index's encoders now, so that no query pays for it."""
        self.index.load()

    def _get_ls_params(self, **kwargs: object) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        return LangSmithRetrieverParams(**params, ls_vector_store_provider=type(self.index).__name__)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        filter: Filter | None = None,
        namespace: str | None = None,
        limit: int | None = None,
        hyde: bool | None = None,
    ) -> list[Document]:
        state = query_state(run_manager.run_id, "retrieval", query)
        settings = self._settings().narrowed(filter, namespace, limit)
        index = self._namespaces.open(self.index, settings.namespace)
        matches = run_retrieval(state, query, index, settings, self._writer(run_manager, hyde))
        return [document_from_match(match) for match in matches]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        filter: Filter | None = None,
        namespace: str | None = None,
        limit: int | None = None,
        hyde: bool | None = None,
    ) -> list[Document]:
        state = query_state(run_manager.run_id, "retrieval", query)
        settings = self._settings().narrowed(filter, namespace, limit)
        index = self._namespaces.open(self.index, settings.namespace)
        matches = await arun_retrieval(state, query, index, settings, self._writer(run_manager, hyde))
        return [document_from_match(match) for match in matches]

    def _settings(self) -> SearchSettings:
        # Of each call anew: a field may have been set, or changed in a copy.
        return SearchSettings(self.limit, self.alpha, self.pool, self.top_k, self.filter, self.namespace)

    def _writer(
        self,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        wanted: bool | None,
    ) -> Writer | None:
        if self.hyde is None:
            if wanted:
                raise InvalidArgument("hyde", wanted, "give the retriever an LLM as hyde first")
            return None
        return None if wanted is False else Writer(self.hyde, self.hyde_prompt, run_manager.get_child())
