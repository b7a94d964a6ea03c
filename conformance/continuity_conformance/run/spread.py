"""Calm scenarios spread over several servers of a target whose process uses one core at a time.

They are independent: each plays on whichever server has a free place. Checks that make up their data send thousands of requests, one after the other: those that share
a campaign on the first server, where the scenarios leave them half of the places if there are others, the rest on the last one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from continuity_conformance.scenario.context import Context


class _Server:
    """One of them, started when it is first needed."""

    def __init__(self, start: Callable[[], Awaitable[Context]], context: Context | None = None) -> None:
        self._start = start
        self._context = context
        self._starting = asyncio.Lock()
        self.random = asyncio.Lock()

    async def context(self) -> Context:
        async with self._starting:
            self._context = self._context or await self._start()
        return self._context


class Spread:
    """The servers of calm scenarios: the one that was calibrated, and `servers` - 1 others."""

    def __init__(self, first: Context, start: Callable[[], Awaitable[Context]], servers: int, parallel: int) -> None:
        self._servers = [_Server(start, first), *(_Server(start) for _ in range(servers - 1))]
        others = self._servers[1:]
        here = max(parallel // 2, 1) if others else parallel
        self._free: asyncio.Queue[_Server] = asyncio.Queue()
        for server in [*(others * parallel), *(self._servers[:1] * here)]:
            self._free.put_nowait(server)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Context]:
        """A context to play on, as soon as there is a free place."""
        server = await self._free.get()
        try:
            yield await server.context()
        finally:
            self._free.put_nowait(server)

    @asynccontextmanager
    async def lease_random(self, *, sharing: bool) -> AsyncIterator[Context]:
        """A context for a check that makes up its data, when it is its turn."""
        server = self._servers[0 if sharing else -1]
        async with server.random:
            yield await server.context()
