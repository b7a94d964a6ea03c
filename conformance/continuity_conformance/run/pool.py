"""Servers for disturbing scenarios: each plays alone on one, and a few run side by side.

A server that was put right again serves the next scenario; one that was not is thrown away.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from continuity_conformance.target.server import Server


class Pool:
    """At most `size` servers, started when they are first needed."""

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
