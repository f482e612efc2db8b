from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lara_plugins.errors import IndexUnreadable, InvalidArgument
from lara_plugins.retrieval import Bm25Encoder, SparseVector
from lara_plugins.retrieval.bm25 import term_index
from lara_plugins.retrieval.tokens import terms

words = st.lists(st.sampled_from(["ant", "bee", "cat", "dog", "elk", "fox", "gnu"]), max_size=30)
corpora = st.lists(words, min_size=1, max_size=8).filter(any)


def dot(left: SparseVector, right: SparseVector) -> float:
    other = dict(zip(right.indices, right.values, strict=True))
    return sum(value * other.get(index, 0.0) for index, value in zip(left.indices, left.values, strict=True))


@given(corpora, words, st.floats(0.1, 3), st.floats(0, 1))
def test_the_dot_product_is_the_published_score_over_the_sum_of_idf(
    corpus: list[list[str]], question: list[str], k1: float, b: float
) -> None:
    encoder = Bm25Encoder.fit((" ".join(document) for document in corpus), k1=k1, b=b)
    average = sum(map(len, corpus)) / len(corpus)

    def idf(word: str) -> float:
        holding = sum(word in document for document in corpus)
        return math.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))

    query = encoder.encode_query(" ".join(question))
    for document in corpus:
        tf = Counter(document)
        published = sum(
            idf(word) * tf[word] * (k1 + 1) / (tf[word] + k1 * (1 - b + b * len(document) / average))
            for word in question
            if word in tf
        )
        (vector,) = encoder.encode_documents([" ".join(document)])
        total = sum(map(idf, question)) or 1
        assert dot(query, vector) == pytest.approx(published / total)


@given(corpora, words.filter(bool))
def test_a_query_sums_to_one_and_a_document_stays_below_k1_plus_one(
    corpus: list[list[str]], question: list[str]
) -> None:
    encoder = Bm25Encoder.fit(" ".join(document) for document in corpus)
    assert sum(encoder.encode_query(" ".join(question) + " unheard").values) == pytest.approx(1)
    for vector in encoder.encode_documents([" ".join(document) for document in corpus]):
        assert all(0 < value < encoder.k1 + 1 for value in vector.values)


def test_documents_do_not_change_when_others_come() -> None:
    small, large = Bm25Encoder.fit(["ant bee"]), Bm25Encoder.fit(["ant bee", "ant elk"])
    assert small.encode_documents(["ant bee bee"]) == large.encode_documents(["ant bee bee"])


def test_a_text_without_terms_is_an_empty_vector() -> None:
    encoder = Bm25Encoder()
    assert encoder.encode_query("?!") == SparseVector()
    assert encoder.encode_documents(["", "--"]) == [SparseVector(), SparseVector()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("ﬁle max_length 4,096", ["file", "max", "length", "4", "096"]),
        ("l’été déjà", ["l", "été", "déjà"]),
        ("infor\u00admation", ["information"]),
        ("東京都は", ["東京", "京都", "都は"]),
        ("GPT用の東京", ["gpt", "用の", "の東", "東京"]),
        ("猫", ["猫"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("ｶﾀｶﾅ", ["カタ", "タカ", "カナ"]),
        ("e\u0301té", ["été"]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@given(st.text())
def test_any_text_has_terms_of_whole_characters(text: str) -> None:
    assert all(term and not term.isspace() for term in terms(text))


def test_term_indices_are_the_same_on_every_machine() -> None:
    assert term_index("retrieval") == 1544454503
    assert len({term_index(str(number)) for number in range(20_000)}) > 19_990


def test_drift_is_beyond_a_quarter() -> None:
    encoder = Bm25Encoder(average_length=100)
    assert not encoder.drifted(100)
    assert not encoder.drifted(125)
    assert not encoder.drifted(75)
    assert encoder.drifted(126)
    assert encoder.drifted(74)


def test_a_saved_encoder_comes_back(tmp_path: Path) -> None:
    encoder = Bm25Encoder.fit(["ant bee", "bee cat cat"], k1=1.2, b=0.75)
    encoder.save(tmp_path / "bm25.json")
    loaded = Bm25Encoder.load(tmp_path / "bm25.json")
    assert loaded == encoder
    assert loaded.encode_query("bee cat dog") == encoder.encode_query("bee cat dog")


def test_a_file_that_many_save_at_once_is_one_of_theirs(tmp_path: Path) -> None:
    saved = [Bm25Encoder(float(average)) for average in range(1, 201)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda encoder: encoder.save(tmp_path / "bm25.json"), saved))
    assert Bm25Encoder.load(tmp_path / "bm25.json") in saved
    assert [file.name for file in tmp_path.iterdir()] == ["bm25.json"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}'])
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "bm25.json").write_text(content)
    with pytest.raises(IndexUnreadable, match=r"bm25\.json"):
        Bm25Encoder.load(tmp_path / "bm25.json")


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bm25.json"
    Bm25Encoder.fit(["ant"]).save(file)
    file.write_text(file.read_text().replace("unicode-words-1", "unicode-words-0"))
    with pytest.raises(IndexUnreadable, match="another version"):
        Bm25Encoder.load(file)


def test_the_fingerprint_tells_formulas_apart() -> None:
    assert Bm25Encoder(50).formula == Bm25Encoder(100).formula
    assert Bm25Encoder(50).fingerprint != Bm25Encoder(100).fingerprint
    assert (
        len({Bm25Encoder().fingerprint, Bm25Encoder(k1=1.2).fingerprint, Bm25Encoder(b=0.75).fingerprint})
        == 3
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"average_length": 0}, "average_length"),
        ({"average_length": math.nan}, "average_length"),
        ({"k1": 0}, "k1"),
        ({"k1": math.inf}, "k1"),
        ({"b": 1.5}, "b"),
    ],
)
def test_bad_parameters_are_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Bm25Encoder(**arguments)
    assert caught.value.argument == named


def test_an_encoder_cannot_be_fitted_to_nothing() -> None:
    with pytest.raises(InvalidArgument):
        Bm25Encoder.fit(["", "?"])


@pytest.mark.parametrize(
    ("indices", "values"),
    [
        ((1, 1), (0.5, 0.5)),
        ((1,), (0.5, 0.5)),
        ((-1,), (0.5,)),
        ((2**32,), (0.5,)),
        ((1,), (math.nan,)),
        ((1,), (math.inf,)),
        ((1,), (0.0,)),
    ],
)
def test_a_sparse_vector_that_engines_take_in_silence_is_refused(
    indices: tuple[int, ...], values: tuple[float, ...]
) -> None:
    with pytest.raises(InvalidArgument):
        SparseVector(indices, values)
