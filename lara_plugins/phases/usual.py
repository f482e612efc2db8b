"""What a phase usually takes, as the process has seen it: the prediction that its trace is read against."""

from __future__ import annotations

import math
import threading
from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Hashable

from lara_plugins.budget.learned import RISK

WINDOW = 100
MOST_KINDS = 256


class UsualSeconds:
    """The upper quantile of the seconds that the latest runs of each kind took.

    Nothing is planned with it: retrieval comes before the budget is known, and scoring is stopped
    by its share. Until 19 runs were seen it is the longest of them.

    Args:
        window: runs of a kind that are remembered.
        most: kinds that are remembered; the one that was seen longest ago is forgotten for one more.
    """

    def __init__(self, window: int = WINDOW, most: int = MOST_KINDS) -> None:
        self._window, self._most = window, most
        self._seen: OrderedDict[Hashable, tuple[deque[float], list[float]]] = OrderedDict()
        self._lock = threading.Lock()

    def at_most(self, kind: Hashable) -> float | None:
        """The seconds that 95 of 100 runs of a kind take at most; None where none was seen."""
        with self._lock:
            if kind not in self._seen:
                return None
            _, ordered = self._seen[kind]
            return ordered[min(len(ordered), math.ceil((1 - RISK) * (len(ordered) + 1))) - 1]

    def took(self, kind: Hashable, seconds: float) -> None:
        """A run of a kind took so many seconds."""
        with self._lock:
            latest, ordered = self._seen.setdefault(kind, (deque(), []))
            self._seen.move_to_end(kind)
            latest.append(seconds)
            insort(ordered, seconds)
            if len(latest) > self._window:
                ordered.remove(latest.popleft())
            if len(self._seen) > self._most:
                self._seen.popitem(last=False)


usual_seconds = UsualSeconds()
"""What the phases of this process share."""
