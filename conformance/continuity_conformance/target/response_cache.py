"""Keeps count of the responses in the bounded cache of one server, so that no scenario loses a response because others store theirs.

A cache evicts its oldest responses. So two numbers together must fit: what was stored since the oldest running scenario began, by scenarios that are over
too, and what running scenarios may still store. Each scenario leases its number of responses before it begins.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

_SMALL: Final = 200
"""A cache for fewer responses is not shared with a check that stores hundreds."""


@dataclass(slots=True, eq=False)
class ResponseLease:
    """The responses of one scenario. `began` and `ended` count the leases of its cache."""

    responses: int
    began: int = 0
    ended: int = 0


class ResponseCache:
    """The cache of one server. `size` 0: it is not known, so it has no bound here."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self._clock = 0
        self._leases: list[ResponseLease] = []
        self._waiting: deque[tuple[ResponseLease, asyncio.Future[None]]] = deque()
        self.on_room: Callable[[], None] = _ignore
        """Called when there may be more room than before."""

    @property
    def is_small(self) -> bool:
        return 0 < self.size < _SMALL

    @asynccontextmanager
    async def lease(self, responses: int) -> AsyncIterator[None]:
        """Wait until so many responses fit, and keep room for them inside the block. First come, first served."""
        lease = await self.take(responses)
        try:
            yield
        finally:
            self.release(lease)

    async def take(self, responses: int) -> ResponseLease:
        """Wait until so many responses fit, and keep room for them until `release`."""
        return self.try_lease(responses) or await self._wait(ResponseLease(responses))

    def try_lease(self, responses: int) -> ResponseLease | None:
        """A lease if the responses fit now and nobody waits. More than the cache holds fit where nobody else needs it."""
        lease = ResponseLease(responses)
        if not self.size or not responses:
            return lease
        if self._waiting or not self._fits(responses):
            return None
        return self._admit(lease)

    def release(self, lease: ResponseLease) -> None:
        """The scenario is over. Its responses stay in the cache: they count as long as an older scenario runs."""
        if not lease.began:
            return
        lease.ended = self._tick()
        oldest = min((each.began for each in self._leases if not each.ended), default=self._clock)
        self._leases = [each for each in self._leases if not each.ended or each.ended > oldest]
        while self._waiting and self._fits(self._waiting[0][0].responses):
            waiting, admitted = self._waiting.popleft()
            self._admit(waiting)
            admitted.set_result(None)
        self.on_room()

    async def _wait(self, lease: ResponseLease) -> ResponseLease:
        admitted = asyncio.get_running_loop().create_future()
        place = (lease, admitted)
        self._waiting.append(place)
        try:
            await asyncio.shield(admitted)
        except asyncio.CancelledError:
            if not admitted.done():
                self._waiting.remove(place)
            self.release(lease)
            raise
        return lease

    def _fits(self, responses: int) -> bool:
        return not self._leases or sum(each.responses for each in self._leases) + responses <= self.size

    def _admit(self, lease: ResponseLease) -> ResponseLease:
        lease.began = self._tick()
        self._leases.append(lease)
        return lease

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def _ignore() -> None:
    """Nobody waits for room."""
