"""Calm scenarios spread over several servers of a target whose process uses one core at a time.

They are independent: each plays on whichever server has a free place. Random checks share what they find out, want the same processor, and play one after the
other on the first server, where the scenarios leave them half of the places if there are other servers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from continuity_conformance.stage import Stage


class _Server:
    """One of them, started when it is first needed."""

    def __init__(self, start: Callable[[], Awaitable[Stage]], stage: Stage | None = None) -> None:
        self._start = start
        self._stage = stage
        self._starting = asyncio.Lock()

    async def stage(self) -> Stage:
        async with self._starting:
            self._stage = self._stage or await self._start()
        return self._stage


class Spread:
    """The servers of calm scenarios: the one that was calibrated, and `servers` - 1 others."""

    def __init__(self, first: Stage, start: Callable[[], Awaitable[Stage]], servers: int, parallel: int) -> None:
        self._first = first
        self._random = asyncio.Lock()
        others = [_Server(start) for _ in range(servers - 1)]
        here = max(parallel // 2, 1) if others else parallel
        self._free: asyncio.Queue[_Server] = asyncio.Queue()
        for server in [*(others * parallel), *([_Server(start, first)] * here)]:
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
    async def lease_random(self) -> AsyncIterator[Stage]:
        """The first one, for a check that makes up its data."""
        async with self._random:
            yield self._first
