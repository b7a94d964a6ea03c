"""Shared restarts: one restart for all scenarios on a server that wait for one.

Scenarios that disturb a server only by restarts play in parallel on one server. The server restarts when each of them waits for a restart or has
finished, so no turn is interrupted, and twenty restarts take as long as one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.failure import Untested

_DISTURBING = frozenset({"kill", "break_store", "legacy", "replicas", "previous", "evict-by-pressure"})
"""The controls that disturb other scenarios in more ways than a restart."""


def can_share(controls: frozenset[str]) -> bool:
    """True for a scenario that disturbs others only by restarts."""
    return "restart" in controls and not controls & _DISTURBING


class SharedRestarts:
    """The restarts of one server. `playing` counts the scenarios that a restart waits for."""

    def __init__(self, restart: Callable[[], Awaitable[None]]) -> None:
        self._restart = restart
        self._playing = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        self._playing += 1
        try:
            yield
        finally:
            self._playing -= 1
            self._restart_if_all_wait()

    async def restart(self) -> None:
        """Wait until every other scenario waits too or has finished; then the server restarts once for all of them."""
        restarted = asyncio.get_running_loop().create_future()
        self._waiting.append(restarted)
        self._restart_if_all_wait()
        await restarted

    def _restart_if_all_wait(self) -> None:
        if self._waiting and len(self._waiting) == self._playing:
            waiting, self._waiting = self._waiting, []
            self._task = asyncio.create_task(self._restart_for(waiting))

    async def _restart_for(self, waiting: list[asyncio.Future[None]]) -> None:
        try:
            await self._restart()
        except (ContinuityError, Untested) as error:
            for restarted in waiting:
                restarted.set_exception(error)
        else:
            for restarted in waiting:
                restarted.set_result(None)


class PausingRestarts:
    """The shared restarts as one scenario uses them: `pause` is open while it waits for the others."""

    def __init__(self, restarts: SharedRestarts, pause: Callable[[], AbstractContextManager[None]]) -> None:
        self._restarts = restarts
        self._pause = pause

    async def restart(self) -> None:
        with self._pause():
            await self._restarts.restart()


AnyRestarts = SharedRestarts | PausingRestarts
