"""A thread beside a run: it keeps results.json up to date and refreshes what the terminal shows.

It has a thread of its own because pytest waits and the event loop plays. It only reads the ledger: nothing here changes a result.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.verdicts import Result
from continuity_conformance.results import write as results
from continuity_conformance.results.ledger import Ledger

_TICK: Final = 0.25
_WRITE_EVERY: Final = 1.0
_SHARE: Final = 20
"""Writing takes at most one part in this many of the time: a large report must not slow down the run."""


class Listener(Protocol):
    """Called at every tick, in the heartbeat's thread, and once more at the end."""

    def tick(self, decided: Sequence[Result]) -> None: ...


class Heartbeat:
    """`start` it when the run is open, `stop` it before the run is closed."""

    def __init__(self, ledger: Ledger, listeners: Sequence[Listener]) -> None:
        self._ledger = ledger
        self._listeners = listeners
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="continuity heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_TICK)
            decided = self._ledger.decided()
            for listener in self._listeners:
                listener.tick(decided)


class InterimResults:
    """Writes results.json during the run, in case that nobody can write it at the end."""

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self._ledger = ledger
        self._folder = folder
        self._written = 0
        self._next = time.monotonic() + _WRITE_EVERY

    def tick(self, decided: Sequence[Result]) -> None:
        began = time.monotonic()
        if len(decided) == self._written or began < self._next:
            return
        # If it cannot be written, the last file stays. The end of the run reports the reason.
        with suppress(ContinuityError):
            results.write(self._ledger.so_far(), self._folder)
        took = time.monotonic() - began
        self._written = len(decided)
        self._next = time.monotonic() + max(_WRITE_EVERY, took * _SHARE)
