"""The extractive reader in the place of a chat model."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.chains.question_answering.stuff_prompt import CHAT_PROMPT, PROMPT
from langchain_core.documents import Document
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_lara import ExtractiveChatModel
from towers import LOOKUP, UNANSWERABLE

from lara_plugins import CallableScorer, InvalidArgument, load_scorer

# The layouts of LangChain's hub and of its documentation.
STOCK: dict[str, Any] = {
    "classic": PROMPT,
    "classic chat": CHAT_PROMPT,
    "rag-prompt": PromptTemplate.from_template(
        "You are an assistant for questions.\nQuestion: {question} \nContext: {context} \nAnswer:"
    ),
    "retrieval-qa-chat": ChatPromptTemplate.from_messages(
        [
            ("system", "Answer based on the context below:\n\n<context>\n{context}\n</context>"),
            ("human", "{question}"),
        ]
    ),
    "documentation": ChatPromptTemplate.from_messages(
        [
            ("system", "Use the given context to answer the question. Context: {context}"),
            ("human", "{question}"),
        ]
    ),
    "documentation, blank line": ChatPromptTemplate.from_messages(
        [("system", "You answer questions. Keep the answer concise.\n\n{context}"), ("human", "{question}")]
    ),
}


@pytest.mark.parametrize("name", STOCK)
async def test_stock_prompts_over_stuffed_documents(name: str, documents: list[Document]) -> None:
    chain = create_stuff_documents_chain(ExtractiveChatModel(), STOCK[name])
    given = {"question": LOOKUP, "context": documents}
    answer = chain.invoke(given)
    assert answer == "The Eiffel Tower is 330 metres tall. [1]"
    assert await chain.ainvoke(given) == answer
    assert "".join(chain.stream(given)) == answer
    assert "".join([piece async for piece in chain.astream(given)]) == answer
    assert len(list(chain.stream(given))) > 1
    unknown = chain.invoke({"question": UNANSWERABLE, "context": documents[:1]})
    assert unknown == "The passages do not answer the question."


@pytest.mark.parametrize(
    "messages", ["Hello", [("system", "Be kind."), ("human", "Hello")], [AIMessage("Question: x\nAnswer:")]]
)
async def test_anything_else_is_refused(messages: Any) -> None:  # noqa: ANN401
    model = ExtractiveChatModel()
    with pytest.raises(InvalidArgument, match="it only answers questions over passages"):
        model.invoke(messages)
    with pytest.raises(InvalidArgument):
        await model.ainvoke(messages)
    with pytest.raises(InvalidArgument):
        list(model.stream(messages))


@pytest.mark.parametrize("scorer", ["", "onnx:", 3, None])
def test_a_scorer_that_is_none(scorer: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidArgument, match="scorer="):
        ExtractiveChatModel(scorer)


def test_a_scorer_without_a_name_works_and_is_not_saved() -> None:
    scorer = load_scorer("embedded")
    model = ExtractiveChatModel(CallableScorer(scorer.score, scorer.score_kind, scale_known=True))
    text = PROMPT.format(context="The Eiffel Tower is 330 metres tall.", question=LOOKUP)
    assert "330" in str(model.invoke([HumanMessage(text)]).text)
    assert dumpd(model)["type"] == "not_implemented"
    with pytest.raises(NotImplementedError, match="doesn't implement serialization"):
        load(dumpd(model), allowed_objects=[ExtractiveChatModel], valid_namespaces=["langchain_lara"])
