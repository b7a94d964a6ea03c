"""Which server a scenario plays on.

Calm scenarios share servers (`SharedServers`). A disturbing one (restart, kill, broken store) has a server to itself (`ExclusiveServers`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from continuity_conformance.scenario.context import Context
from continuity_conformance.target.server import Server


class ExclusiveServers:
    """At most `size` servers, each started when it is first needed. One that works again after a scenario serves the next."""

    def __init__(self, start: Callable[[], Awaitable[Server]], size: int) -> None:
        self._start = start
        self._places = asyncio.Semaphore(size)
        self._idle: list[Server] = []

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Server]:
        """A server for one scenario alone."""
        async with self._places:
            server = self._idle.pop() if self._idle else await self._start()
            try:
                yield server
            except BaseException:
                await server.stop()
                raise
            if server.broken or not server.runs:
                await server.stop()
            else:
                self._idle.append(server)


class _SharedServer:
    """One of the shared servers, started when it is first needed."""

    def __init__(self, start: Callable[[], Awaitable[Context]], context: Context | None = None) -> None:
        self._start = start
        self._context = context
        self._starting = asyncio.Lock()
        self.random = asyncio.Lock()

    async def context(self) -> Context:
        async with self._starting:
            self._context = self._context or await self._start()
        return self._context


class SharedServers:
    """The servers of calm scenarios: the calibrated one and `servers` - 1 others, for a target that uses only one core.

    A scenario plays on whichever server has a free place. Checks that generate their data send thousands of requests, one after the other. Those
    that share a campaign use the first server, where scenarios leave them half of the places if there are other servers; the rest use the last one.
    """

    def __init__(self, first: Context, start: Callable[[], Awaitable[Context]], servers: int, parallel: int) -> None:
        self._servers = [_SharedServer(start, first), *(_SharedServer(start) for _ in range(servers - 1))]
        others = self._servers[1:]
        places = max(parallel // 2, 1) if others else parallel
        self._free: asyncio.Queue[_SharedServer] = asyncio.Queue()
        for server in [*(others * parallel), *(self._servers[:1] * places)]:
            self._free.put_nowait(server)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Context]:
        """A context to play on, as soon as a place is free."""
        server = await self._free.get()
        try:
            yield await server.context()
        finally:
            self._free.put_nowait(server)

    @asynccontextmanager
    async def lease_random(self, *, sharing: bool) -> AsyncIterator[Context]:
        """A context for a check that generates its data; these checks use a server one at a time."""
        server = self._servers[0 if sharing else -1]
        async with server.random:
            yield await server.context()
