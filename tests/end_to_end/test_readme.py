"""The README's Python examples, executed as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index_lara import ExtractiveLLM
from towers import PASSAGES
from word_embedding import WordEmbedding

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [TextNode(id_=passage.id, text=passage.text) for passage in PASSAGES]
    application = {
        "index": VectorStoreIndex(nodes, embed_model=WordEmbedding()),
        "llm": ExtractiveLLM(),
    }
    # An example may use what an earlier one has imported.
    exec("from llama_index_lara import *", application)  # noqa: S102
    exec(compile(example, "README.md", "exec"), application)  # noqa: S102
    assert "330 metres" in capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
