"""Both frameworks by name, for tests that hold them to the same."""

from __future__ import annotations

from applications import Framework
from langchain_application import LangChain
from llama_index_application import LlamaIndex

FRAMEWORKS: dict[str, Framework] = {"llama-index": LlamaIndex(), "langchain": LangChain()}
