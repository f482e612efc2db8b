"""The attempts at one request within a deadline: what each may take, and whether there is another."""

from __future__ import annotations

import email.utils
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from lara_plugins.answering.deadline import DeadlinePassed

_logger = logging.getLogger(__name__)

GRACE = 0.1
"""Seconds after the deadline at which the client stops to wait, so that its own error never comes before."""

LONGEST_RETRY_AFTER = 120.0
"""Seconds; a server that wants to be left alone for longer is not asked again."""

PASSING = {408, 409, 429}
"""Statuses beside 5xx that may not come again."""


@dataclass(frozen=True, slots=True)
class Came:
    """What an attempt brought.

    Args:
        what: its status, or the error's name, for the log.
        status: of the reply, 0 where none came.
        headers: of the reply, by their names in lower case.
    """

    what: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


class Attempts:
    """The attempts at one request.

    Args:
        own: the request's own timeouts, by HTTPX's names, in seconds.
        retries: attempts after the first.
        until: the deadline, on the monotonic clock.
    """

    def __init__(self, own: Mapping[str, float | None], retries: int, until: float) -> None:
        self._own, self._retries, self._until = own, retries, until
        self._made = 0

    def begin(self) -> dict[str, float]:
        """The timeouts of the next attempt.

        Raises:
            DeadlinePassed: it would begin after the deadline.
        """
        left = self._until - time.monotonic()
        if left <= 0.0:
            raise DeadlinePassed
        self._made += 1
        longest = left + GRACE
        return {name: longest if own is None else min(longest, own) for name, own in self._own.items()}

    def pause(self, came: Came) -> float | None:
        """Seconds until the next attempt; None where what came stands.

        What is tried again and when is the rule of OpenAI's client: a request that brought no reply,
        408, 409, 429 and 5xx, or what the server itself says; after ``Retry-After`` or else 0.5 s,
        doubled each time up to 8 s, less up to a quarter by chance.

        Raises:
            DeadlinePassed: the next attempt would begin after the deadline.
        """
        asked = _retry_after(came.headers)
        if self._made > self._retries or not _is_passing(came) or asked > LONGEST_RETRY_AFTER:
            return None
        backoff = min(0.5 * 2.0 ** (self._made - 1), 8.0) * (1.0 - 0.25 * random.random())  # noqa: S311
        pause = asked if asked > 0.0 else backoff
        left = self._until - time.monotonic()
        if pause >= left:
            if left > 0.0:
                _logger.warning(
                    "the LLM's server: %s; to ask again after %.1f s would be past the deadline",
                    came.what,
                    pause,
                )
            raise DeadlinePassed
        return pause


def _is_passing(came: Came) -> bool:
    """Whether another attempt may bring something else."""
    said = came.headers.get("x-should-retry")
    if said in {"true", "false"} and came.status >= 400:
        return said == "true"
    return came.status in {0, *PASSING} or came.status >= 500


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds after which the server wants to be asked again; 0.0 where it does not say."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers.get(name, "")) * unit
        except ValueError:
            continue
    date = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return 0.0 if date is None else email.utils.mktime_tz(date) - time.time()
