"""What a run of the ``lara`` command came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    """Its exit status, and what it wrote to stdout and stderr."""

    code: int
    out: str
    err: str


Lara = Callable[..., Ran]
"""Runs the command with some arguments."""
