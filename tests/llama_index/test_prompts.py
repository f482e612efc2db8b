"""Prompts belong to the user; the reply contract stands beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMCompletionStartEvent
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_lara import RefineInThrees
from recorded_events import recorded_events
from towers import LOOKUP

from lara_plugins import InvalidArgument

REFINE: Any = RefineInThrees


def given(nodes: Sequence[TextNode]) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=0.5) for node in nodes]


def prompts(events: Sequence[BaseEvent]) -> list[str]:
    return [event.prompt for event in events if isinstance(event, LLMCompletionStartEvent)]


def test_prompts_are_shown_and_replaced_through_the_engine(index: VectorStoreIndex, llm: LLM) -> None:
    engine = index.as_query_engine(llm=llm, similarity_top_k=6, response_synthesizer=RefineInThrees(llm))
    assert set(engine.get_prompts()) == {
        "response_synthesizer:text_qa_template",
        "response_synthesizer:refine_template",
    }
    shown = engine.get_prompts()["response_synthesizer:text_qa_template"]
    assert set(shown.template_vars) == {"context_str", "query_str"}
    engine.update_prompts(
        {
            "response_synthesizer:text_qa_template": PromptTemplate("FIRST {query_str}\n{context_str}"),
            "response_synthesizer:refine_template": PromptTemplate(
                "THEN {query_str}\n{existing_answer}\n{context_msg}"
            ),
        }
    )
    with recorded_events() as events:
        response = engine.query(LOOKUP)
    first, then = prompts(events)
    assert first.startswith(f'FIRST {LOOKUP}\n<passage number="1"')
    assert then.startswith(f"THEN {LOOKUP}\n<answer_so_far>\n")
    assert "Answer the question from the numbered passages" not in first + then
    assert "330" in str(response), "the reply contract stands beside the template, not in it"


def test_prompts_given_at_construction(nodes: list[TextNode], llm: LLM) -> None:
    template = PromptTemplate("MINE {query_str}\n{context_str}")
    with recorded_events() as events:
        RefineInThrees(llm, text_qa_template=template).synthesize(LOOKUP, given(nodes[:1]))
    [prompt] = prompts(events)
    assert prompt.startswith(f"MINE {LOOKUP}\n")


def test_a_template_with_a_variable_of_its_own(nodes: list[TextNode], llm: LLM) -> None:
    template = PromptTemplate("{tone}: {query_str}\n{context_str}").partial_format(tone="Politely")
    with recorded_events() as events:
        RefineInThrees(llm, text_qa_template=template).synthesize(LOOKUP, given(nodes[:1]))
    [prompt] = prompts(events)
    assert prompt.startswith("Politely: How tall")


def test_braces_in_passages_and_questions_stay(llm: LLM) -> None:
    text = 'The tower is 330 metres tall: {"height": {query_str}} {context_str} {0} {{x}}'
    question = "How tall is {context_str}, the tower?"
    with recorded_events() as events:
        response = RefineInThrees(llm).synthesize(question, given([TextNode(text=text)]))
    [prompt] = prompts(events)
    assert text in prompt
    assert question in prompt
    assert "330" in str(response)


def test_llms_see_the_metadata_that_is_meant_for_them(llm: LLM) -> None:
    node = TextNode(
        text="It is 330 metres tall.",
        metadata={"title": "Eiffel Tower", "secret": "hidden", "file_path": "eiffel.md"},
        excluded_llm_metadata_keys=["secret", "file_path"],
    )
    with recorded_events() as events:
        RefineInThrees(llm).synthesize(LOOKUP, given([node]))
    [prompt] = prompts(events)
    assert '<passage number="1" source="eiffel.md" heading="title: Eiffel Tower">' in prompt
    assert "hidden" not in prompt


@pytest.mark.parametrize(
    ("argument", "template", "missing"),
    [
        ("text_qa_template", "Just answer {query_str}", "context_str"),
        ("text_qa_template", "Read {context_str}", "query_str"),
        ("refine_template", "{query_str} {context_msg}", "existing_answer"),
    ],
)
def test_a_template_that_leaves_something_out_is_refused(
    llm: LLM, argument: str, template: str, missing: str
) -> None:
    with pytest.raises(InvalidArgument, match=missing):
        REFINE(llm, **{argument: PromptTemplate(template)})
    synthesizer = RefineInThrees(llm)
    with pytest.raises(InvalidArgument, match=missing):
        synthesizer.update_prompts({argument: PromptTemplate(template)})


def test_a_template_may_rename_or_compute_its_variables(llm: LLM) -> None:
    renamed = PromptTemplate(
        "{passages} {q}", template_var_mappings={"context_str": "passages", "query_str": "q"}
    )
    computed = PromptTemplate(
        "{query_str} {context_str}", function_mappings={"context_str": lambda **_: "none"}
    )
    for template in (renamed, computed):
        assert RefineInThrees(llm, text_qa_template=template).get_prompts()
