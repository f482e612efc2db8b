"""How many records a namespace holds, asked for now and then and not at every query."""

from __future__ import annotations

import threading
import time

from lara_plugins.retrieval.pinecone.calls import Call, Steps, ask

DEFAULT_NAMES = ("", "__default__")
"""What the default namespace is called."""


class Count:
    """The number of a namespace's records, as of not long ago.

    Args:
        namespace: which.
        good_for: seconds until it is asked for again.
    """

    def __init__(self, namespace: str, good_for: float) -> None:
        self._names = DEFAULT_NAMES if namespace in DEFAULT_NAMES else (namespace,)
        self._good_for = good_for
        self._lock = threading.Lock()
        self._known: tuple[int, float] | None = None
        self._changes = 0

    def forget(self) -> None:
        """Ask anew next time, since records were written or deleted."""
        with self._lock:
            self._known = None
            self._changes += 1

    def steps(self) -> Steps[int]:
        """The number, asked for where it is not known."""
        with self._lock:
            known, changes = self._known, self._changes
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        (stats,) = yield from ask(Call("dense", "describe_index_stats", {}))
        summaries = [stats.namespaces[name] for name in self._names if name in stats.namespaces]
        number = sum(int(summary.vector_count) for summary in summaries)
        with self._lock:
            # After a write the number may be from before it; an empty namespace is about to be filled.
            if number and changes == self._changes:
                self._known = (number, time.monotonic() + self._good_for)
        return number
