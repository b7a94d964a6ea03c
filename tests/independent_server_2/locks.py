"""First come, first served locks by name."""
import asyncio

from config import bug
from errors import busy


class Locks:
    def __init__(self, reject):
        self.reject, self.d = reject, {}

    def hold(self):
        return Held(self)


class Entry:
    def __init__(self):
        self.lock, self.users = asyncio.Lock(), 0


class Held:
    """The locks of one request."""

    def __init__(self, locks):
        self.locks, self.keys = locks, {}

    async def take(self, key, wait=False):
        if key in self.keys:
            return
        d = self.locks.d
        e = d.get(key)
        if e is None:
            e = d[key] = Entry()
            if bug('lock-prune') and len(d) > 64:
                del d[next(iter(d))]
        elif self.locks.reject and not wait:
            raise busy()
        e.users += 1
        try:
            await e.lock.acquire()
        except BaseException:
            self._leave(key, e)
            raise
        self.keys[key] = e

    def _leave(self, key, e):
        e.users -= 1
        if bug('lock-prune'):
            return                     # kept for the next turn; the oldest go first
        if self.locks.d.get(key) is e and (e.users == 0 or bug('lock-pop')):
            del self.locks.d[key]

    def drop(self, key):
        e = self.keys.pop(key)
        e.lock.release()
        self._leave(key, e)

    def free(self):
        for key in reversed(list(self.keys)):
            self.drop(key)
