"""The log of what was done to the processes of the target, and the clock of the campaign."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessEvent:
    """Something that happened to a process of the target. `at`: seconds since the campaign began."""

    at: float
    replica: int
    says: str


class Journal:
    """The events of all processes, and the clock of the campaign."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.events: list[ProcessEvent] = []

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def note(self, replica: int, says: str) -> None:
        self.events.append(ProcessEvent(self.now, replica, says))
