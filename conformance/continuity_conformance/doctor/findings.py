"""What the doctor found: sentences under a few topics, and the data that they are about. It knows neither HTTP nor a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.run.applicability import Prospect
from continuity_conformance.scenario.context import Target
from continuity_spec import Requirement


class Topic(StrEnum):
    """What is looked at, in this order."""

    REACH = "reach"
    API = "api"
    AUTH = "auth"
    HEADER = "header"
    SAYS = "says"
    OFFERS = "offers"
    MODEL = "model"
    CONTROLS = "controls"
    CLEANED = "cleaned"


class NoTurnError(ContinuityError):
    """The server is there, and a plain chat turn does not succeed on it: nothing could pass."""

    exit_code = 1


@dataclass(slots=True)
class Findings:
    """Filled step by step, so that what was found before a step failed is told too."""

    url: str
    said: list[tuple[Topic, str]] = field(default_factory=list)
    target: Target | None = None
    header_from: str = ""
    declared: bool = False
    """Whether options and offers stand in its capabilities."""
    slowest: float = 0.0
    prospects: Sequence[tuple[Requirement, Prospect, str]] = ()
    requests: int = 0
    seconds: float = 0.0
    left: list[str] = field(default_factory=list)
    """What was made and could not be taken away."""
    error: ContinuityError | None = None

    def say(self, topic: Topic, text: str) -> None:
        self.said.append((topic, text))

    @property
    def exit_code(self) -> int:
        return self.error.exit_code if self.error is not None else 0

    @property
    def missing(self) -> Mapping[str, list[str]]:
        """Why something cannot be tested, and which requirements that are: what helps most comes first."""
        reasons: dict[str, list[str]] = {}
        for requirement, prospect, reason in self.prospects:
            if prospect in {Prospect.NOT_TESTED, Prospect.REFUTABLE}:
                reasons.setdefault(reason, []).append(requirement.id)
        return dict(sorted(reasons.items(), key=lambda each: -len(each[1])))
