"""The plays of a run: each scenario with one of its examples, when it began and ended, and how much it has done.

Plays of one group have the same way to run: side by side, one after the other, or on servers of their own.
"""

import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from continuity_conformance.checks.registry import CAMPAIGN_CHECKS, CONCLUDING, DISTURBING, IN_SEQUENCES, SEEDED
from continuity_conformance.core.budget import DEFAULT_EXAMPLES
from continuity_conformance.core.work import Work, counted_in
from continuity_conformance.target.shared_restart import can_share
from continuity_spec import Requirement, Scenario

T = TypeVar("T")


class Group(StrEnum):
    """Calm plays share servers; those of the campaign and of the properties play one after the other. The others disturb.

    They play on a server that restarts for all of them, or alone on a server. `AFTER`: alone after the calm ones, on a target that the kit does not start.
    """

    CALM = "calm"
    SEQUENCES = "sequences"
    CAMPAIGN = "campaign"
    PROPERTIES = "properties"
    RESTARTED = "restarted"
    RESTARTED_SEQUENCES = "restarted sequences"
    ALONE = "alone"
    AFTER = "after"
    LAST = "last"


_CALM_CHECKS: Final = (
    (Group.CAMPAIGN, CAMPAIGN_CHECKS),
    (Group.SEQUENCES, IN_SEQUENCES),
    (Group.PROPERTIES, SEEDED),
    (Group.LAST, CONCLUDING),
)


def group_of(requirement: Requirement, scenario: Scenario, *, started: bool) -> Group:
    """The group of a scenario. `started`: the kit starts the target."""
    check = requirement.check
    if not (scenario.disturbing or check in DISTURBING):
        return next((group for group, checks in _CALM_CHECKS if check in checks), Group.CALM)
    if not started:
        return Group.AFTER
    if check in IN_SEQUENCES:
        return Group.RESTARTED_SEQUENCES
    return Group.RESTARTED if can_share(scenario.controls) else Group.ALONE


@dataclass(slots=True)
class ScenarioPlay:
    """One play of a scenario. `ended`: None while it waits or plays."""

    requirement: str
    group: Group
    work: Work = field(default_factory=Work)
    ended: float | None = None


class PlayLog:
    """All plays of a run, in the order in which they were planned. The event loop adds and changes them; other threads only read.

    `examples`: how many are generated for each property. `at_once`: how many generated requests are sent at the same time. `before`: what was done before
    the first play, which is to start the target and to calibrate.
    """

    def __init__(self, examples: int = DEFAULT_EXAMPLES, at_once: int = 1) -> None:
        self.examples = examples
        self.at_once = at_once
        self.before = Work()
        self._plays: list[ScenarioPlay] = []

    def __iter__(self) -> Iterator[ScenarioPlay]:
        return iter(tuple(self._plays))

    def add(self, play: ScenarioPlay) -> ScenarioPlay:
        self._plays.append(play)
        return play


async def noted(play: ScenarioPlay, playing: Awaitable[T]) -> T:
    """Note what is done, and when it ends."""
    with counted_in(play.work):
        try:
            return await playing
        finally:
            play.ended = time.monotonic()
