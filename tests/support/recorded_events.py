"""What LlamaIndex's instrumentation announces while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from pydantic import PrivateAttr


class _Recorder(BaseEventHandler):
    _events: list[BaseEvent] = PrivateAttr(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: object) -> None:
        self._events.append(event)


@contextmanager
def recorded_events() -> Iterator[list[BaseEvent]]:
    """Every event of the process until the context is left."""
    root = get_dispatcher()
    recorder = _Recorder()
    root.add_event_handler(recorder)
    try:
        yield recorder._events
    finally:
        root.event_handlers.remove(recorder)
