"""Spans of LlamaIndex's instrumentation, as they open and close."""

from __future__ import annotations

import inspect
from abc import abstractmethod

from llama_index.core.instrumentation.span import SimpleSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler


class SpanWatch(BaseSpanHandler[SimpleSpan]):
    """Is told of every span of the process; keeps none of them."""

    @abstractmethod
    def entered(self, span: str, parent: str | None, instance: object) -> None:
        """A span has opened: a method of ``instance`` runs."""

    @abstractmethod
    def left(self, span: str, failed: bool) -> None:
        """A span has ended, or was dropped after an error."""

    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        parent_span_id: str | None = None,
        tags: dict[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        self.entered(id_, parent_span_id, instance)

    def prepare_to_exit_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: object,
    ) -> None:
        self.left(id_, failed=False)

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        err: BaseException | None = None,
        **kwargs: object,
    ) -> None:
        self.left(id_, failed=True)
