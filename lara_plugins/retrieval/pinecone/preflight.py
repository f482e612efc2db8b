"""What an index of Pinecone's can do, told before anything is read or written; and its creation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import metadata
from typing import Any, TypeAlias

from lara_plugins.errors import IndexUnsuitable, MissingExtra, PackageConflict
from lara_plugins.retrieval.pinecone.calls import sdk_major

Client: TypeAlias = Any
"""A ``pinecone.Pinecone`` of any major."""

MAJORS = range(7, 11)
DENSE_FIELD = "_values"
SPARSE_FIELD = "_sparse_values"
"""The names that SDK 10 gives to the vectors of records."""

TAG = "lara_embedding"
"""The tag, and the key of a record's metadata, that name the encoders which filled an index."""


@dataclass(frozen=True, slots=True)
class Ability:
    """What an index holds.

    Attributes:
        name: its name.
        host: where it is served.
        metric: of its dense vectors; "dotproduct" where it has none.
        dimension: of its dense vectors; None where it has none.
        sparse: whether records may have sparse vectors.
        tags: as they were given when it was created.
    """

    name: str
    host: str
    metric: str
    dimension: int | None
    sparse: bool
    tags: Mapping[str, str]


@cache
def check_sdk() -> None:
    """Refuse an SDK that this package does not work with.

    Raises:
        MissingExtra: there is none.
        PackageConflict: the older ``pinecone-client`` is installed beside it, or it is of another
            major than 7 to 10.
    """
    versions = {}
    for package in ("pinecone", "pinecone-client"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if old := versions.get("pinecone-client"):
        raise PackageConflict(
            f"pinecone-client {old} is installed, whose files overwrite those of pinecone: "
            "pip uninstall -y pinecone-client pinecone, then pip install 'lara-plugins[pinecone]'"
        )
    if "pinecone" not in versions:
        raise MissingExtra("pinecone", "lara-plugins[pinecone]")
    if int(versions["pinecone"].split(".")[0]) not in MAJORS:
        raise PackageConflict(
            f"pinecone {versions['pinecone']} is installed and 7 to 10 are known: "
            "pip install 'lara-plugins[pinecone]'"
        )


def ability(client: Client, name: str) -> Ability:
    """What the index of a name holds, as the control plane describes it.

    Raises:
        IndexUnsuitable: it is not ready.
    """
    found = client.describe_index(name).to_dict()
    if not found["status"]["ready"]:
        raise IndexUnsuitable(
            f"the Pinecone index {name} is not ready ({found['status']['state']}): try later"
        )
    fields = (found.get("schema") or {}).get("fields")
    if fields is None:
        sparse_only = found.get("vector_type") == "sparse"
        metric = found["metric"]
        dimension = None if sparse_only else int(found["dimension"])
        sparse = sparse_only or metric == "dotproduct"
    else:
        dense = fields.get(DENSE_FIELD)
        metric = dense["metric"] if dense else "dotproduct"
        dimension = int(dense["dimension"]) if dense else None
        sparse = SPARSE_FIELD in fields
    return Ability(name, found["host"], metric, dimension, sparse, found.get("tags") or {})


def check_dense(index: Ability, dimension: int, *, hybrid: bool) -> None:
    """Refuse an index that cannot serve the dense half, or both halves where it is to hold both.

    Raises:
        IndexUnsuitable: its metric, dimension or sparse ability is not what is needed.
    """
    where = f"the Pinecone index {index.name}"
    if index.dimension is None:
        raise IndexUnsuitable(f"{where} holds sparse vectors only: give it as sparse_name")
    if index.dimension != dimension:
        raise IndexUnsuitable(
            f"{where} has {index.dimension} dimensions and the encoder gives {dimension}: "
            "use the encoder that filled it, or another index"
        )
    if hybrid and index.metric != "dotproduct":
        raise IndexUnsuitable(
            f"{where} has the metric {index.metric}, and only dotproduct adds sparse values: create another "
            "with PineconeIndex.create, give a sparse index beside it as sparse_name, or leave out sparse"
        )
    if hybrid and not index.sparse:
        raise IndexUnsuitable(
            f"{where} declares no sparse vectors: create another with PineconeIndex.create, give a "
            "sparse index beside it as sparse_name, or leave out sparse"
        )
    if index.metric not in ("dotproduct", "cosine"):
        raise IndexUnsuitable(f"{where} has the metric {index.metric}: dotproduct or cosine is needed")


def check_sparse(index: Ability) -> None:
    """Refuse an index that cannot serve as the sparse one of two.

    Raises:
        IndexUnsuitable: it holds dense vectors.
    """
    if index.dimension is not None or not index.sparse:
        raise IndexUnsuitable(
            f"the Pinecone index {index.name} is no sparse index: create one for sparse_name"
        )


def tag_of(fingerprint: str) -> str:
    """A fingerprint in the few characters that a tag may have."""
    return blake2b(fingerprint.encode(), digest_size=8).hexdigest()


def create(
    client: Client,
    name: str,
    dimension: int | None,
    *,
    sparse: bool,
    cloud: str,
    region: str,
    fingerprint: str,
) -> None:
    """Create a serverless index with the metric dotproduct and wait until it is ready.

    Args:
        client: a ``pinecone.Pinecone``.
        name: the index's name.
        dimension: of its dense vectors; None for an index of sparse ones alone.
        sparse: whether records may have sparse vectors.
        cloud: "aws", "gcp" or "azure".
        region: the cloud's region.
        fingerprint: of the encoders that will fill it.
    """
    tags = {TAG: tag_of(fingerprint)}
    if sdk_major() >= 10:
        fields: dict[str, dict[str, object]] = {}
        if dimension is not None:
            fields[DENSE_FIELD] = {"type": "dense_vector", "dimension": dimension, "metric": "dotproduct"}
        if sparse:
            fields[SPARSE_FIELD] = {"type": "sparse_vector"}
        deployment = {"deployment_type": "managed", "cloud": cloud, "region": region}
        client.indexes.create(name=name, schema={"fields": fields}, deployment=deployment, tags=tags)
        return
    kind = {"vector_type": "sparse"} if dimension is None else {"dimension": dimension}
    spec = {"serverless": {"cloud": cloud, "region": region}}
    client.create_index(name=name, spec=spec, metric="dotproduct", tags=tags, **kind)
