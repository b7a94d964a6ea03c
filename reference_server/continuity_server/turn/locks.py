"""Locks: turns of one session run one after the other, in the order in which they came, also if several processes share the database."""

import asyncio
from collections.abc import Hashable
from contextlib import AbstractAsyncContextManager
from typing import Final

from continuity_server.rules import Rules
from continuity_server.store.interface import TurnLocks

_LOOK_SECONDS: Final = 0.002
"""How often a turn looks whether the other process is done with the session. It is a system call, and a turn takes far longer."""

Held = AbstractAsyncContextManager[bool]
"""A lock that is held while its block lasts. It tells whether it had to wait: if not, nothing has happened in this process since."""


class Locks:
    """A lock for each name that is in use."""

    def __init__(self, rules: Rules, shared: TurnLocks) -> None:
        self._rules = rules
        self._shared = shared
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._users: dict[Hashable, int] = {}

    def chain(self, owner: str, root: str) -> Held:
        """CONCUR-01, -03: turns of one chain of sessions wait for each other, and for no other turn."""
        return _HeldLock(self, ("chain", owner, root))

    def slug(self, principal: str, slug: str) -> Held:
        """SLUG-12: turns of one slug wait for each other, so that its session is created once."""
        return _HeldLock(self, ("slug", principal, slug))

    def idempotency_key(self, owner: str, key: str) -> Held:
        """ISOLATE-10: where nothing selects a session, turns with the same Idempotency-Key wait for each other."""
        return _HeldLock(self, ("key", owner, key))

    async def enter(self, name: Hashable) -> bool:
        """Wait for a lock, and tell whether it had to be waited for."""
        self._rules.check_not_busy(busy=name in self._users)
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] = self._users.get(name, 0) + 1
        waits = lock.locked()
        try:
            await lock.acquire()
        except asyncio.CancelledError:
            self._forget(name)
            raise
        try:
            return await self._waits_for_others(name, queue=waits) or waits
        except BaseException:
            self.leave(name)
            raise

    async def _waits_for_others(self, name: Hashable, *, queue: bool) -> bool:
        """CONCUR-06: wait until no other process has the lock, and tell whether one had it. A turn that waited here lets those in that wait there."""
        waits = False
        while not self._shared.take(name, queue=queue or waits):
            self._rules.check_not_busy(busy=True)
            waits = True
            await asyncio.sleep(_LOOK_SECONDS)
        return waits

    def leave(self, name: Hashable) -> None:
        try:
            self._shared.leave(name)
        finally:
            self._locks[name].release()
            self._forget(name)

    def _forget(self, name: Hashable) -> None:
        self._users[name] -= 1
        if not self._users[name]:
            del self._users[name], self._locks[name]


class _HeldLock(Held):
    """One lock, held. A turn has up to two of them, and a generator would take three times as long."""

    def __init__(self, locks: Locks, name: Hashable) -> None:
        self._locks = locks
        self._name = name

    async def __aenter__(self) -> bool:
        return await self._locks.enter(self._name)

    async def __aexit__(self, *_: object) -> None:
        self._locks.leave(self._name)
