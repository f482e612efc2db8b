"""What a plug-in takes: a question and the documents that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypeGuard

from langchain_core.documents import Document
from pydantic import BaseModel, Field

from lara_plugins import InvalidArgument
from lara_plugins.gate import checked_question

PassagesInput: TypeAlias = dict[str, Any]
"""A question and documents, under the keys of ``create_retrieval_chain``: ``input`` and ``context``.

It is the type of a chain's input, so that type checkers let a plug-in stand in ``assign``. Other keys
may stand beside them, such as ``sources``: documents that are shown where ``context`` is empty.
"""


class PassagesSchema(BaseModel):
    """A question and the documents that it is about."""

    input: Annotated[str, Field(description="the question")]
    context: Annotated[list[Document], Field(description="the documents, best first")]


def asked(inputs: object) -> str:
    """The question of a chain's input.

    Raises:
        InvalidArgument: there is none.
    """
    if not isinstance(inputs, Mapping) or "input" not in inputs:
        given = sorted(map(str, inputs)) if isinstance(inputs, Mapping) else inputs
        raise InvalidArgument("input", given, "give {'input': the question}")
    return checked_question(inputs["input"])


def refuse_arguments(given: Mapping[str, object]) -> None:
    """Refuse what a call, or ``bind``, gives beside input and config: nothing would come of it.

    Raises:
        InvalidArgument: there is something.
    """
    for argument, value in given.items():
        raise InvalidArgument(argument, value, "a call takes input and config: set it up at construction")


def question_and_documents(inputs: PassagesInput) -> tuple[str, Sequence[Document]]:
    """What a plug-in was given.

    Raises:
        InvalidArgument: there is no question, or no list of documents.
    """
    question = asked(inputs)
    documents = inputs.get("context")
    if not _are_documents(documents):
        raise InvalidArgument("context", documents, "give {'context': a list of Documents}")
    return question, documents


def shown_sources(inputs: PassagesInput) -> Sequence[Document]:
    """The documents that are shown where ``context`` is empty.

    An application may keep something else of its own under the key; then there are none.
    """
    sources = inputs.get("sources")
    return sources if _are_documents(sources) else ()


def _are_documents(given: object) -> TypeGuard[Sequence[Document]]:
    return isinstance(given, Sequence) and all(isinstance(each, Document) for each in given)
