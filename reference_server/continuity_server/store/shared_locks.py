"""Locks that all processes on one database share, so that the turns of a session run one after the other in all of them.

A lock is one byte of a file beside the database, locked by the operating system: when a process ends, however it ends, its locks are free. Nothing is
ever written to the file. A database of another kind would have locks of its own here, such as advisory locks.
"""

import fcntl
import os
import tempfile
from collections.abc import Hashable
from contextlib import suppress
from hashlib import blake2b
from typing import Final

_PLACES: Final = 1 << 61
"""How many bytes of the file may be locked. So many that two names never have the same one."""
_NAME: Final = "-turns"


class SharedLocks:
    """The locks of one database. A database in memory has one process, which locks a file without a name."""

    def __init__(self, database: str) -> None:
        self._file = _opened(f"{database}{_NAME}") if database else _unnamed()
        self._next: set[Hashable] = set()

    def close(self) -> None:
        os.close(self._file)

    def take(self, name: Hashable, *, queue: bool) -> bool:
        """Take a lock, unless another process has it. One that waits calls this again, until it has the lock or leaves.

        `queue`: of the processes that wait for one lock, one is the next, which is a lock too. So a process with many turns does not keep the others waiting.
        """
        place = _place(name)
        if queue and name not in self._next:
            if not self._locked(place + 1):
                return False
            self._next.add(name)
        if not self._locked(place):
            return False
        if name in self._next:
            self._next.discard(name)
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place + 1)
        return True

    def leave(self, name: Hashable) -> None:
        """Give a lock back, or wait for it no longer."""
        self._next.discard(name)
        fcntl.lockf(self._file, fcntl.LOCK_UN, 2, _place(name))

    def _locked(self, place: int) -> bool:
        with suppress(BlockingIOError, PermissionError):
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            return True
        return False


def _opened(path: str) -> int:
    """Open the file. Where it cannot be made, the database cannot be written either, and there are no turns to keep apart."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return _unnamed()


def _unnamed() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _place(name: Hashable) -> int:
    """Return the even byte of a name; the odd one after it is that of whoever is the next."""
    return int.from_bytes(blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=8).digest()) % _PLACES * 2
