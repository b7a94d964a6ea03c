"""Locks: turns of one session run one after the other, in the order in which they came. It knows names, not sessions."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from continuity_server.rules.error import Case, Refusal


class Locks:
    """A lock for each name that is in use."""

    def __init__(self, *, reject: bool, retry_after: int | None) -> None:
        self._reject = reject
        self._retry_after = retry_after
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._users: dict[Hashable, int] = {}

    @asynccontextmanager
    async def hold(self, name: Hashable) -> AsyncIterator[None]:
        """CONCUR-01, -05: wait for one's turn (serialize), or be told when to come again (reject)."""
        if self._reject and name in self._users:
            message = "Another turn of this session is running. Try again when it is answered."
            raise Refusal(Case.SESSION_BUSY, message, retry_after=self._retry_after)
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] = self._users.get(name, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._leave(name)

    def _leave(self, name: Hashable) -> None:
        self._users[name] -= 1
        if not self._users[name]:
            del self._users[name], self._locks[name]
