"""Locks: turns of one session run one after the other, in the order in which they came."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from continuity_server.rules import Rules

Held = AbstractAsyncContextManager[bool]
"""A lock that is held while its block lasts. It tells whether it had to wait: if not, nothing has happened since."""


class Locks:
    """A lock for each name that is in use."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._users: dict[Hashable, int] = {}

    def chain(self, owner: str, root: str) -> Held:
        """CONCUR-01, -03: turns of one chain of sessions wait for each other, and for no other turn."""
        return self._hold(("chain", owner, root))

    def slug(self, principal: str, slug: str) -> Held:
        """SLUG-12: turns of one slug wait for each other, so that its session is created once."""
        return self._hold(("slug", principal, slug))

    def idempotency_key(self, owner: str, key: str) -> Held:
        """ISOLATE-10: where nothing selects a session, turns with the same Idempotency-Key wait for each other."""
        return self._hold(("key", owner, key))

    @asynccontextmanager
    async def _hold(self, name: Hashable) -> AsyncIterator[bool]:
        self._rules.check_not_busy(busy=name in self._users)
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] = self._users.get(name, 0) + 1
        waits = lock.locked()
        try:
            async with lock:
                yield waits
        finally:
            self._leave(name)

    def _leave(self, name: Hashable) -> None:
        self._users[name] -= 1
        if not self._users[name]:
            del self._users[name], self._locks[name]
