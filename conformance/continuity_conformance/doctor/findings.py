"""What the doctor found: sentences, each with a topic, and the data behind them. Knows neither HTTP nor a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.run.applicability import Prospect
from continuity_conformance.scenario.context import Target
from continuity_spec import Requirement


class Topic(StrEnum):
    """The topics, in the order of the output."""

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
    """The server answers, but a plain chat turn fails, so no requirement could pass."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class ControlFinding:
    """A control: who provides it (`by`; empty if nobody does), how a target gets it, and the requirements that are not tested without it."""

    name: str
    by: str
    way: str
    untested: Sequence[str]


@dataclass(slots=True)
class Findings:
    """Each step of the survey adds to it, so that a failed survey still has the findings of the steps before."""

    url: str
    sentences: list[tuple[Topic, str]] = field(default_factory=list)
    target: Target | None = None
    header_from: str = ""
    ids: str = ""
    """The form of ids that the server demands, as a profile writes it."""
    declared: bool = False
    """The server's capabilities declare its options and offers."""
    slowest_seconds: float = 0.0
    controls: list[ControlFinding] = field(default_factory=list)
    prospects: Sequence[tuple[Requirement, Prospect, str]] = ()
    requests: int = 0
    seconds: float = 0.0
    left: list[str] = field(default_factory=list)
    """The sessions and responses that the doctor created and could not delete."""
    error: ContinuityError | None = None

    def add(self, topic: Topic, sentence: str) -> None:
        self.sentences.append((topic, sentence))

    @property
    def exit_code(self) -> int:
        return self.error.exit_code if self.error is not None else 0

    @property
    def missing(self) -> Mapping[str, list[str]]:
        """The reasons why requirements cannot be tested, with their ids. The reason with the most requirements comes first."""
        reasons: dict[str, list[str]] = {}
        for requirement, prospect, reason in self.prospects:
            if prospect in {Prospect.NOT_TESTED, Prospect.REFUTABLE}:
                reasons.setdefault(reason, []).append(requirement.id)
        return dict(sorted(reasons.items(), key=lambda each: -len(each[1])))
