"""LangChain's own standard tests of a retriever, on a real index."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_lara import HybridRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from towers import LOOKUP

from lara_plugins import EmbeddedIndex


class TestHybridRetriever(RetrieversIntegrationTests):
    """Over the embedded index."""

    @pytest.fixture(autouse=True)
    def _index(self, hybrid: EmbeddedIndex) -> None:
        self.index = hybrid

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return HybridRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": self.index}

    @property
    def retriever_query_example(self) -> str:
        return LOOKUP

    @property
    def num_results_arg_name(self) -> str:
        return "limit"
