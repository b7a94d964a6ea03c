"""Calm scenarios spread over several servers of a target whose process uses one core at a time.

They are independent, so it does not matter which of the servers one plays on. Python checks share what they find out, and stay on the first.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from continuity_conformance.stage import Stage


class _Place:
    """One server: how many play on it or wait for it, and at most so many at once."""

    def __init__(self, start: Callable[[], Awaitable[Stage]], parallel: int, stage: Stage | None = None) -> None:
        self._start = start
        self._stage = stage
        self._starting = asyncio.Lock()
        self.here = 0
        self.places = asyncio.Semaphore(parallel)

    async def stage(self) -> Stage:
        """Start the server when it is first needed."""
        async with self._starting:
            self._stage = self._stage or await self._start()
        return self._stage


class Spread:
    """The servers of calm scenarios: the one that was calibrated, and `servers` - 1 others."""

    def __init__(self, first: Stage, start: Callable[[], Awaitable[Stage]], servers: int, parallel: int) -> None:
        self._places = [_Place(start, parallel, first), *(_Place(start, parallel) for _ in range(servers - 1))]

    @asynccontextmanager
    async def lease(self, *, first: bool) -> AsyncIterator[Stage]:
        """A stage to play on: the first one, or the one that fewest are at."""
        place = self._places[0] if first else min(self._places, key=lambda each: each.here)
        place.here += 1
        try:
            async with place.places:
                yield await place.stage()
        finally:
            place.here -= 1
