"""What all clients of a campaign share."""

from dataclasses import dataclass, field

from continuity_conformance.scenario.context import Context
from continuity_conformance.torture.audit.journal import Journal
from continuity_conformance.torture.probe import CampaignProbe
from continuity_conformance.torture.replica import Replica


@dataclass(slots=True)
class Counts:
    """What all clients together sent and got."""

    turns: int = 0
    answered: int = 0
    unanswered: int = 0
    refused: int = 0
    not_answered_with: dict[str, int] = field(default_factory=dict)
    """What clients got instead of an answer, and how often."""
    read_back: int = 0
    """How often turns were read back: what the model saw, and lists of stored messages."""
    compressions: int = 0
    responses: int = 0
    """How many of the answers were those of /v1/responses."""


@dataclass(frozen=True, slots=True)
class CampaignState:
    """The target, its model and its processes. `owners`: the conversation of every turn, by mark."""

    context: Context
    probe: CampaignProbe
    replicas: tuple[Replica, ...]
    journal: Journal
    counts: Counts
    owners: dict[str, str]
    compresses: bool = False
    """The target has a control that makes it compress."""
