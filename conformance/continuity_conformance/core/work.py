"""What one play of a scenario has done so far: turns, other requests, and starts of servers.

The scheduler opens a `Work` for the task of a play. What that task does is counted there, whatever layer does it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final


@dataclass(slots=True)
class Count:
    """How often something was done, and the seconds of all of it."""

    number: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.number += 1
        self.seconds += seconds


@dataclass(slots=True)
class Work:
    """`began`: when the first request or start began. `planned`: how many requests there will be in all, where a check knows that."""

    turns: Count = field(default_factory=Count)
    others: Count = field(default_factory=Count)
    starts: Count = field(default_factory=Count)
    began: float | None = None
    planned: int = 0
    placed: bool = False
    phase: tuple[float, int] | None = None
    """When the requests that are planned now began, and how many there were before. A check may plan again, for what it does at another pace."""

    @property
    def requests(self) -> int:
        return self.turns.number + self.others.number

    def begin(self) -> None:
        self.began = self.began or time.monotonic()

    def plan(self, requests: int) -> None:
        """So many requests are still to come."""
        self.planned = self.requests + requests

    def begin_phase(self) -> None:
        """What is done from now on has a pace of its own."""
        self.phase = (time.monotonic(), self.requests)

    def phase_seconds(self, now: float) -> float | None:
        """How long the planned requests still take at the pace of this phase; None as long as nothing is known."""
        if self.phase is None or self.requests == self.phase[1]:
            return None
        since, before = self.phase
        return (now - since) / (self.requests - before) * max(0, self.planned - self.requests)

    def begin_planned(self) -> None:
        """What was planned begins, after it waited for a place. Only the first call counts."""
        if not self.placed:
            self.placed, self.began = True, time.monotonic()
            self.begin_phase()


_WORK: Final = ContextVar[Work | None]("_WORK", default=None)


def current_work() -> Work:
    """The work of this task. Outside of plays it is counted nowhere."""
    return _WORK.get() or Work()


@contextmanager
def counted_in(work: Work) -> Iterator[None]:
    """What this task and its children do inside the block is counted in `work`."""
    token = _WORK.set(work)
    try:
        yield
    finally:
        _WORK.reset(token)
