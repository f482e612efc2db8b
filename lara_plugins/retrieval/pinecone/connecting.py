"""Connecting to the index, or to the two, that a hybrid index is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from lara_plugins.arguments import check_choice
from lara_plugins.errors import InvalidArgument
from lara_plugins.retrieval.encoders import SparseEncoder
from lara_plugins.retrieval.pinecone import preflight
from lara_plugins.retrieval.pinecone.calls import Handle, Plane, Planes
from lara_plugins.retrieval.pinecone.encoding import Encoders
from lara_plugins.retrieval.pinecone.filled_by import FilledBy
from lara_plugins.retrieval.pinecone.layouts import Layout
from lara_plugins.retrieval.pinecone.preflight import Client


@dataclass(frozen=True, slots=True)
class Indexes:
    """Which indexes hold the vectors; see `PineconeIndex` for its fields."""

    name: str
    sparse_name: str | None
    async_index: Handle | None
    async_sparse_index: Handle | None

    def check(self, layout: Layout, sparse: SparseEncoder | None) -> None:
        """Refuse arguments that do not go together.

        Raises:
            InvalidArgument: it names the one that is wrong or missing.
        """
        check_choice("layout", layout, get_args(Layout))
        if self.sparse_name is None:
            return
        if self.sparse_name == self.name:
            raise InvalidArgument("sparse_name", self.sparse_name, "give an index other than the dense one")
        if sparse is None:
            raise InvalidArgument("sparse", None, "give the encoder that fills sparse_name")
        if layout != "lara":
            raise InvalidArgument("sparse_name", self.sparse_name, "only our own layout joins two indexes")
        if (self.async_index is None) is not (self.async_sparse_index is None):
            beside = self.async_sparse_index
            raise InvalidArgument("async_sparse_index", beside, "give both of the two indexes")

    def create(self, client: Client, encoders: Encoders, cloud: str, region: str) -> None:
        """Create them, and wait until they are ready."""
        place = {"cloud": cloud, "region": region, "fingerprint": encoders.fingerprint}
        hybrid = encoders.sparse is not None and not encoders.apart
        preflight.create(client, self.name, encoders.dense.dimension, sparse=hybrid, **place)
        if self.sparse_name is not None:
            preflight.create(client, self.sparse_name, None, sparse=True, **place)

    def connect(self, client: Client, encoders: Encoders, filled_by: FilledBy) -> Planes:
        """The SDK's objects of these indexes, which can serve the encoders.

        Raises:
            IndexUnsuitable: the metric, dimension or sparse ability is not what the encoders need.
            EmbeddingMismatch: the index was created for other encoders.
        """
        found = preflight.ability(client, self.name)
        hybrid = encoders.sparse is not None and not encoders.apart
        preflight.check_dense(found, encoders.dense.dimension, hybrid=hybrid)
        handles: dict[Plane, Handle] = {"dense": client.Index(host=found.host)}
        asynchronous: dict[Plane, Handle] = {}
        if self.async_index is not None:
            asynchronous["dense"] = self.async_index
        if self.sparse_name is not None:
            beside = preflight.ability(client, self.sparse_name)
            preflight.check_sparse(beside)
            handles["sparse"] = client.Index(host=beside.host)
            if self.async_sparse_index is not None:
                asynchronous["sparse"] = self.async_sparse_index
        filled_by.check_tags(found.tags)
        return Planes(handles, asynchronous)
