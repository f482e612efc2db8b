"""The default prompts, and what a user's own must hold."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate

from lara_plugins import InvalidArgument
from lara_plugins.answering import ANSWER_TEMPLATE, REFINE_TEMPLATE
from lara_plugins.retrieval import HYDE_TEMPLATE

PROMPT_VARIABLES = ("context", "input")
REFINE_VARIABLES = ("existing_answer", "context", "input")
HYDE_VARIABLES = ("input",)

PROMPT = ChatPromptTemplate.from_messages(
    [("human", ANSWER_TEMPLATE.format(context="{context}", question="{input}"))]
)
REFINE_PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "human",
            REFINE_TEMPLATE.format(
                existing_answer="{existing_answer}", context="{context}", question="{input}"
            ),
        )
    ]
)
HYDE_PROMPT = ChatPromptTemplate.from_messages([("human", HYDE_TEMPLATE.format(question="{input}"))])


def check_prompt(argument: str, prompt: object, variables: Sequence[str]) -> None:
    """Refuse a prompt that would leave out what an ask must show.

    Raises:
        InvalidArgument: it is no prompt template, or a variable is missing.
    """
    if not isinstance(prompt, BasePromptTemplate):
        raise InvalidArgument(argument, prompt, "give a prompt template, such as ChatPromptTemplate")
    names = [*prompt.input_variables, *prompt.optional_variables]
    for variable in variables:
        if variable not in names:
            raise InvalidArgument(argument, names, f"the prompt needs {{{variable}}}")
