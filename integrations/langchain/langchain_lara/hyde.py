"""A LangChain model that writes hypothetical answers."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig

from langchain_lara.limits import Model
from langchain_lara.model import NO_STREAM


@dataclass(frozen=True, slots=True)
class Writer:
    """The model with its prompt, inside a retriever's run.

    Args:
        llm: a chat model, a text model, or either under ``bind``, ``with_config`` or ``with_retry``.
        prompt: variable ``input``.
        callbacks: those of the retriever's run.
    """

    llm: Model
    prompt: BasePromptTemplate[object]
    callbacks: BaseCallbackManager

    @property
    def callee(self) -> object:
        return self.llm

    def write(self, question: str) -> str:
        return _text(self.llm.invoke(self._messages(question), self._config))

    async def awrite(self, question: str) -> str:
        return _text(await self.llm.ainvoke(self._messages(question), self._config))

    def _messages(self, question: str) -> list[BaseMessage]:
        return self.prompt.format_prompt(input=question).to_messages()

    @property
    def _config(self) -> RunnableConfig:
        return {"callbacks": self.callbacks, "tags": [NO_STREAM], "run_name": "hyde"}


def _text(reply: BaseMessage | str) -> str:
    return reply if isinstance(reply, str) else str(reply.text)
