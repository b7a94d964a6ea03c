"""Restarts that are shared: one serves all scenarios of a server that wait for one.

Scenarios that need a restart and nothing worse play side by side on one server. It is restarted when each of them waits for it or is over, so
none is disturbed in the middle of a turn, and twenty restarts cost as much as one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.failure import Untested

_NOTHING_WORSE = frozenset({"kill", "break_store", "legacy", "evict-by-pressure"})


def can_share(controls: frozenset[str]) -> bool:
    """Whether a scenario with these controls disturbs others by restarts alone."""
    return "restart" in controls and not controls & _NOTHING_WORSE


class SharedRestarts:
    """The restarts of one server. `playing` counts those who must agree."""

    def __init__(self, restart: Callable[[], Awaitable[None]]) -> None:
        self._restart = restart
        self._playing = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._serving: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        self._playing += 1
        try:
            yield
        finally:
            self._playing -= 1
            self._serve_if_all_wait()

    async def restart(self) -> None:
        """Wait until everybody else waits too or is over; then the server is restarted once for all."""
        served = asyncio.get_running_loop().create_future()
        self._waiting.append(served)
        self._serve_if_all_wait()
        await served

    def _serve_if_all_wait(self) -> None:
        if self._waiting and len(self._waiting) == self._playing:
            waiting, self._waiting = self._waiting, []
            self._serving = asyncio.create_task(self._serve(waiting))

    async def _serve(self, waiting: list[asyncio.Future[None]]) -> None:
        try:
            await self._restart()
        except (ContinuityError, Untested) as trouble:
            for served in waiting:
                served.set_exception(trouble)
        else:
            for served in waiting:
                served.set_result(None)
