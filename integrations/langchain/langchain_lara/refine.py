"""Refine in threes as the step of a chain that combines documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.prompts import BasePromptTemplate

from langchain_lara.answerer import TypedAnswerer
from langchain_lara.limits import Model
from langchain_lara.prompts import PROMPT, REFINE_PROMPT
from lara_plugins import LatencyModel, Passage, QueryState
from lara_plugins.answering import Fits, Loop
from lara_plugins.arguments import check_count
from lara_plugins.phases import refine_loop


class RefineInThrees(TypedAnswerer):
    """The answer over windows of three documents: ceil(n / 3) calls, fewer when the time ends.

    It takes ``{input, context}`` and gives the answer's text, so that it is the combine step of
    ``create_retrieval_chain(retriever, RefineInThrees(llm))``. The last window's answer is
    streamed; the drafts before it are ``lara_draft`` events.

    Args:
        llm: a chat model, a text model, or either under ``bind``, ``with_config`` or ``with_retry``.
        window: documents in a window.
        stop_when_complete: end at the first answer that the model calls complete; sensible for a
            question that one value answers.
        latency: a latency model, the seconds of one passage, or None for that of the query's
            ``LatencyBudget``, or 0.1 s a passage where it has none.
        at_once: calls that the model takes at once. Above 1, windows that do not fit the time left
            one after the other are read at once and their answers merged; 1 never does that.
        prompt: variables ``context`` and ``input``; others are taken from the chain's input.
        refine_prompt: variables ``existing_answer``, ``context`` and ``input``, and others as above.
        context_window: the model's tokens, prompt and reply together; None takes the model's own
            profile, and where it has none every prompt is taken to fit.
        name: its name in traces.

    Raises:
        InvalidArgument: an argument is out of its range, or a prompt leaves a variable out.
    """

    window: int = 3
    stop_when_complete: bool = False

    def __init__(
        self,
        llm: Model,
        window: int = 3,
        stop_when_complete: bool = False,
        *,
        latency: float | LatencyModel | None = None,
        at_once: int = 1,
        prompt: BasePromptTemplate[Any] = PROMPT,
        refine_prompt: BasePromptTemplate[Any] = REFINE_PROMPT,
        context_window: int | None = None,
        name: str | None = None,
    ) -> None:
        check_count("window", window, "give the documents of one window, 1 or more")
        super().__init__(
            llm,
            latency=latency,
            at_once=at_once,
            prompt=prompt,
            refine_prompt=refine_prompt,
            context_window=context_window,
            window=window,
            stop_when_complete=stop_when_complete,
            name=name,
        )

    def _loop(self, state: QueryState, question: str, passages: Sequence[Passage], fits: Fits) -> Loop:
        return refine_loop(
            state,
            question,
            passages,
            self._latency_model(),
            fits=fits,
            window=self.window,
            stop_when_complete=self.stop_when_complete,
            at_once=self.at_once,
        )
