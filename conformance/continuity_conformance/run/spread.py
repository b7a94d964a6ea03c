"""Calm scenarios spread over several servers of a target whose process uses one core at a time.

They are independent: each plays on whichever server has a free place. Checks that make up their data send thousands of requests, one after the other: those that share
a campaign on the first server, where the scenarios leave them half of the places if there are others, the rest on the last one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from continuity_conformance.scenario.context import Stage


class _Server:
    """One of them, started when it is first needed."""

    def __init__(self, start: Callable[[], Awaitable[Stage]], stage: Stage | None = None) -> None:
        self._start = start
        self._stage = stage
        self._starting = asyncio.Lock()
        self.random = asyncio.Lock()

    async def stage(self) -> Stage:
        async with self._starting:
            self._stage = self._stage or await self._start()
        return self._stage


class Spread:
    """The servers of calm scenarios: the one that was calibrated, and `servers` - 1 others."""

    def __init__(self, first: Stage, start: Callable[[], Awaitable[Stage]], servers: int, parallel: int) -> None:
        self._servers = [_Server(start, first), *(_Server(start) for _ in range(servers - 1))]
        others = self._servers[1:]
        here = max(parallel // 2, 1) if others else parallel
        self._free: asyncio.Queue[_Server] = asyncio.Queue()
        for server in [*(others * parallel), *(self._servers[:1] * here)]:
            self._free.put_nowait(server)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Stage]:
        """A stage to play on, as soon as there is a free place."""
        server = await self._free.get()
        try:
            yield await server.stage()
        finally:
            self._free.put_nowait(server)

    @asynccontextmanager
    async def lease_random(self, *, sharing: bool) -> AsyncIterator[Stage]:
        """A stage for a check that makes up its data, when it is its turn."""
        server = self._servers[0 if sharing else -1]
        async with server.random:
            yield await server.stage()
