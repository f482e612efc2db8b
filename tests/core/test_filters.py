"""One meaning of a filter: ours is compared with what the Pinecone stand-in makes of it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pinecone_filters import passes

from lara_plugins import EmbeddedIndex, InvalidArgument, Passage
from lara_plugins.retrieval.filters import Filter, filterable, parse_filter

FIELDS = ["year", "lang", "draft", "tags"]
numbers = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.0, 2**53])
words = st.sampled_from(["", "a", "b", "1"])
values = numbers | words | st.booleans() | st.lists(words, max_size=3)
metadata = st.dictionaries(st.sampled_from(FIELDS), values)
operators = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne"]), numbers | words | st.booleans()),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), numbers),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(numbers | words, min_size=1, max_size=3)),
    st.tuples(st.just("$exists"), st.booleans()),
)
comparisons = st.dictionaries(
    st.sampled_from(FIELDS),
    numbers | words | st.booleans() | st.lists(operators, min_size=1, max_size=2).map(dict),
    min_size=1,
    max_size=2,
)
filters = st.recursive(
    comparisons,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from([{"$and": parts}, {"$or": parts}])
    ),
    max_leaves=6,
)


@given(filters, metadata)
def test_what_is_sent_to_pinecone_means_the_same(
    filter: Filter, metadata: dict[str, str | float | bool | list[str]]
) -> None:
    condition = parse_filter(filter)
    assert condition is not None
    kept = {key: float(value) if type(value) is int else value for key, value in metadata.items()}
    assert condition.passes(metadata) == passes(condition.spelled_out(), kept)


@given(metadata, st.sampled_from(FIELDS), numbers | words | st.booleans())
def test_ne_and_nin_deny_eq_and_in(
    metadata: dict[str, str | float | bool | list[str]], field: str, operand: str | float
) -> None:
    def passing(operator: str, operand: object) -> bool:
        condition = parse_filter({field: {operator: operand}})
        assert condition is not None
        return condition.passes(metadata)

    assert passing("$ne", operand) is not passing("$eq", operand)
    if not isinstance(operand, bool):
        assert passing("$nin", [operand]) is not passing("$in", [operand])


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"year": 2020}, "a"),
        ({"year": {"$gte": 2020, "$lt": 2022}}, "ab"),
        ({"lang": "en", "year": {"$gt": 2020}}, "b"),
        ({"tags": "x"}, "ac"),
        ({"tags": {"$nin": ["x"]}}, "bd"),
        ({"draft": True}, "c"),
        ({"draft": {"$ne": True}}, "abd"),
        ({"draft": {"$eq": 1}}, ""),
        ({"year": {"$exists": False}}, "d"),
        ({"$or": [{"year": 2020}, {"lang": "de"}]}, "acd"),
        ({"source": {"$in": ["one.md"]}}, "ab"),
        ({"$and": [{"source": {"$ne": "one.md"}}, {"year": {"$exists": True}}]}, "c"),
        ({}, "abcd"),
        (None, "abcd"),
    ],
)
def test_an_embedded_index_searches_what_passes(tmp_path: Path, filter: Filter, expected: str) -> None:
    pytest.importorskip("qdrant_edge", reason="needs lara-plugins[embedded]")
    pytest.importorskip("wordllama", reason="needs lara-plugins[embedded]")
    with EmbeddedIndex(tmp_path) as index:
        index.upsert(
            [
                Passage("a", "river", source="one.md", metadata={"year": 2020, "lang": "en", "tags": ["x"]}),
                Passage("b", "river", source="one.md", metadata={"year": 2021, "lang": "en"}),
                Passage(
                    "c", "moon", metadata={"year": 2023.5, "draft": True, "tags": ["x", "y"], "lang": "de"}
                ),
                Passage("d", "moon river", source="two.md", metadata={"lang": "de"}),
            ]
        )
        for alpha in (0, 0.5, 1):
            whole = [match.passage.id for match in index.search("river", limit=4, alpha=alpha)]
            found = [match.passage.id for match in index.search("river", limit=4, alpha=alpha, filter=filter)]
            assert found == [id_ for id_ in whole if id_ in expected]


def test_metadata_named_source_comes_before_the_passages_own() -> None:
    assert filterable(Passage("a", "text", source="file")) == {"source": "file"}
    assert filterable(Passage("a", "text", source="file", metadata={"source": "web"})) == {"source": "web"}
    assert filterable(Passage("a", "text")) == {}


class Half(float):
    """As NumPy's float64 is: a float by inheritance, which the SDK's JSON has no word for."""

    def __repr__(self) -> str:
        return f"Half({float(self)})"


@pytest.mark.parametrize(
    ("filter", "named"),
    [
        ({"year": {"$regex": "2"}}, "year"),
        ({"year": {"$gt": "2020"}}, "gt"),
        ({"year": {"$gt": True}}, "gt"),
        ({"year": {"$gt": math.nan}}, "gt"),
        ({"year": {"$eq": None}}, "eq"),
        ({"year": {"$eq": 2**53 + 1}}, "eq"),
        ({"year": ["a"]}, "eq"),
        ({"year": {"$in": []}}, "in"),
        ({"year": {"$in": "abc"}}, "in"),
        ({"year": {"$in": b"abc"}}, "in"),
        ({"lang": "\ud800"}, "eq"),
        ({"lang": {"$in": ["a", "\ud800"]}}, "in"),
        ({"\ud800": 1}, "surrogate"),
        ({"year": {"$nin": [True]}}, "nin"),
        ({"year": {"$exists": 1}}, "exists"),
        ({"year": {}}, "year"),
        ({"$and": []}, "and"),
        ({"$or": {"year": 1}}, "or"),
        ({"$or": [{}]}, "filter"),
        ({"$not": {"year": 1}}, "filter"),
        ({"lara_text": "x"}, "filter"),
        ({1: "x"}, "filter"),
        ("year", "filter"),
    ],
)
def test_what_is_no_filter_is_named(filter: Filter, named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        parse_filter(filter)


def test_a_filter_is_nested_so_deep_and_no_deeper() -> None:
    filter: Filter = {"year": 1}
    for _ in range(20):
        filter = {"$and": [filter]}
    assert parse_filter(filter) is not None
    for _ in range(5000):
        filter = {"$or": [filter]}
    with pytest.raises(InvalidArgument, match=r"nest .* at most 20 deep"):
        parse_filter(filter)


@pytest.mark.parametrize(
    "filter", [{"year": Half(2.5)}, {"year": {"$in": [Half(2.5)]}}, {"year": {"$lt": Half(2.5)}}]
)
def test_a_number_of_another_librarys_type_is_sent_as_a_plain_one(filter: Filter) -> None:
    condition = parse_filter(filter)
    assert condition is not None
    assert "Half" not in repr(condition.spelled_out())
