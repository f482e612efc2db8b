"""Reading the trace of a response."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE


def lara(response: RESPONSE_TYPE) -> dict[str, Any]:
    """What LARA wrote about a response."""
    assert response.metadata is not None
    trace: dict[str, Any] = response.metadata["lara"]
    return trace


def facts(response: RESPONSE_TYPE, phase: str) -> dict[str, Any]:
    """The facts of a phase's latest decision, without its duration."""
    latest = [entry for entry in lara(response)["phases"] if entry["phase"] == phase][-1]
    return {key: value for key, value in latest.items() if key != "seconds"}
