"""The checks that many arguments share; each raises one sentence with argument, value and remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lara_plugins.errors import InvalidArgument


def check_count(argument: str, value: object, remedy: str, *, least: int = 1) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgument(argument, value, remedy)


def check_share(argument: str, value: object, remedy: str) -> None:
    """Refuse what is not a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidArgument(argument, value, remedy)


def check_seconds(argument: str, value: object, remedy: str) -> None:
    """Refuse what is not a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidArgument(argument, value, remedy)


def check_choice(argument: str, value: object, choices: Sequence[str]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        raise InvalidArgument(argument, value, f"choose one of {', '.join(choices)}")
