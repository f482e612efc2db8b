from __future__ import annotations

from collections.abc import Iterator

import pytest
from applications import Framework
from both_frameworks import FRAMEWORKS
from langchain_lara.state import open_runs


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    """Each of the two, so that a test holds for both."""
    return FRAMEWORKS[request.param]


@pytest.fixture(autouse=True)
def _no_run_is_left_open() -> Iterator[None]:
    yield
    assert open_runs() == 0, "what has ended, failed or was cancelled is forgotten"
