"""The data plane of the Pinecone stand-in: one index on a host of its own.

It answers as the published specifications of the data plane say, 2025-04 to 2026-04; 2026-07,
which SDK 10 speaks and which is not published, is taken to be as 2026-04. What the specifications
leave open is decided for the stricter: an id twice in a request is refused, and so is a delete in
a namespace that does not exist (404). The headers ``x-pinecone-lsn-committed`` of a write and
``x-pinecone-max-indexed-lsn`` of a read follow Pinecone's page on data freshness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pinecone_limits as limits
from pinecone_filters import passes
from pinecone_http import Json, PineconeHttp, Refused, Request
from pinecone_limits import Kind, bad
from pinecone_records import Namespace

RPC_CODES = {
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "RESOURCE_EXHAUSTED": 8,
    "OUT_OF_RANGE": 11,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
    "UNAUTHENTICATED": 16,
}
PAGE = 100
"""Ids that ``list`` gives at once."""


class IndexServer(PineconeHttp):
    """Serves an index.

    Args:
        kind: what vectors it takes.

    Attributes:
        lag: how many reads a write needs before it is seen.
        namespaces: the records, by namespace.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.lag = 0
        self.namespaces: dict[str, Namespace] = {}
        self._headers: dict[str, str] = {}
        super().__init__()

    def answer(self, request: Request) -> tuple[int, Json | None]:
        route = self._routes().get((request.method, request.path))
        if route is None:
            raise Refused(404, "NOT_FOUND", f"no {request.method} {request.path} here")
        self._headers = {}
        return 200, route(request)

    def error(self, status: int, code: str, message: str) -> Json:
        return {"code": RPC_CODES.get(code, 2), "message": message, "details": []}

    def headers(self) -> dict[str, str]:
        return self._headers

    def _routes(self) -> dict[tuple[str, str], Callable[[Request], Json]]:
        return {
            ("POST", "/vectors/upsert"): self._upsert,
            ("POST", "/query"): self._query,
            ("GET", "/vectors/fetch"): self._fetch,
            ("GET", "/vectors/list"): self._list,
            ("POST", "/vectors/update"): self._update,
            ("POST", "/vectors/delete"): self._delete,
            ("POST", "/describe_index_stats"): self._stats,
            ("GET", "/namespaces"): self._namespaces,
        }

    def _upsert(self, request: Request) -> Json:
        records = request.body.get("vectors") or []
        if not 0 < len(records) <= limits.MOST_RECORDS:
            raise bad(f"{len(records)} records: a request holds 1 to {limits.MOST_RECORDS}")
        for record in records:
            limits.check_record(record, self.kind)
        if len({record["id"] for record in records}) < len(records):
            raise bad("an id occurs twice in the request")
        name = _namespace(request)
        namespace = self.namespaces.setdefault(name, Namespace())
        namespace.upsert([_kept(record) for record in records], self.lag)
        self._written(namespace)
        return {"upsertedCount": len(records)}

    def _query(self, request: Request) -> Json:
        body = request.body
        top = body.get("topK")
        if not isinstance(top, int) or not 1 <= top <= limits.MOST_RESULTS:
            raise bad(f"topK={top!r}: give 1 to {limits.MOST_RESULTS}")
        name = _namespace(request)
        namespace = self._read(name)
        dense, sparse = body.get("vector") or [], body.get("sparseVector")
        if "id" in body:
            stored = namespace.visible.get(body["id"], {})
            dense, sparse = stored.get("values", dense), stored.get("sparseValues", sparse)
        elif self.kind.dimension is None and not sparse:
            raise bad("a sparse index is queried by a sparse vector")
        else:
            limits.check_dense(dense, self.kind)
            limits.check_sparse(sparse, self.kind)
        found = namespace.best(dense, sparse or {}, body.get("filter") or {}, self.kind.metric, top)
        matches = [self._match(score, record, body) for score, record in found]
        limits.check_answer(matches)
        return {"matches": matches, "namespace": name, "usage": {"readUnits": 1}}

    def _match(self, score: float, record: Json, asked: Json) -> Json:
        match: Json = {"id": record["id"], "score": score, "values": []}
        if asked.get("includeValues"):
            match |= {key: record[key] for key in ("values", "sparseValues") if record.get(key)}
        if asked.get("includeMetadata"):
            match["metadata"] = record.get("metadata") or {}
        return match

    def _fetch(self, request: Request) -> Json:
        name = _namespace(request)
        held = self._read(name).visible
        found = {id_: held[id_] for id_ in request.query.get("ids", []) if id_ in held}
        return {"vectors": found, "namespace": name, "usage": {"readUnits": 1}}

    def _list(self, request: Request) -> Json:
        name = _namespace(request)
        after = request.query.get("paginationToken", [""])[0]
        prefix = request.query.get("prefix", [""])[0]
        ids = sorted(id_ for id_ in self._read(name).visible if id_.startswith(prefix) and id_ > after)
        page = ids[: int(request.query.get("limit", [PAGE])[0])]
        answer: Json = {
            "vectors": [{"id": id_} for id_ in page],
            "namespace": name,
            "usage": {"readUnits": 1},
        }
        if len(page) < len(ids):
            answer["pagination"] = {"next": page[-1]}
        return answer

    def _update(self, request: Request) -> Json:
        body = request.body
        namespace = self._existing(_namespace(request))

        def updated(record: Json) -> Json:
            renewed = {
                **record,
                "metadata": {**(record.get("metadata") or {}), **body.get("setMetadata", {})},
            }
            renewed |= {key: body[key] for key in ("values", "sparseValues") if key in body}
            limits.check_record(renewed, self.kind)
            return renewed

        if body["id"] in namespace.visible:
            updated(namespace.visible[body["id"]])  # what may not be is refused now, not when it is seen
        namespace.change(body["id"], updated, self.lag)
        self._written(namespace)
        return {}

    def _delete(self, request: Request) -> Json:
        body = request.body
        ids, everything, conditions = body.get("ids"), body.get("deleteAll"), body.get("filter")
        if sum(map(bool, (ids, everything, conditions))) != 1:
            raise bad("give either ids, deleteAll or filter")
        namespace = self._existing(_namespace(request))
        if ids:
            if len(ids) > limits.MOST_RECORDS:
                raise bad(f"{len(ids)} ids exceed the limit of {limits.MOST_RECORDS}")
            named = set(ids)
            namespace.delete(lambda record: record["id"] in named, self.lag)
        elif conditions:
            passes(conditions, {})
            namespace.delete(lambda record: passes(conditions, record.get("metadata") or {}), self.lag)
        else:
            namespace.delete(lambda record: True, self.lag)
        self._written(namespace)
        return {}

    def _stats(self, request: Request) -> Json:
        if request.body.get("filter"):
            raise bad("serverless indexes do not support describing index stats with a metadata filter")
        counts = {name: len(self._read(name).visible) for name in list(self.namespaces)}
        answer: Json = {
            "namespaces": {name: {"vectorCount": count} for name, count in counts.items()},
            "indexFullness": 0.0,
            "totalVectorCount": sum(counts.values()),
            "metric": self.kind.metric,
            "vectorType": "sparse" if self.kind.dimension is None else "dense",
        }
        return answer if self.kind.dimension is None else {**answer, "dimension": self.kind.dimension}

    def _namespaces(self, request: Request) -> Json:
        counts = [(name, len(self._read(name).visible)) for name in sorted(self.namespaces)]
        return {"namespaces": [{"name": name, "record_count": count} for name, count in counts]}

    def _read(self, name: str) -> Namespace:
        namespace = self.namespaces.get(name) or Namespace()
        namespace.read()
        self._headers["x-pinecone-max-indexed-lsn"] = str(namespace.indexed)
        return namespace

    def _existing(self, name: str) -> Namespace:
        if name not in self.namespaces:
            raise Refused(404, "NOT_FOUND", "Namespace not found")
        return self.namespaces[name]

    def _written(self, namespace: Namespace) -> None:
        self._headers["x-pinecone-lsn-committed"] = str(namespace.committed)


def _kept(record: Json) -> Json:
    """A record as it is stored: every number of the metadata is a 64-bit float."""
    metadata = record.get("metadata") or {}
    floats = {key: float(value) for key, value in metadata.items() if type(value) is int}
    return {**record, "metadata": {**metadata, **floats}}


def _namespace(request: Request) -> str:
    """The request's namespace; the default one is "" and also known as ``__default__``."""
    given: Any = request.body.get("namespace") or request.query.get("namespace", [""])[0]
    return "" if given == "__default__" else str(given)
