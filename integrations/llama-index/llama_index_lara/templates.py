"""The default prompt templates, and what a user's own must hold."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.prompts.prompt_type import PromptType

from lara_plugins import InvalidArgument
from lara_plugins.answering import ANSWER_TEMPLATE, REFINE_TEMPLATE
from lara_plugins.retrieval import HYDE_TEMPLATE

TEXT_QA_VARIABLES = ("context_str", "query_str")
REFINE_VARIABLES = ("existing_answer", "context_msg", "query_str")
HYDE_VARIABLES = ("query_str",)

TEXT_QA_TEMPLATE = PromptTemplate(
    ANSWER_TEMPLATE.format(context="{context_str}", question="{query_str}"),
    prompt_type=PromptType.QUESTION_ANSWER,
)
REFINE_QA_TEMPLATE = PromptTemplate(
    REFINE_TEMPLATE.format(
        existing_answer="{existing_answer}", context="{context_msg}", question="{query_str}"
    ),
    prompt_type=PromptType.REFINE,
)
HYDE_QA_TEMPLATE = PromptTemplate(HYDE_TEMPLATE.format(question="{query_str}"))


def check_template(argument: str, template: BasePromptTemplate, variables: Sequence[str]) -> None:
    """Refuse a template that would leave out what an ask must show.

    Raises:
        InvalidArgument: a variable is missing, under its own name and under the template's.
    """
    names = template.template_var_mappings or {}
    computed = template.function_mappings or {}
    for variable in variables:
        if variable not in computed and names.get(variable, variable) not in template.template_vars:
            raise InvalidArgument(argument, template.template_vars, f"the template needs {{{variable}}}")
