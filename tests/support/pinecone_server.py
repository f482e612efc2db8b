"""A stand-in for Pinecone on loopback, for the real SDK (7 to 10) to talk to.

This host is the control plane and the inference service; each index that is created through it
has a host of its own (``pinecone_data``). It answers as the published specifications say. That of
2026-07, which SDK 10 speaks, is not published: its control plane is taken to be that of
2026-01.alpha (an index declares its fields in a schema) with the two differences that SDK 10's own
models show, ``_values`` and ``_sparse_values`` as names for the vectors of the data plane's
records, and deployment optional. An index is ready as soon as it is created.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from pinecone_data import IndexServer
from pinecone_http import Json, PineconeHttp, Refused, Request
from pinecone_inference import embed, rerank
from pinecone_limits import Kind, bad

SCHEMA_VERSIONS = ("2026-01.alpha", "2026-07")
"""The versions in which an index declares its fields."""

SERVERLESS = {"cloud": "aws", "region": "us-east-1"}
PLANE_NAMES = {"dense_vector": "_values", "sparse_vector": "_sparse_values"}


class PineconeServer(PineconeHttp):
    """Serves Pinecone's control plane and inference while its context is entered.

    Args:
        change: a reply of the inference service as it is sent, where a test wants another than
            the right one.

    Attributes:
        indexes: the indexes, by name.
        places: the cloud and region of each.
        ready: whether they are.
    """

    def __init__(self, change: Callable[[Json], Json] = lambda reply: reply) -> None:
        self.change = change
        self.indexes: dict[str, IndexServer] = {}
        self.places: dict[str, Json] = {}
        self.ready = True
        self._tags: dict[str, Json] = {}
        super().__init__()

    def create(
        self, name: str, kind: Kind, tags: Json | None = None, place: Json = SERVERLESS
    ) -> IndexServer:
        """A new index, as ``POST /indexes`` makes it."""
        if name in self.indexes:
            raise Refused(409, "ALREADY_EXISTS", f"index {name} already exists")
        self.indexes[name] = IndexServer(kind).__enter__()
        self._tags[name] = tags or {}
        self.places[name] = {key: place[key] for key in SERVERLESS}
        return self.indexes[name]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for index in self.indexes.values():
            index.__exit__(kind, error, traceback)
        super().__exit__(kind, error, traceback)

    def error(self, status: int, code: str, message: str) -> Json:
        return {"status": status, "error": {"code": code, "message": message}}

    def answer(self, request: Request) -> tuple[int, Json | None]:
        match (request.method, *request.path.strip("/").split("/")):
            case ["POST", "embed"]:
                return 200, self.change(embed(request.body))
            case ["POST", "rerank"]:
                return 200, self.change(rerank(request.body))
            case ["GET", "indexes"]:
                return 200, {"indexes": [self._described(name, request.version) for name in self.indexes]}
            case ["POST", "indexes"]:
                schema = request.version in SCHEMA_VERSIONS
                kind = _kind_of_schema(request.body) if schema else _kind_of_old(request.body)
                place = request.body.get("deployment") or request.body.get("spec", {}).get("serverless")
                self.create(request.body["name"], kind, request.body.get("tags"), place or SERVERLESS)
                return 201, self._described(request.body["name"], request.version)
            case ["GET", "indexes", name]:
                return 200, self._described(name, request.version)
            case ["DELETE", "indexes", name]:
                self._index(name).__exit__(None, None, None)
                del self.indexes[name]
                return 202, None
        raise Refused(404, "NOT_FOUND", f"no {request.method} {request.path} here")

    def _index(self, name: str) -> IndexServer:
        if name not in self.indexes:
            raise Refused(404, "NOT_FOUND", f"Resource {name} not found")
        return self.indexes[name]

    def _described(self, name: str, version: str) -> Json:
        index = self._index(name)
        described = {
            "name": name,
            "host": index.url,
            "status": {"ready": self.ready, "state": "Ready" if self.ready else "Initializing"},
            "deletion_protection": "disabled",
            **({"tags": self._tags[name]} if self._tags[name] else {}),
        }
        kind = index.kind
        if version in SCHEMA_VERSIONS:
            fields: Json = {}
            if kind.dimension is not None:
                dense = {"type": "dense_vector", "dimension": kind.dimension, "metric": kind.metric}
                fields["_values"] = dense
            if kind.sparse:
                fields["_sparse_values"] = {"type": "sparse_vector"}
            return {
                **described,
                "deployment": {"deployment_type": "managed", **self.places[name]},
                "schema": {"fields": fields},
                "read_capacity": {"mode": "OnDemand", "status": {"state": "Ready"}},
            }
        serverless: Json = dict(self.places[name])
        if version != "2025-04":
            serverless["read_capacity"] = {"mode": "OnDemand", "status": {"state": "Ready"}}
        described |= {"metric": kind.metric, "spec": {"serverless": serverless}}
        if kind.dimension is None:
            return {**described, "vector_type": "sparse"}
        return {**described, "vector_type": "dense", "dimension": kind.dimension}


def _kind_of_old(body: Json) -> Kind:
    """The index that a request before schemas asks for; dot products take sparse values, too."""
    if "serverless" not in body.get("spec", {}):
        raise bad("this stand-in knows serverless indexes only")
    if body.get("vector_type", "dense") == "sparse":
        if body.get("dimension") is not None or body.get("metric", "dotproduct") != "dotproduct":
            raise bad("a sparse index has no dimension, and dotproduct for its metric")
        return Kind("dotproduct", None, sparse=True)
    metric = body.get("metric", "cosine")
    if not isinstance(body.get("dimension"), int):
        raise bad("a dense index needs a dimension")
    return Kind(_known(metric), body["dimension"], sparse=metric == "dotproduct")


def _kind_of_schema(body: Json) -> Kind:
    """The index that a request with a schema asks for: it holds what it declares."""
    fields: dict[str, dict[str, Any]] = body["schema"]["fields"]
    by_type = {PLANE_NAMES.get(field["type"], ""): (name, field) for name, field in fields.items()}
    if wrong := [name for own, (name, _) in by_type.items() if own and own != name]:
        raise bad(f"field {wrong[0]}: the vectors of records are named _values and _sparse_values")
    sparse = "_sparse_values" in by_type
    if "_values" not in by_type:
        if not sparse:
            raise bad("the schema declares no vector")
        return Kind("dotproduct", None, sparse=True)
    _, dense = by_type["_values"]
    return Kind(_known(dense["metric"]), dense["dimension"], sparse)


def _known(metric: str) -> str:
    if metric not in ("dotproduct", "cosine"):
        raise bad(f"this stand-in does not know the metric {metric}")
    return metric
