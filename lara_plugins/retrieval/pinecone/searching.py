"""Searching Pinecone: the weighted query, and the order of what two indexes find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lara_plugins.errors import InvalidArgument
from lara_plugins.retrieval.encoders import SparseVector
from lara_plugins.retrieval.filters import Condition
from lara_plugins.retrieval.pinecone.calls import Call, Reply, Steps, ask, failures, status_of
from lara_plugins.retrieval.pinecone.layouts import ID
from lara_plugins.retrieval.pinecone.records import NEARLY_NOTHING, dense_values, sparse_values

MOST_RESULTS = 10_000
"""Matches of one query."""

REFUSED = 400
"""The status, among others, of a query whose answer would be larger than Pinecone's limit of 4 MB."""

FETCHED = 50
"""Records fetched at once: with vectors of some thousand dimensions they stay within that limit."""

LONGEST_IDS = 4000
"""Characters of the ids of one fetch, which stand in its URL."""

AT_ONCE = 8
"""Fetches at the same time."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for.

    Attributes:
        dense: the question's dense vector.
        sparse: its sparse vector; empty where it has no terms or the index no sparse half.
        alpha: weight of the dense half, 0..1.
        limit: at most so many matches.
        condition: the filter, None for none.
        namespace: where.
    """

    dense: Sequence[float]
    sparse: SparseVector
    alpha: float
    limit: int
    condition: Condition | None
    namespace: str

    @property
    def lexical(self) -> bool:
        """Whether the sparse half counts."""
        return self.alpha < 1 and bool(self.sparse.indices)

    @property
    def unasked(self) -> float | None:
        """The sparse half where it does not count: 0 without terms, else not known."""
        return None if self.sparse.indices else 0.0

    def arguments(self, limit: int, *, metadata: bool, ids: Sequence[str] = ()) -> dict[str, object]:
        """The arguments of a query but for its vectors; ``ids`` restricts it to these records."""
        arguments: dict[str, object] = {
            "top_k": limit,
            "namespace": self.namespace,
            "include_metadata": metadata,
        }
        if ids:
            arguments["filter"] = {ID: {"$in": list(ids)}}
        elif self.condition is not None:
            arguments["filter"] = self.condition.spelled_out()
        return arguments


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found: its scores, a half of which is None where it is not told."""

    id: str
    score: float
    dense: float | None
    sparse: float | None
    metadata: Mapping[str, Any]


def check(index: str, *, limit: int, alpha: float, floor: float) -> None:
    """Refuse what Pinecone, or an index without a sparse half, cannot search for.

    Raises:
        InvalidArgument: ``limit`` is too high, or ``alpha`` below ``floor``.
    """
    if limit > MOST_RESULTS:
        raise InvalidArgument("limit", limit, f"Pinecone finds at most {MOST_RESULTS} at once")
    if alpha < floor:
        raise InvalidArgument("alpha", alpha, f"the index {index} is opened without sparse: give 1")


def search_one(question: Question) -> Steps[list[Hit]]:
    """Search an index that holds both kinds of vectors: the query carries the weights.

    At alpha 0 the dense vector stays in the query, shrunk to next to nothing: Pinecone refuses
    one that is all zero.
    """
    return (yield from _within_the_limit(question, _search_one))


def _search_one(question: Question, metadata: bool) -> Steps[list[Hit]]:
    alpha = question.alpha
    arguments = question.arguments(question.limit, metadata=metadata)
    weight = max(alpha, NEARLY_NOTHING)
    arguments["vector"] = dense_values([weight * value for value in question.dense])
    if question.lexical:
        arguments["sparse_vector"] = sparse_values(question.sparse, 1 - alpha)
    (reply,) = yield from ask(Call("dense", "query", arguments))
    return _ordered([_weighed(match, question) for match in reply.matches])


def search_two(question: Question) -> Steps[list[Hit]]:
    """Search a dense and a sparse index at the same time and join what they find.

    Two lists of ``limit`` records are fetched, and of those that are in one of them only, the
    other half is asked for in a second round, so that every score is the exact sum. A record that
    is in neither list may still belong among the best; deepening the lists until none can would
    cost many rounds over a network, and the order is the reranker's to decide.
    """
    return (yield from _within_the_limit(question, _search_two))


def _search_two(question: Question, metadata: bool) -> Steps[list[Hit]]:
    dense = question.arguments(question.limit, metadata=metadata)
    dense["vector"] = dense_values(question.dense)
    if not question.lexical:
        (reply,) = yield from ask(Call("dense", "query", dense))
        return _ordered([_dense_only(match, match.score, question) for match in reply.matches])
    sparse = question.arguments(question.limit, metadata=False)
    sparse["sparse_vector"] = sparse_values(question.sparse)
    similar, lexical = yield from ask(Call("dense", "query", dense), Call("sparse", "query", sparse))
    by_words = {match.id: match.score for match in lexical.matches}
    matches = {match.id: match for match in similar.matches}
    calls = []
    if only_words := [id_ for id_ in by_words if id_ not in matches]:
        rest = question.arguments(len(only_words), metadata=metadata, ids=only_words)
        calls.append(Call("dense", "query", {**rest, "vector": dense["vector"]}))
    if only_dense := [id_ for id_ in matches if id_ not in by_words]:
        rest = question.arguments(len(only_dense), metadata=False, ids=only_dense)
        calls.append(Call("sparse", "query", {**rest, "sparse_vector": sparse["sparse_vector"]}))
    for call, reply in zip(calls, (yield from ask(*calls)) if calls else [], strict=True):
        if call.plane == "dense":
            matches.update({match.id: match for match in reply.matches})
        else:
            by_words.update({match.id: match.score for match in reply.matches})
    # A record that the sparse index alone has is being written or deleted: it has no text yet.
    hits = [_joined(match, match.score, by_words.get(match.id, 0.0), question) for match in matches.values()]
    return _ordered(hits)[: question.limit]


def _within_the_limit(
    question: Question, search: Callable[[Question, bool], Steps[list[Hit]]]
) -> Steps[list[Hit]]:
    """What is found, with its metadata, even where that is more than one answer may hold.

    Many long passages are. Then the ids and scores are asked for alone and the metadata after them.
    """
    try:
        return (yield from search(question, True))
    except failures() as error:
        if status_of(error) != REFUSED:
            raise
    hits = yield from search(question, False)  # where this is refused, too, it was another fault
    fetches = [
        Call("dense", "fetch", {"ids": ids, "namespace": question.namespace})
        for ids in _groups([hit.id for hit in hits])
    ]
    records: dict[str, Reply] = {}
    for start in range(0, len(fetches), AT_ONCE):
        for reply in (yield from ask(*fetches[start : start + AT_ONCE])):
            records.update(reply.vectors)
    return [replace(hit, metadata=records[hit.id].metadata or {}) for hit in hits if hit.id in records]


def _groups(ids: Sequence[str]) -> Iterator[list[str]]:
    """The ids, as many at once as one fetch takes."""
    group: list[str] = []
    for id_ in ids:
        if group and (len(group) == FETCHED or sum(map(len, group)) + len(id_) > LONGEST_IDS):
            yield group
            group = []
        group.append(id_)
    if group:
        yield group


def _weighed(match: Reply, question: Question) -> Hit:
    """A match of the weighted query; its halves as far as they follow from the sum."""
    score, alpha = float(match.score), question.alpha
    if not question.lexical:
        return _dense_only(match, score / max(alpha, NEARLY_NOTHING), question)
    return Hit(match.id, score, None, score if alpha == 0 else None, match.metadata or {})


def _dense_only(match: Reply, dense: float, question: Question) -> Hit:
    """A match of a search in which the sparse half does not count."""
    return Hit(match.id, question.alpha * dense, float(dense), question.unasked, match.metadata or {})


def _joined(match: Reply, dense: float, sparse: float, question: Question) -> Hit:
    score = question.alpha * dense + (1 - question.alpha) * sparse
    return Hit(match.id, score, float(dense), float(sparse), match.metadata or {})


def _ordered(hits: list[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))
