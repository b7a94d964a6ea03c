"""The result of a campaign, and torture.json."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from continuity_conformance.core.errors import KitError
from continuity_conformance.core.text import visible
from continuity_conformance.scenario.context import Target
from continuity_conformance.torture.audit.history import MEANINGS, FoundViolation, Violation
from continuity_conformance.torture.audit.journal import Journal
from continuity_conformance.torture.audit.timeline import TimelineEntry, timeline
from continuity_conformance.torture.campaign import Plan, Progress
from continuity_conformance.torture.conversation import Conversation
from continuity_conformance.torture.state import Counts

FILE: Final = "torture.json"
CONFORMANT: Final = 0
NOT_CONFORMANT: Final = 1
INCOMPLETE: Final = 5
_DRAWN: Final = 20
"""Of many violations so many have a timeline."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A violation as it is reported."""

    violation: str
    meaning: str
    requirement: str
    conversation: str
    says: str
    at: float
    calm: bool
    """It showed without any kill."""
    timeline: tuple[TimelineEntry, ...]


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """Everything that is worth keeping of a campaign. `untested`: why nothing could be audited; `not_done`: moments that never came."""

    target: str
    plan: Plan
    seconds: float
    kills: dict[str, int]
    terminations: int
    pauses: int
    counts: Counts
    violations: tuple[Reported, ...]
    untested: str
    not_done: tuple[str, ...]
    not_read_at_the_end: int
    stopped: bool

    @classmethod
    def of(  # noqa: PLR0913, PLR0917 - a campaign has all of these
        cls, plan: Plan, progress: Progress, counts: Counts, journal: Journal, target: Target,
        moments: Sequence[str], untested: str, left_out: Sequence[str],
    ) -> "CampaignResult":  # fmt: skip
        reported = [_reported(*found, journal, drawn=k < _DRAWN) for k, found in enumerate(progress.findings)]
        missing = [f"{moment}: it did not come about" for moment in moments if not progress.moments[moment]]
        missing += left_out
        return cls(
            target.profile.name,
            plan,
            round(journal.now, 1),
            {str(moment): count for moment, count in progress.moments.items()},
            progress.terminations,
            progress.pauses,
            counts,
            tuple(reported),
            untested,
            tuple(missing),
            progress.not_read_at_the_end,
            progress.stopped,
        )

    @property
    def killed(self) -> int:
        return sum(self.kills.values())

    @property
    def verdict(self) -> str:
        if self.violations:
            return "not conformant"
        return "incomplete" if self.incomplete else "no violation"

    @property
    def incomplete(self) -> str:
        """Why a campaign without a violation says less than was asked for; empty if it says all of it."""
        if self.untested:
            return self.untested
        if self.killed < self.plan.kills:
            return f"{self.killed} of {self.plan.kills} kills, because {self._why_fewer}"
        return "" if self.counts.answered and self.counts.read_back else "no turn was answered and read back"

    @property
    def _why_fewer(self) -> str:
        if self.stopped:
            return "it was stopped"
        if any(each.violation == Violation.NOT_STARTED for each in self.violations):
            return "the target did not start any more"
        return (
            "it ended with the first violation" if self.violations and self.plan.stop_at_first else "the time was over"
        )

    @property
    def exit_code(self) -> int:
        if self.violations:
            return NOT_CONFORMANT
        return INCOMPLETE if self.incomplete else CONFORMANT

    def as_json(self) -> dict[str, Any]:
        return {
            "format": "continuity torture 1",
            "verdict": self.verdict,
            "incomplete": self.incomplete,
            **asdict(self),
        }


def _reported(finding: FoundViolation, conversation: Conversation, journal: Journal, *, drawn: bool) -> Reported:
    entries = timeline(finding, conversation.history(), journal.events) if drawn else []
    return Reported(
        str(finding.violation),
        MEANINGS[finding.violation],
        finding.requirement,
        finding.conversation,
        f"without any kill: {finding.says}" if finding.calm else finding.says,
        round(finding.at, 3),
        finding.calm,
        tuple(entries),
    )


def write(result: CampaignResult, folder: Path) -> Path:
    """Write torture.json. What a target said may contain anything, so it is made safe to show."""
    file = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(visible(result.as_json()), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise KitError(
            f"The result cannot be written: {error.strerror}.", where=str(file), do="Name another folder with --report."
        ) from None
    return file
