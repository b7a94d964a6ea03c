"""One run of the suite against one target: the event loop in its thread, and the results as they are decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from continuity_conformance.verdicts import Result
from continuity_spec import Requirement


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What a report says about the target. Nothing secret in it."""

    name: str
    url: str
    header: str
    options: Mapping[str, str]
    offers: tuple[str, ...]
    observed: str  # "probe", "answers" or "nothing"


class Run:
    """`open()`, then `result(id)` for each requirement, then `close()`. Results come in any order and are waited for."""

    def __init__(self, target: str | None, profile: Path | None, requirements: Sequence[Requirement]) -> None: ...

    def open(self) -> None:
        """Start the loop thread, reach (or start) the target, calibrate, start all calm scenarios. Raises ContinuityError."""

    @property
    def facts(self) -> TargetFacts: ...

    def result(self, requirement_id: str) -> Result:
        """Wait for a requirement and give its result. A disturbing one starts only now."""

    def decided(self) -> Sequence[Result]:
        """What is decided so far, in no particular order (for a run that was stopped)."""

    def close(self) -> None:
        """Stop what was started. Safe to call twice, and after a failed open()."""


def reach(target: str | None, profile: Path | None) -> None:
    """Check quickly that the profile can be read and the target's address answers at all. Raises ContinuityError."""
