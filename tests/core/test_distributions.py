"""The three distributions: one version, one licence, and everything that the code reads at run time."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from lara_plugins import __version__

ROOT = Path(__file__).parents[2]
INTEGRATIONS = ["integrations/llama-index", "integrations/langchain"]


def project(folder: str) -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
    return content["project"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("folder", INTEGRATIONS)
def test_an_integration_has_the_cores_version_and_pins_it(folder: str) -> None:
    integration = project(folder)
    assert integration["version"] == __version__
    assert f"lara-plugins=={__version__}" in integration["dependencies"]
    for name, requirements in integration["optional-dependencies"].items():
        assert requirements == [f"lara-plugins[{name}]=={__version__}"]


@pytest.mark.parametrize("folder", INTEGRATIONS)
def test_licence_and_pythons_are_the_cores(folder: str) -> None:
    core, integration = project("."), project(folder)
    assert (ROOT / folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert integration["license"] == core["license"]
    assert integration["requires-python"] == core["requires-python"]


def test_what_the_code_reads_lies_inside_the_package() -> None:
    package = files("lara_plugins")
    for path in (
        "py.typed",
        "__init__.pyi",
        "gate/embedded_model/model.onnx",
        "gate/embedded_model/tokenizer.json",
        "gate/embedded_model/MODEL_CARD.md",
        "question/lexicons/en.toml",
        "cli/demo_corpus/LICENSE",
        "cli/demo_corpus/pages/faq.md",
    ):
        assert package.joinpath(path).is_file(), path
