"""The log of interventions: what a scenario did to the target, when, in which step and how.

Without it a transcript would show two equal requests with different answers, and not what happened in between.
"""

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Intervention:
    """One intervention. `how`: by which control; `proof`: what showed that it really happened, where that is checked."""

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
        """Seconds since the scenario began."""
        return time.monotonic() - self._started

    def intervention(self, number: str, does: str, how: str = "") -> Intervention:
        """Log an intervention before it is done; `how` may be added later."""
        note = Intervention(self.elapsed, number, does, how)
        self.interventions.append(note)
        return note
