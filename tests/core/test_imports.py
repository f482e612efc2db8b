"""What ``import lara_plugins`` loads, and what is said where an extra is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HEAVY = [
    *("langchain", "langchain_core", "llama_index", "numpy", "onnxruntime", "opentelemetry", "pinecone"),
    "pydantic",
    *("pypdf", "qdrant_edge", "rich", "sentence_transformers", "tokenizers", "torch", "transformers"),
    *("typer", "wordllama"),
]


def python(code: str) -> str:
    """What a fresh interpreter prints; it sees this repository and nothing of this process."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_importing_the_core_loads_nothing_heavy() -> None:
    loaded = python(
        "import json, sys, lara_plugins; "
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    assert set(json.loads(loaded)).isdisjoint(HEAVY)


def test_choosing_a_gate_and_a_scorer_loads_no_engine() -> None:
    loaded = python(
        "import json, sys\n"
        "from lara_plugins import LatencyGovernor, ThresholdGate, load_scorer, parse_question\n"
        "ThresholdGate(), LatencyGovernor(), load_scorer('embedded'), parse_question('How tall is it?')\n"
        "load_scorer('cross-encoder/ms-marco-MiniLM-L-6-v2')\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    assert set(json.loads(loaded)).isdisjoint(set(HEAVY) - {"pydantic"})


def test_every_public_name_is_there() -> None:
    printed = python(
        "import lara_plugins\n"
        "for name in lara_plugins.__all__:\n"
        "    getattr(lara_plugins, name)\n"
        "print(len(lara_plugins.__all__), set(lara_plugins.__all__) <= set(dir(lara_plugins)))"
    )
    count, listed = printed.split()
    assert int(count) > 50
    assert listed == "True"


def test_a_name_that_is_not_there() -> None:
    assert (
        python(
            "import lara_plugins\n"
            "try:\n"
            "    lara_plugins.TopK\n"
            "except AttributeError as error:\n"
            "    print(error)"
        )
        == "No lara_plugins attribute TopK"
    )


@pytest.mark.parametrize(
    ("missing", "use", "sentence"),
    [
        (
            "onnxruntime",
            "load_scorer('embedded').load()",
            "onnxruntime is not installed: pip install 'lara-plugins[embedded]'",
        ),
        (
            "tokenizers",
            "load_scorer('embedded').load()",
            "tokenizers is not installed: pip install 'lara-plugins[embedded]'",
        ),
        (
            "sentence_transformers",
            "load_scorer('cross-encoder/ms-marco-MiniLM-L-6-v2').load()",
            "sentence-transformers is not installed: pip install 'lara-plugins[cross-encoder]'",
        ),
        (
            "wordllama",
            "EmbeddedIndex(folder).upsert([Passage('a', 'A text.')])",
            "wordllama is not installed: pip install 'lara-plugins[embedded]'",
        ),
        (
            "opentelemetry",
            "from lara_plugins import export_metrics; export_metrics()",
            "opentelemetry-api is not installed: pip install 'lara-plugins[telemetry]'",
        ),
        (
            "qdrant_edge",
            "EmbeddedIndex(folder).upsert([Passage('a', 'A text.')])",
            "qdrant-edge-py is not installed: pip install 'lara-plugins[embedded]'",
        ),
    ],
)
def test_a_missing_extra_is_one_sentence(tmp_path: Path, missing: str, use: str, sentence: str) -> None:
    printed = python(
        "import sys\n"
        f"sys.modules['{missing}'] = None\n"
        "from lara_plugins import EmbeddedIndex, MissingExtra, Passage, load_scorer\n"
        f"folder = {str(tmp_path / 'index')!r}\n"
        "try:\n"
        f"    {use}\n"
        "except MissingExtra as error:\n"
        "    print(error)"
    )
    assert printed == sentence
