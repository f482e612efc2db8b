"""The checks that many arguments share; each raises one sentence with argument, value and remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lara_plugins.errors import InvalidArgument


def check_count(argument: str, value: object, remedy: str, *, least: int = 1, most: float = math.inf) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidArgument(argument, value, remedy)


def check_text(argument: str, value: object, remedy: str) -> None:
    """Refuse what is no text, or blank."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument, value, remedy)


def check_share(argument: str, value: object, remedy: str) -> None:
    """Refuse what is not a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidArgument(argument, value, remedy)


def check_seconds(argument: str, value: object, remedy: str) -> None:
    """Refuse what is not a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidArgument(argument, value, remedy)


def is_utf8(text: str) -> bool:
    """Whether it can be written as UTF-8: it holds no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_choice(argument: str, value: object, choices: Sequence[str]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        raise InvalidArgument(argument, value, f"choose one of {', '.join(choices)}")
