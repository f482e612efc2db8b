"""One namespace of an index: what it holds, and what was written there and is not seen yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lara_plugins.arguments import is_utf8
from lara_plugins.errors import InvalidArgument
from lara_plugins.retrieval.pinecone import visibility, writing
from lara_plugins.retrieval.pinecone.calls import Call, Patience, Plane, Planes, Steps, ask, insist
from lara_plugins.retrieval.pinecone.counting import Count
from lara_plugins.retrieval.pinecone.encoding import Encoded
from lara_plugins.retrieval.pinecone.layouts import ID, Stored
from lara_plugins.retrieval.pinecone.records import dense_values
from lara_plugins.retrieval.pinecone.unseen import Unseen

PAGE = 100
"""Ids that Pinecone lists at once."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a namespace's records.

    Attributes:
        metadata: by id.
        following: what the next page is asked for with; None at the last one.
    """

    metadata: Mapping[str, Stored]
    following: str | None


def check_namespace(name: object) -> None:
    """Refuse what is no namespace's name.

    Raises:
        InvalidArgument: it is no string, or cannot be written as UTF-8.
    """
    if not isinstance(name, str) or not is_utf8(name):
        raise InvalidArgument("namespace", name, 'give a string; "" is the default namespace')


class Namespace:
    """What one object reads and writes in one namespace, as steps.

    Args:
        name: of the namespace; "" is the default one.
        index: the index's name, for errors' sentences.
        planes: which indexes there are.
        dimension: of the dense vectors.
        patience: with failures and late visibility.
        recount_after: seconds for which a count is good.
    """

    def __init__(
        self,
        name: str,
        index: str,
        planes: tuple[Plane, ...],
        dimension: int,
        patience: Patience,
        recount_after: float,
    ) -> None:
        self.name = name
        self._index = index
        self._planes = planes
        self._patience = patience
        self._unseen = Unseen()
        self._count = Count(name, recount_after)
        self._anywhere: dict[str, object] = {"vector": dense_values([0.0] * dimension), "namespace": name}

    def count(self) -> Steps[int]:
        """How many records it holds."""
        return self._count.steps()

    def any_record(self) -> Steps[Stored | None]:
        """The metadata of some record; None where there is none."""
        (reply,) = yield from ask(
            Call("dense", "query", {**self._anywhere, "top_k": 1, "include_metadata": True})
        )
        return next((dict(match.metadata or {}) for match in reply.matches), None)

    def page(self, after: str | None) -> Steps[Page]:
        """The records that follow a page; the first ones where it is None.

        The ids are listed and the metadata is asked for by a query, since a fetch would bring all
        vectors along.
        """
        token = {} if after is None else {"pagination_token": after}
        listing = Call("dense", "list_paginated", {"namespace": self.name, "limit": PAGE, **token})
        listed = yield from insist(listing, self._patience)
        ids = [str(item.id) for item in listed.vectors]
        following = listed.pagination.next if listed.pagination else None
        if not ids:
            return Page({}, following or None)
        asked = {"top_k": len(ids), "filter": {ID: {"$in": ids}}, "include_metadata": True}
        reply = yield from insist(Call("dense", "query", {**self._anywhere, **asked}), self._patience)
        return Page({match.id: dict(match.metadata or {}) for match in reply.matches}, following or None)

    def records(self, planes: Planes) -> Iterator[tuple[str, Stored]]:
        """Id and metadata of every record; a page of them in memory."""
        page = planes.run(self.page(None))
        yield from page.metadata.items()
        while page.following is not None:
            page = planes.run(self.page(page.following))
            yield from page.metadata.items()

    def upsert(self, encoded: Encoded) -> Steps[None]:
        """Write records."""
        try:
            yield from writing.upsert(encoded, self.name, self._patience, self._unseen)
        finally:
            self._count.forget()

    def delete_source(self, source: str) -> Steps[None]:
        """Delete a source's records."""
        try:
            yield from writing.delete_source(self._planes, source, self.name, self._patience, self._unseen)
        finally:
            self._count.forget()

    def await_visible(self) -> Steps[None]:
        """Return when all that was written and deleted here is seen, or what took its place."""
        yield from visibility.await_visible(self._unseen, self._anywhere, self._patience, self._index)
        self._count.forget()
