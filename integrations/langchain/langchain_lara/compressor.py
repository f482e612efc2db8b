"""What ThresholdGate and LatencyBudget share: a document compressor that is a runnable, too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable, run_in_executor
from pydantic import BaseModel, ConfigDict

from langchain_lara.events import aannounce, announce
from langchain_lara.inputs import PassagesInput, PassagesSchema, question_and_documents, refuse_arguments
from langchain_lara.queries import Part
from langchain_lara.state import query_state
from lara_plugins import QueryState


class QueryCompressor(BaseDocumentCompressor, RunnableSerializable[PassagesInput, list[Document]]):
    """Keeps some of a question's documents; as a compressor and in a chain.

    In a chain it takes a mapping with ``input`` and ``context`` and returns the documents, so that
    ``RunnablePassthrough.assign(context=...)`` puts it behind a retriever.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    part: ClassVar[Part]

    @abstractmethod
    def _keep(self, state: QueryState, question: str, documents: Sequence[Document]) -> list[Document]:
        """Decide, write the decision into the state, and return copies of the documents that stay."""

    def invoke(
        self,
        input: PassagesInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: object,
    ) -> list[Document]:
        refuse_arguments(kwargs)
        return self._call_with_config(self._compress, input, config)

    async def ainvoke(
        self,
        input: PassagesInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: object,
    ) -> list[Document]:
        refuse_arguments(kwargs)
        return await self._acall_with_config(self._acompress, input, config)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        return self.invoke({"input": query, "context": list(documents)}, {"callbacks": callbacks})

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        return await self.ainvoke({"input": query, "context": list(documents)}, {"callbacks": callbacks})

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return PassagesSchema

    def _compress(
        self, given: PassagesInput, run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> list[Document]:
        state, kept = self._kept(given, run_manager.run_id)
        announce(state, self.part, config)
        return kept

    async def _acompress(
        self, given: PassagesInput, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> list[Document]:
        # Deciding may run a model, which must not hold up the event loop.
        state, kept = await run_in_executor(config, self._kept, given, run_manager.run_id)
        await aannounce(state, self.part, config)
        return kept

    def _kept(self, given: PassagesInput, run_id: UUID) -> tuple[QueryState, list[Document]]:
        question, documents = question_and_documents(given)
        state = query_state(run_id, self.part, question)
        return state, self._keep(state, question, documents)
