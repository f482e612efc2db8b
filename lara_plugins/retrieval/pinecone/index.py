"""A hybrid index at Pinecone."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Sequence

from lara_plugins.errors import InvalidArgument
from lara_plugins.passages import Passage
from lara_plugins.retrieval.encoders import DenseEncoder, SparseEncoder
from lara_plugins.retrieval.filters import Filter
from lara_plugins.retrieval.index import Match
from lara_plugins.retrieval.pinecone import preflight
from lara_plugins.retrieval.pinecone.calls import Handle, Patience, Steps
from lara_plugins.retrieval.pinecone.connecting import Indexes
from lara_plugins.retrieval.pinecone.encoding import Encoded, Encoders
from lara_plugins.retrieval.pinecone.filled_by import FilledBy
from lara_plugins.retrieval.pinecone.layouts import Layout, content_hashes
from lara_plugins.retrieval.pinecone.namespace import Namespace, check_namespace
from lara_plugins.retrieval.pinecone.preflight import Client
from lara_plugins.retrieval.pinecone.reader import Reader
from lara_plugins.retrieval.pinecone.searcher import Searcher


class PineconeIndex:
    """A `HybridIndex` in Pinecone, in one index or two.

    One index with the metric dotproduct holds dense and sparse vectors; or a dense index and,
    as ``sparse_name``, a sparse one beside it. Without a sparse encoder only the dense half is
    searched, with alpha 1; that is how to read an index that LlamaIndex or LangChain has filled.

    The client stays the caller's and is never closed. What it raises is passed on. One object
    serves many threads. Connecting asks Pinecone what the index is and refuses one that cannot
    serve; writes become visible late, see `wait_until_visible`.

    Args:
        client: a ``pinecone.Pinecone``, of any major from 7 to 10.
        name: the index's name.
        dense: the encoder of its dense vectors.
        sparse: the encoder of its sparse vectors; None for the dense half alone.
        sparse_name: the sparse index, where the sparse vectors have one of their own.
        namespace: where in the index; "" is the default one.
        layout: who filled it; those of ``llama_index`` and ``langchain`` are only read.
        text_key: where LangChain keeps the text in the metadata.
        async_index: the SDK's ``IndexAsyncio`` of the same index, for `asearch` and the other
            asynchronous calls; it belongs to one event loop. Without it they use worker threads.
        async_sparse_index: likewise for ``sparse_name``.
        patience: with throttling, overload, lost connections and late visibility.
        recount_after: seconds for which a `count` is good, so that not every query asks for it.

    Raises:
        MissingExtra: the SDK is not installed.
        PackageConflict: it is of another major, or ``pinecone-client`` is installed beside it.
        IndexUnsuitable: its metric, dimension or sparse ability is not what the encoders need.
        EmbeddingMismatch: it was filled by other encoders.
        InvalidArgument: the arguments do not go together.
    """

    atomic = False
    """An `upsert` that is interrupted has written some passages."""

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        dense: DenseEncoder,
        sparse: SparseEncoder | None = None,
        sparse_name: str | None = None,
        namespace: str = "",
        layout: Layout = "lara",
        text_key: str = "text",
        async_index: Handle | None = None,
        async_sparse_index: Handle | None = None,
        patience: Patience | None = None,
        recount_after: float = 60.0,
    ) -> None:
        preflight.check_sdk()
        check_namespace(namespace)
        indexes = Indexes(name, sparse_name, async_index, async_sparse_index)
        indexes.check(layout, sparse)
        self.name = name
        self._encoders = Encoders(dense, sparse, apart=sparse_name is not None)
        self._filled_by = FilledBy(name, self._encoders.fingerprint)
        self._reader = Reader(name, layout, text_key, self._filled_by)
        self._patience = patience or Patience()
        self._recount_after = recount_after
        self._planes = indexes.connect(client, self._encoders, self._filled_by)
        self._enter(namespace)
        self._filled_by.check_record(self._planes.run(self._there.any_record()))

    @classmethod
    def create(
        cls,
        client: Client,
        name: str,
        *,
        dense: DenseEncoder,
        sparse: SparseEncoder | None = None,
        sparse_name: str | None = None,
        cloud: str = "aws",
        region: str = "us-east-1",
        namespace: str = "",
        patience: Patience | None = None,
    ) -> PineconeIndex:
        """Create the serverless index, or the two, wait until it is ready, and connect to it.

        Args:
            client: as for the class, like the other arguments.
            name: the new index's name.
            dense: gives its dimension; its metric is dotproduct.
            sparse: whether, and with what, sparse vectors are written.
            sparse_name: a sparse index to create for them; None keeps both in one index.
            cloud: "aws", "gcp" or "azure".
            region: the cloud's region.
            namespace: where to write.
            patience: see the class.

        Raises:
            InvalidArgument: the arguments do not go together; nothing has been created then.
        """
        preflight.check_sdk()
        check_namespace(namespace)
        indexes = Indexes(name, sparse_name, None, None)
        indexes.check("lara", sparse)
        indexes.create(client, Encoders(dense, sparse, apart=sparse_name is not None), cloud, region)
        return cls(
            client,
            name,
            dense=dense,
            sparse=sparse,
            sparse_name=sparse_name,
            namespace=namespace,
            patience=patience,
        )

    def in_namespace(self, namespace: str) -> PineconeIndex:
        """The same index in another namespace, without connecting again.

        Raises:
            InvalidArgument: it is no string.
        """
        check_namespace(namespace)
        other = copy.copy(self)
        other._enter(namespace)
        return other

    @property
    def fingerprint(self) -> str:
        """Identity of the encoders; each record carries it as ``lara_embedding``."""
        return self._encoders.fingerprint

    @property
    def alpha_ceiling(self) -> float:
        """The highest alpha that a plan may choose."""
        return self._searcher.alpha_ceiling

    @property
    def alpha_floor(self) -> float:
        """The lowest alpha that a plan may choose: 1 where there is no sparse half."""
        return self._searcher.alpha_floor

    def load(self) -> None:
        """Load the encoders' weights now rather than at the first search."""
        self._encoders.query("weights")

    def count(self) -> int:
        """How many records the namespace holds, as of at most ``recount_after`` seconds ago."""
        return self._planes.run(self._there.count())

    async def acount(self) -> int:
        """As `count`, without blocking the event loop."""
        return await self._planes.arun(self._there.count())

    def sources(self) -> dict[str, str]:
        """The content hash of each source that the namespace holds passages of.

        The hash is what the passages carry as ``metadata["content_hash"]``; it is "" where they
        carry none, or not all the same: no real hash equals it, so such a source counts as stale.
        What this object has written is waited for. What another process wrote a moment ago may be
        missing; an ingestion that misses it writes it again, and the next one sets right what is
        left over.

        Raises:
            NotYetVisible: as for `wait_until_visible`.
            EmbeddingMismatch: a record was written by other encoders.
            InvalidArgument: another framework's layout, which is only read by searches.
        """
        self._reader.check_own_layout()
        self.wait_until_visible()
        records = self._there.records(self._planes)
        return content_hashes(self._filled_by.checked(metadata) for _, metadata in records)

    def passages(self) -> Iterator[Passage]:
        """Every passage of the namespace that can be seen, in no order, read page by page.

        Raises:
            EmbeddingMismatch: a record was written by other encoders.
            HybridIndexError: a record is not as the layout says.
            InvalidArgument: another framework's layout, which is only read by searches.
        """
        self._reader.check_own_layout()
        for id_, metadata in self._there.records(self._planes):
            yield self._reader.passage(id_, metadata)

    def search(
        self,
        text: str,
        *,
        limit: int,
        alpha: float,
        dense_text: str | None = None,
        filter: Filter | None = None,
    ) -> list[Match]:
        """The ``limit`` best passages, best first, ties by id.

        In one index the scores are Pinecone's own, of the weighted query; a match tells no halves.
        In two indexes the best of either are joined, each with its exact sum.

        Args:
            text: the question; always what the sparse half sees.
            limit: at most so many, 1 to 10,000.
            alpha: weight of the dense half, 0..1; 1 where there is no sparse half.
            dense_text: what is embedded densely instead of ``text`` (a hypothetical answer).
            filter: which passages are searched, by their metadata and ``source``.

        Raises:
            InvalidArgument: a text is blank, a number out of its range, or the filter none.
            EmbeddingMismatch: a record that is found was written by other encoders.
            HybridIndexError: a record is not as the layout says.
        """
        condition = self._searcher.checked(text, limit, alpha, dense_text, filter)
        encoded = self._encoders.query(text, dense_text)
        return self._planes.run(self._searcher.search(encoded, limit, alpha, condition))

    async def asearch(
        self,
        text: str,
        *,
        limit: int,
        alpha: float,
        dense_text: str | None = None,
        filter: Filter | None = None,
    ) -> list[Match]:
        """As `search`, without blocking the event loop."""
        condition = self._searcher.checked(text, limit, alpha, dense_text, filter)
        encoded = await asyncio.to_thread(self._encoders.query, text, dense_text)
        return await self._planes.arun(self._searcher.search(encoded, limit, alpha, condition))

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Write passages; one that has the id of an older one replaces it.

        Where two of ``passages`` have one id, the last one counts. They go in batches within
        Pinecone's limits; a batch that throttling, an overload or the network stopped is sent again
        as ``patience`` says, and those that went through are not.

        Raises:
            InvalidArgument: a passage has no id; nothing is written then.
            UnstorablePassages: passages cannot be stored; it names all of them, and nothing is written.
            PartialUpsert: a batch failed for good; ``unwritten`` holds the ids of what is not written.
        """
        self._planes.run(self._there.upsert(self._encoded(passages)))

    async def aupsert(self, passages: Sequence[Passage]) -> None:
        """As `upsert`, without blocking the event loop."""
        encoded = await asyncio.to_thread(self._encoded, passages)
        await self._planes.arun(self._there.upsert(encoded))

    def delete_source(self, source: str) -> None:
        """Forget all passages of a source; a source that it does not hold is nothing to do."""
        self._planes.run(self._deleting(source))

    async def adelete_source(self, source: str) -> None:
        """As `delete_source`, without blocking the event loop."""
        await self._planes.arun(self._deleting(source))

    def wait_until_visible(self) -> None:
        """Return when a search sees all that this object has written and deleted, or what replaced it.

        Other objects and processes may write at the same time: a record that one of them sent later
        is as good, by the time of day that each record carries as ``lara_written``. What cannot be
        told from a write that is still under way, because another writer has deleted it or has a
        clock that is behind, is waited for in vain.

        Raises:
            NotYetVisible: that took longer than ``patience.visible_within``; what is still missing
                is told this once and not waited for again.
        """
        self._planes.run(self._there.await_visible())

    async def await_until_visible(self) -> None:
        """As `wait_until_visible`, without blocking the event loop."""
        await self._planes.arun(self._there.await_visible())

    def _enter(self, namespace: str) -> None:
        planes, dimension = tuple(self._planes.handles), self._encoders.dense.dimension
        self.namespace = namespace
        self._there = Namespace(namespace, self.name, planes, dimension, self._patience, self._recount_after)
        self._searcher = Searcher(self._encoders, self._reader, namespace)

    def _encoded(self, passages: Sequence[Passage]) -> Encoded:
        self._reader.check_own_layout()
        return self._encoders.passages(passages)

    def _deleting(self, source: str) -> Steps[None]:
        if not source:
            raise InvalidArgument("source", source, "name the source whose passages are to be forgotten")
        self._reader.check_own_layout()
        return self._there.delete_source(source)
