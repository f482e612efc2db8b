"""The cookbook's notebooks: executed from top to bottom, and kept without outputs."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "cookbook").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel is a process of its own; it finds the packages as this one does.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "integrations" / "llama-index")]))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)  # offline, whatever the machine has
    content = nbformat.read(notebook, as_version=4)
    NotebookClient(content, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in content.cells)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS
