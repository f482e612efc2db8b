"""A LlamaIndex LLM that writes hypothetical answers."""

from __future__ import annotations

from dataclasses import dataclass

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate


@dataclass(frozen=True, slots=True)
class Writer:
    """The LLM with its prompt.

    Args:
        llm: the LLM.
        template: variable ``query_str``.
    """

    llm: LLM
    template: BasePromptTemplate

    @property
    def callee(self) -> object:
        return self.llm

    def write(self, question: str) -> str:
        return self.llm.predict(self.template, query_str=question)

    async def awrite(self, question: str) -> str:
        return await self.llm.apredict(self.template, query_str=question)
