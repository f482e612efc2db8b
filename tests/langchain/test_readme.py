"""The Python examples in the distribution's README, executed as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_lara import ExtractiveChatModel

from lara_plugins import EmbeddedIndex

README = Path(__file__).parents[2] / "integrations/langchain/README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example(
    example: str, retriever: BaseRetriever, hybrid: EmbeddedIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    application = {"retriever": retriever, "llm": ExtractiveChatModel(), "index": hybrid}
    exec(compile(example, "README.md", "exec"), application)  # noqa: S102
    assert "330 metres" in capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3
