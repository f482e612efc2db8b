from __future__ import annotations

from pathlib import Path

import pytest

import lara_plugins.gate
from lara_plugins.errors import InvalidArgument
from lara_plugins.gate import load_scorer

EMBEDDED_FOLDER = Path(lara_plugins.gate.__file__).parent / "embedded_model"


@pytest.mark.parametrize(
    "name",
    [
        "embedded",
        f"onnx:{EMBEDDED_FOLDER}",
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "BAAI/bge-reranker-v2-m3",
        str(EMBEDDED_FOLDER),
        "pinecone:bge-reranker-v2-m3",
    ],
)
def test_a_scorer_carries_the_name_that_makes_it_again(name: str) -> None:
    assert load_scorer(name).name == name


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("embedded", True),
        (f"onnx:{EMBEDDED_FOLDER}", False),
        ("cross-encoder/ms-marco-MiniLM-L-12-v2", True),
        ("onnx:cross-encoder/ms-marco-MiniLM-L-6-v2", True),
        ("onnx:cross-encoder/ms-marco-MiniLM-L-6-v2/onnx/model_O4.onnx", True),
        ("onnx:BAAI/bge-reranker-v2-m3", False),
        ("BAAI/bge-reranker-v2-m3", False),
        ("pinecone:bge-reranker-v2-m3", False),
    ],
)
def test_the_threshold_means_something_on_known_scales_only(name: str, known: bool) -> None:
    assert load_scorer(name).scale_known is known


@pytest.mark.parametrize("name", ["", "  ", None, 3, ["embedded"]])
def test_refuses_what_is_no_name(name: object) -> None:
    with pytest.raises(InvalidArgument, match="scorer="):
        load_scorer(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["onnx:no/such/folder", "onnx:./folder", "onnx:folder/model.onnx"])
def test_refuses_an_onnx_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(InvalidArgument, match="no such folder"):
        load_scorer(name)


@pytest.mark.parametrize("name", ["pinecone:", "onnx:"])
def test_asks_for_the_model_after_the_colon(name: str) -> None:
    with pytest.raises(InvalidArgument, match="after the colon"):
        load_scorer(name)


@pytest.mark.parametrize(
    "name", ["embeded", "Embedded", "./my/folder", "/no/such", "openai:reranker", "owner/"]
)
def test_refuses_what_is_neither_a_folder_nor_on_a_hub(name: str) -> None:
    with pytest.raises(InvalidArgument, match="neither a folder here nor a hub's owner/name"):
        load_scorer(name)
