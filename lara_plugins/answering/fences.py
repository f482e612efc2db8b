"""Fences around untrusted text, and what keeps that text inside them.

Passages, the question and the answer so far enter a prompt between tags, whatever template a
user writes; text that would close or open a fence is defused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from lara_plugins.answering.contract import AnswerWithEvidence
from lara_plugins.answering.loop import Numbered

_TAG = re.compile(r"<(?=\s*/?\s*(?:passage|question|answer_so_far|reply_contract)\b)", re.IGNORECASE)
_ECHO = re.compile(r'<passage number="\d+"|<reply_contract name="')
# A look-alike that no prompt reader takes for a tag; a quote that holds it is restored.
_DEFUSED = "\u2039"
_DEFUSED_TAG = re.compile(_TAG.pattern.replace("<", _DEFUSED, 1), re.IGNORECASE)


def fence_passages(passages: Iterable[Numbered]) -> str:
    """The passages, each between its own tags, with number, source and heading."""
    return "\n".join(_fenced_passage(item) for item in passages)


def _fenced_passage(item: Numbered) -> str:
    attributes = f'number="{item.number}"'
    for name, value in (("source", item.passage.source), ("heading", item.passage.heading)):
        if value:
            attributes += f' {name}="{_attribute(value)}"'
    return f"<passage {attributes}>\n{defuse(item.passage.text)}\n</passage>"


def _attribute(value: str) -> str:
    return escape(" ".join(value.split()), quote=False).replace('"', "&quot;")


def fence_answer(answer: AnswerWithEvidence) -> str:
    """The answer so far, between tags: it was made from untrusted text."""
    return f"<answer_so_far>\n{defuse(answer.value)}\n</answer_so_far>"


def fence_question(question: str) -> str:
    """The question, between tags."""
    return f"<question>\n{defuse(question)}\n</question>"


def is_echo(text: str) -> bool:
    """Whether an LLM's reply repeats its prompt; what stands in the passages is no reply."""
    return _ECHO.search(text) is not None


def defuse(text: str) -> str:
    """The text with every tag of a fence made harmless."""
    return _TAG.sub(_DEFUSED, text)


def restore(text: str) -> str:
    """Undo ``defuse``, so that a quote is verbatim again."""
    return _DEFUSED_TAG.sub("<", text)
