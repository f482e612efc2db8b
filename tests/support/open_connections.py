"""HTTP clients whose connections can be counted."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpcore
import httpx


class CountedClients:
    """Two HTTP clients, one of each kind, which tell of their connections.

    What is entered asynchronously closes them at the end.
    """

    def __init__(self) -> None:
        self._transport, self._async_transport = httpx.HTTPTransport(), httpx.AsyncHTTPTransport()
        self.http = httpx.Client(transport=self._transport)
        self.async_http = httpx.AsyncClient(transport=self._async_transport)

    def in_use(self) -> int:
        """Connections on which a request is still under way."""
        return sum(not connection.is_idle() for connection in self._open())

    def idle(self) -> int:
        """Connections that are kept for the next request."""
        return sum(connection.is_idle() for connection in self._open())

    def _open(self) -> list[httpcore.HTTPConnection | httpcore.AsyncHTTPConnection]:
        sync, asynchronous = self._transport._pool, self._async_transport._pool
        assert isinstance(sync, httpcore.ConnectionPool)
        assert isinstance(asynchronous, httpcore.AsyncConnectionPool)
        connections = (*sync.connections, *asynchronous.connections)
        known = (httpcore.HTTPConnection, httpcore.AsyncHTTPConnection)
        return [one for one in connections if isinstance(one, known) and not one.is_closed()]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.http.close()
        await self.async_http.aclose()
