"""Writes that are seen late: what took their place is as good, and nothing is waited for for ever.

Every test runs over the synchronous calls, in worker threads, and over the SDK's own asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pinecone
import pytest
from hashed_words import HashedWords
from pinecone_clients import DataPlane, client_of
from pinecone_data import IndexServer
from pinecone_http import Fault, Held
from pinecone_server import PineconeServer

from lara_plugins import Bm25Encoder, NotYetVisible, PartialUpsert, Passage, Patience, PineconeIndex

NEVER = 10_000
"""More reads than a test makes."""

RIVER, MOON = Passage("1", "river", source="a"), Passage("1", "moon", source="a")
DENSE, SPARSE = HashedWords(8), Bm25Encoder(4)


@dataclass
class Site:
    """Pinecone with one index or two, and objects that write there."""

    server: PineconeServer
    client: pinecone.Pinecone
    sparse_name: str | None
    handles: dict[str, DataPlane] = field(default_factory=dict)

    @property
    def stored(self) -> IndexServer:
        return self.server.indexes["passages"]

    def object(self, visible_within: float = 30) -> PineconeIndex:
        """The index as another process has it."""
        return PineconeIndex(
            self.client,
            "passages",
            dense=DENSE,
            sparse=SPARSE,
            sparse_name=self.sparse_name,
            patience=Patience(attempts=1, first_pause=0.001, visible_within=visible_within),
            **self.handles,
        )

    def lag(self, reads: int) -> None:
        for stored in self.server.indexes.values():
            stored.lag = reads

    def metadata(self, id_: str) -> dict[str, Any]:
        """What the records of an id carry, to be changed."""
        metadata: dict[str, Any] = self.stored.namespaces[""].visible[id_]["metadata"]
        return metadata

    async def seen(self) -> dict[str, str]:
        """What a search shows."""
        found = await self.object().asearch("river", limit=9, alpha=1)
        return {match.passage.id: match.passage.text for match in found}

    def hold(self, path: str, *, done: bool) -> Held:
        held = Held(path, done)
        self.stored.held.append(held)
        return held


@pytest.fixture(params=["threads, one index", "threads, two indexes", "asyncio, two indexes"])
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    loop, layout = request.param.split(", ")
    sparse_name = "words" if layout == "two indexes" else None
    async with AsyncExitStack() as stack:
        server = stack.enter_context(PineconeServer())
        client = client_of(server)
        PineconeIndex.create(client, "passages", dense=DENSE, sparse=SPARSE, sparse_name=sparse_name)
        made = Site(server, client, sparse_name)
        if loop == "asyncio":
            sdk = await stack.enter_async_context(pinecone.PineconeAsyncio(api_key="key", host=server.url))
            for name, argument in (("passages", "async_index"), ("words", "async_sparse_index")):
                handle = sdk.IndexAsyncio(host=server.indexes[name].url)
                made.handles[argument] = await stack.enter_async_context(handle)
        yield made


@asynccontextmanager
async def during(held: Held, call: Awaitable[object]) -> AsyncIterator[None]:
    """While one call waits at the service; it has returned at the end."""
    task = asyncio.ensure_future(call)
    assert await asyncio.to_thread(held.arrived.wait, 30)
    try:
        yield
    finally:
        held.released.set()
    await task


async def test_objects_that_overwrite_each_other_see_whichever_was_later(site: Site) -> None:
    one, other = site.object(), site.object()
    site.lag(3)
    await one.aupsert([RIVER, Passage("2", "sun", source="a")])
    await other.aupsert([MOON])
    await one.await_until_visible()
    await other.await_until_visible()
    assert await site.seen() == {"1": "moon", "2": "sun"}
    await one.aupsert([RIVER])
    await one.await_until_visible()
    assert (await site.seen())["1"] == "river"


async def test_an_older_record_of_another_object_is_not_taken_for_what_was_written(site: Site) -> None:
    one, other = site.object(), site.object(visible_within=0.01)
    await one.aupsert([RIVER])
    await one.await_until_visible()
    site.lag(NEVER)
    await other.aupsert([MOON])
    with pytest.raises(NotYetVisible):
        await other.await_until_visible()
    await other.aupsert([RIVER])  # the same as stands there is written anew, too
    with pytest.raises(NotYetVisible):
        await other.await_until_visible()
    await one.await_until_visible()


async def test_a_record_without_a_time_is_older_than_any(site: Site) -> None:
    index = site.object()
    await index.aupsert([RIVER, Passage("2", "sun", source="b")])
    await index.await_until_visible()
    for id_ in ("1", "2"):
        del site.metadata(id_)["lara_written"]
    assert await site.seen() == {"1": "river", "2": "sun"}
    site.lag(3)
    await index.aupsert([MOON])
    await index.await_until_visible()
    assert await site.seen() == {"1": "moon", "2": "sun"}
    site.lag(9)
    await index.adelete_source("b")
    await index.await_until_visible()
    assert await site.seen() == {"1": "moon"}


async def test_what_another_object_has_deleted_is_told_once(site: Site) -> None:
    one, other = site.object(visible_within=0.01), site.object()
    await one.aupsert([RIVER, Passage("2", "sun", source="b")])
    await other.adelete_source("a")
    with pytest.raises(NotYetVisible, match="not waited for again"):
        await one.await_until_visible()
    await one.await_until_visible()
    assert one.sources() == {"b": ""}
    await one.aupsert([MOON])
    await one.await_until_visible()
    assert await site.seen() == {"1": "moon", "2": "sun"}


async def test_what_another_object_with_a_late_clock_has_replaced_is_told_once(site: Site) -> None:
    index = site.object(visible_within=0.01)
    await index.aupsert([RIVER, Passage("2", "sun", source="b")])
    site.metadata("1")["lara_written"] = 1.0
    with pytest.raises(NotYetVisible, match="1 writes"):
        await index.await_until_visible()
    await index.await_until_visible()


async def test_an_object_is_used_again_after_a_long_delay(site: Site) -> None:
    index = site.object(visible_within=0.01)
    site.lag(NEVER)
    await index.aupsert([RIVER])
    await index.adelete_source("b")
    with pytest.raises(NotYetVisible):
        await index.await_until_visible()
    assert index.sources() == {}
    for stored in site.server.indexes.values():
        for _ in range(NEVER):
            stored.namespaces[""].read()
    site.lag(0)
    await index.aupsert([Passage("2", "sun", source="b")])
    await index.await_until_visible()
    assert index.sources() == {"a": "", "b": ""}


async def test_a_source_that_is_deleted_may_be_written_by_another_object(site: Site) -> None:
    one, other = site.object(), site.object()
    await one.aupsert([RIVER, Passage("2", "sun", source="a")])
    site.lag(3)
    await one.adelete_source("a")
    await other.aupsert([MOON])
    await one.await_until_visible()
    await other.await_until_visible()
    assert await site.seen() == {"1": "moon"}


async def test_objects_that_delete_the_same_source_both_see_it_gone(site: Site) -> None:
    one, other = site.object(), site.object()
    await one.aupsert([RIVER])
    site.lag(3)
    await one.adelete_source("a")
    await other.adelete_source("a")
    await one.await_until_visible()
    await other.await_until_visible()
    assert await site.seen() == {}


@pytest.mark.parametrize("done", [False, True])
async def test_a_source_may_be_deleted_while_it_is_written(site: Site, done: bool) -> None:
    index = site.object()
    await index.aupsert([Passage("0", "star", source="a")])
    site.lag(2)
    async with during(site.hold("/vectors/upsert", done=done), index.aupsert([RIVER])):
        await index.adelete_source("a")
        if done:
            await index.await_until_visible()
    await index.await_until_visible()
    assert await site.seen() == ({} if done else {"1": "river"})


@pytest.mark.parametrize("done", [False, True])
async def test_a_source_may_be_written_while_it_is_deleted(site: Site, done: bool) -> None:
    index = site.object()
    await index.aupsert([Passage("0", "star", source="a")])
    site.lag(2)
    async with during(site.hold("/vectors/delete", done=done), index.adelete_source("a")):
        await index.aupsert([RIVER])
        if done:
            await index.await_until_visible()
    await index.await_until_visible()
    assert await site.seen() == ({"1": "river"} if done else {})


async def test_what_is_written_after_a_deletion_is_waited_for(site: Site) -> None:
    index = site.object(visible_within=0.01)
    async with during(site.hold("/vectors/upsert", done=True), index.aupsert([RIVER])):
        await index.adelete_source("a")
        site.lag(NEVER)
        await index.aupsert([MOON])
    with pytest.raises(NotYetVisible, match=f"{1 if site.sparse_name is None else 2} writes"):
        await index.await_until_visible()


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(("first", "second"), [("river", "moon"), ("river", "!?"), ("!?", "river")])
async def test_a_record_may_be_written_twice_at_a_time(
    site: Site, done: bool, first: str, second: str
) -> None:
    index = site.object()
    await index.aupsert([Passage("1", "star", source="a")])
    site.lag(2)
    slow = index.aupsert([Passage("1", first, source="a")])
    async with during(site.hold("/vectors/upsert", done=done), slow):
        await index.aupsert([Passage("1", second, source="a")])
    await index.await_until_visible()
    assert await site.seen() == {"1": second if done else first}


@pytest.mark.parametrize("path", ["/vectors/upsert", "/vectors/delete"])
@pytest.mark.parametrize("done", [False, True])
async def test_words_that_come_and_go_at_a_time_are_not_waited_for_in_vain(
    site: Site, path: str, done: bool
) -> None:
    if site.sparse_name is None:
        pytest.skip("there is one index")
    index = site.object()
    await index.aupsert([Passage("1", "star", source="a")])
    site.lag(2)
    held = Held(path, done)
    site.server.indexes["words"].held.append(held)
    texts = ("river", "!?") if path == "/vectors/upsert" else ("!?", "river")
    async with during(held, index.aupsert([Passage("1", texts[0], source="a")])):
        await index.aupsert([Passage("1", texts[1], source="a")])
        await index.await_until_visible()
    await index.await_until_visible()


async def test_words_that_go_while_they_are_waited_for_are_not_waited_for_in_vain(site: Site) -> None:
    if site.sparse_name is None:
        pytest.skip("there is one index")
    index = site.object()
    site.lag(2)
    await index.aupsert([RIVER])
    held = Held("/vectors/fetch")
    site.server.indexes["words"].held.append(held)
    async with during(held, index.await_until_visible()):
        await index.aupsert([Passage("1", "!?", source="a")])


async def test_of_two_deletions_at_a_time_the_later_one_is_waited_for(site: Site) -> None:
    index = site.object(visible_within=0.01)
    await index.aupsert([RIVER])
    async with during(site.hold("/vectors/delete", done=True), index.adelete_source("a")):
        await index.aupsert([MOON])
        site.lag(NEVER)
        await index.adelete_source("a")
    with pytest.raises(NotYetVisible, match="1 writes"):
        await index.await_until_visible()


async def test_a_wait_is_not_cut_short_by_one_that_was_given_up(site: Site) -> None:
    index = site.object(visible_within=0.01)
    site.lag(NEVER)
    await index.aupsert([RIVER])
    held = site.hold("/query", done=False)
    early = asyncio.ensure_future(index.await_until_visible())
    assert await asyncio.to_thread(held.arrived.wait, 30)
    with pytest.raises(NotYetVisible):
        await index.await_until_visible()
    held.released.set()
    with pytest.raises(NotYetVisible):
        await early


async def test_a_wait_ends_although_writing_goes_on(site: Site) -> None:
    index = site.object()
    await index.aupsert([RIVER])
    async with during(site.hold("/query", done=False), index.await_until_visible()):
        site.lag(NEVER)
        await index.aupsert([Passage("2", "sun", source="b")])


async def test_a_deletion_that_fails_leaves_nothing_to_wait_for_in_vain(site: Site) -> None:
    index = site.object()
    site.lag(2)
    await index.aupsert([RIVER])
    site.stored.faults.append(Fault("/vectors/delete", status=401, done=True))
    with pytest.raises(Exception, match="401"):
        await index.adelete_source("a")
    await index.await_until_visible()
    assert await site.seen() == {}


async def test_a_write_that_fails_may_have_replaced_one_that_is_waited_for(site: Site) -> None:
    index = site.object()
    site.lag(2)
    await index.aupsert([RIVER])
    site.stored.faults.append(Fault("/vectors/upsert", status=401, done=True))
    with pytest.raises(PartialUpsert):
        await index.aupsert([MOON])
    await index.await_until_visible()
    assert (await site.seen())["1"] in ("river", "moon")


async def test_a_count_from_before_a_write_is_not_kept(site: Site) -> None:
    index = site.object()
    async with during(site.hold("/describe_index_stats", done=True), index.acount()):
        await index.aupsert([RIVER])
    assert await index.acount() == 1


def test_an_empty_namespace_is_counted_again(site: Site) -> None:
    reading, writing = site.object(), site.object()
    assert reading.count() == 0
    writing.upsert([RIVER])
    writing.wait_until_visible()
    assert reading.count() == 1
