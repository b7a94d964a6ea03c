"""The time that a requirement uses: while at least one of its scenarios plays. Waiting for a place or for others does not count."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """`seconds`: how long at least one block of `running` was open and not paused."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._open = 0
        self._since = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside a block of `running`: one of its users waits."""
        self._add(-1)
        try:
            yield
        finally:
            self._add(1)

    def _add(self, change: int) -> None:
        now = time.monotonic()
        self.seconds += now - self._since if self._open else 0.0
        self._since = now
        self._open += change
