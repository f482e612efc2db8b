"""What was seen of one call to an LLM."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lara_plugins.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Observation:
    """One call to an LLM, measured.

    Args:
        input_tokens: tokens of the whole prompt.
        seconds: what the call took in all, or until it was cut.
        first_token: seconds until the first token came; None where the reply came whole.
        output_tokens: tokens that were written; None where that is not known.
        cut: True where the call was given up before its end, so that ``seconds`` is a lower bound.

    Raises:
        InvalidArgument: a count or a time is negative or not finite, or the first token came
            after the end.
    """

    input_tokens: int
    seconds: float
    first_token: float | None = None
    output_tokens: int | None = None
    cut: bool = False

    def __post_init__(self) -> None:
        for name in ("input_tokens", "seconds", "first_token", "output_tokens"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InvalidArgument(name, value, "give what was measured, 0 or more")
        if self.first_token is not None and self.first_token > self.seconds:
            raise InvalidArgument("first_token", self.first_token, "it comes before the end of the call")
