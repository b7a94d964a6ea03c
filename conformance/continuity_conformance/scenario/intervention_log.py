"""InterventionLog: what a scenario did to the target, when, at which step, and by what. They only tell it; `interventions` does it.

Without them a transcript shows two equal requests with different answers, and nobody sees what happened in between.
"""

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Intervention:
    """One thing that was done. `how`: by which control; `proof`: what showed that it happened, where that is asked."""

    at: float
    number: str
    does: str
    how: str = ""
    proof: str = ""


class InterventionLog:
    """The interventions of one scenario, and its clock."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.interventions: list[Intervention] = []

    @property
    def elapsed(self) -> float:
        """How many seconds ago the scenario began."""
        return time.monotonic() - self._started

    def intervention(self, number: str, does: str, how: str = "") -> Intervention:
        """Note what is about to be done; how can be added when it is known."""
        note = Intervention(self.elapsed, number, does, how)
        self.interventions.append(note)
        return note
