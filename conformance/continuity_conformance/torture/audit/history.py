"""What is known about one conversation of a campaign: the turns that clients sent, and what was read back. Nothing here knows HTTP or a process.

All times are seconds since the campaign began. A turn is named by its mark.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

OF_THE_MODEL: Final = "the model"
OF_THE_MESSAGES: Final = "the stored messages"
Source = Literal["the model", "the stored messages"]
NO_ANSWER: Final = " (no answer)"


class TurnOutcome(StrEnum):
    """What a client knows about a turn that it sent."""

    ANSWERED = "answered"
    UNANSWERED = "unanswered"
    """No complete answer came: the turn may be stored as a whole, or not at all."""
    REFUSED = "refused"
    """Answered with 4xx: it must not be stored."""


@dataclass(frozen=True, slots=True)
class SentTurn:
    """A turn that a client sent. `ended`: since when it cannot change anything any more; infinite while that is unknown."""

    mark: str
    sent: float
    ended: float = math.inf
    outcome: TurnOutcome = TurnOutcome.UNANSWERED
    may_stay: bool = True
    """False for an unanswered turn that later turns do not follow: they continue from the response before it."""
    sends: int = 1
    """How often the client sent it. More than once only with an Idempotency-Key."""
    status: str = ""
    """What the client got instead of an answer."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The turns of a conversation as they were read back.

    `seen` has the mark of each whole turn, in order; a part of a turn is a mark with words, such as `1a2b3c4d (no answer)`. `by` is the mark of the turn that
    made the model see this, which then comes last. `since` and `at`: when it was asked for, and when it was there.
    """

    source: Source
    since: float
    at: float
    seen: tuple[str, ...]
    by: str = ""
    summarised: frozenset[str] = frozenset()
    session: str = ""

    def has(self, mark: str) -> bool:
        """Whether the whole turn is there, verbatim or in a summary."""
        return mark in self.seen or mark in self.summarised


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """Whether the response of a turn could be fetched."""

    mark: str
    at: float
    there: bool


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A client got an answer that is not the model's answer to its turn. `says`: what it got."""

    mark: str
    at: float
    says: str


@dataclass(frozen=True, slots=True)
class History:
    """One conversation. `stuck`: why it could not be continued, with the time; None if it could."""

    name: str
    kind: str
    turns: tuple[SentTurn, ...]
    observations: tuple[Observation, ...] = ()
    responses: tuple[FetchedResponse, ...] = ()
    wrong_answers: tuple[WrongAnswer, ...] = ()
    compressed: bool = False
    """The target was asked to compress it, or fills its context: its session may rotate."""
    stuck: tuple[float, str] | None = None

    def turn(self, mark: str) -> SentTurn | None:
        return next((turn for turn in self.turns if turn.mark == mark), None)


class Violation(StrEnum):
    """What a campaign can find, and what it means."""

    LOST = "lost"
    DOUBLED = "doubled"
    REORDERED = "out of order"
    PARTIAL = "partial"
    FOREIGN = "foreign"
    FORKED = "forked"
    REVIVED = "revived"
    RERAN = "run again"
    REFUSED_STORED = "refused and stored"
    STUCK = "stuck"
    NOT_STARTED = "does not start"


MEANINGS: Final[Mapping[Violation, str]] = {
    Violation.LOST: "a turn that was answered, or was read back before, is gone",
    Violation.DOUBLED: "a turn is there more than once",
    Violation.REORDERED: "turns are not in the order in which they were answered",
    Violation.PARTIAL: "only a part of a turn is stored",
    Violation.FOREIGN: "a turn or an answer of another conversation is there",
    Violation.FORKED: "one conversation goes on as two",
    Violation.REVIVED: "an unanswered turn that was not there appears later",
    Violation.RERAN: "the model was asked for a turn again, and no client had sent it again",
    Violation.REFUSED_STORED: "a turn that was refused is stored",
    Violation.STUCK: "a conversation cannot be continued after a kill",
    Violation.NOT_STARTED: "the target does not start after a kill",
}
REQUIREMENTS: Final[Mapping[Violation, str]] = {
    Violation.LOST: "DURABLE-02",
    Violation.DOUBLED: "DURABLE-04",
    Violation.REORDERED: "CONCUR-01",
    Violation.PARTIAL: "DURABLE-03",
    Violation.FOREIGN: "ISOLATE-01",
    Violation.FORKED: "DURABLE-04",
    Violation.REVIVED: "DURABLE-03",
    Violation.RERAN: "DURABLE-03",
    Violation.REFUSED_STORED: "HISTORY-14",
    Violation.STUCK: "DURABLE-03",
    Violation.NOT_STARTED: "DURABLE-03",
}
"""The requirement that a violation breaks."""


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """One violation in one conversation. `marks`: the turns that it is about. `at`: when it showed."""

    violation: Violation
    conversation: str
    says: str
    at: float
    marks: tuple[str, ...] = field(default=())
    calm: bool = False
    """It showed without any kill."""

    @property
    def requirement(self) -> str:
        """The requirement that it breaks. What is wrong without a kill is no matter of DURABLE."""
        if not self.calm:
            return REQUIREMENTS[self.violation]
        return "CONCUR-01" if "share" in self.conversation else "HISTORY-02"
