"""Plays one scenario on a given server and returns its evidence, and logs what it does meanwhile. Where and when it plays is the scheduler's matter.

A failure that may be the kit's fault (`scenario.doubt`) is played again, once.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from continuity_conformance.checks.registry import CAMPAIGN_CHECKS, CHECKS, CONCLUDING, DISTURBING, IN_SEQUENCES, SEEDED
from continuity_conformance.core.budget import DEFAULT_EXAMPLES, Budget
from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.failure import Untested
from continuity_conformance.core.verdicts import Evidence, Verdict
from continuity_conformance.core.work import Work, counted_in
from continuity_conformance.results.outcome import Played, Scene, outcome
from continuity_conformance.results.redaction import Redactor
from continuity_conformance.run.life_check import LifeCheck
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.doubt import Doubt, doubt
from continuity_conformance.scenario.fill_context import Room
from continuity_conformance.target.server import output_of
from continuity_conformance.target.shared_restart import can_share
from continuity_spec import Requirement, Scenario

T = TypeVar("T")
_TRIES: Final = 4
"""How often a scenario is tried where its fillers made the target compress too early; each try uses fewer of them."""
_CONFIRMED: Final = 3
"""After so many repetitions that failed in the same way again, and none that helped, the target itself does it: no more are played."""


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


class Stopwatch:
    """The time that a requirement uses: `seconds` in which at least one of its scenarios plays. Waiting for a place or for others does not count."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._open = 0
        self._since = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside a block of `running`: one of its users waits."""
        self._add(-1)
        try:
            yield
        finally:
            self._add(1)

    def _add(self, change: int) -> None:
        now = time.monotonic()
        self.seconds += now - self._since if self._open else 0.0
        self._since = now
        self._open += change


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario of a requirement, with one of its examples. `watch` measures the time that the requirement uses."""

    requirement: Requirement
    scenario: Scenario
    example: Mapping[str, Any]
    watch: Stopwatch

    @property
    def play(self) -> Callable[[Dialogue], Awaitable[None]]:
        check = self.requirement.check
        return CHECKS[check] if check is not None else lambda dialogue: dialogue.play(self.scenario.steps)

    @property
    def seeded(self) -> bool:
        return self.requirement.check in SEEDED


class ScenarioPlayer:
    """`played`: every dialogue of the run, for what is judged on all answers."""

    def __init__(self, target: str, redactor: Redactor, budget: Budget) -> None:
        self.played: list[Played] = []
        self._target = target
        self._redactor = redactor
        self._budget = budget
        self._in_vain: Counter[Doubt] = Counter()
        self._helped: set[Doubt] = set()
        self._life = LifeCheck()

    async def play(self, run: ScenarioRun, context: Context, *, shared: bool) -> tuple[Evidence, Doubt | None]:
        """Play, and say why a failure may be the kit's fault. `shared`: other scenarios play on the same server."""
        return await self._play(run, context, shared=shared, again=None)

    async def play_again(self, run: ScenarioRun, context: Context, first: Evidence, why: Doubt) -> Evidence:
        """Play a second time, on a server where nothing else plays. The result counts, whatever it is."""
        if self._in_vain[why] >= _CONFIRMED and why not in self._helped:
            return first
        # Checks with generated data share one campaign: it is played again too.
        fresh = replace(context, shared={"again": True}) if run.seeded else context
        evidence, doubt_again = await self._play(run, fresh, shared=False, again=why)
        if doubt_again is why:
            self._in_vain[why] += 1
        else:
            self._helped.add(why)
        return evidence

    async def _play(
        self, run: ScenarioRun, context: Context, *, shared: bool, again: Doubt | None
    ) -> tuple[Evidence, Doubt | None]:
        """Start again with fresh variables where the fillers made the target compress too early."""
        room: Room = {}
        with run.watch.running():
            for _ in range(_TRIES):
                known, turns_before = room.copy(), context.turns_sent
                dialogue = Dialogue(context, run.example, room)
                if again is not None:
                    dialogue.record.log.intervention("", "played again alone", f"because the first time {again}")
                evidence = await self._play_once(run, dialogue)
                if room == known:
                    break
        failed = evidence.outcome is Verdict.FAIL
        if shared and (failed or evidence.outcome is Verdict.ERROR):
            await self._must_live(dialogue, run.requirement.id)
        return evidence, doubt(dialogue.record, turns_before, shared=shared) if failed else None

    async def _must_live(self, dialogue: Dialogue, requirement: str) -> None:
        """After a lost connection: raise UnreachableError if the target is dead. Then nothing more can be said about it."""
        if any(exchange.answer.error and not exchange.answer.status for exchange in dialogue.exchanges):
            await self._life.must_live(dialogue.context.server, requirement, dialogue.context.transport.silent)

    async def _play_once(self, run: ScenarioRun, dialogue: Dialogue) -> Evidence:
        budget = self._budget if run.seeded else None
        if budget is not None and budget.lowered:
            dialogue.untested.append(
                f"only {budget.examples} of {DEFAULT_EXAMPLES} examples were tried (limits.examples): enough to fail, not to pass"
            )
        output = output_of(dialogue.context.server)
        example = dialogue.description
        scene = Scene(run.requirement, run.scenario.name, example, self._target, self._redactor, budget, output)
        try:
            evidence = await outcome(scene, dialogue, run.play(dialogue))
        finally:
            await _end(dialogue)
        self.played.append(Played(dialogue, evidence, run.requirement.id))
        return evidence


async def _end(dialogue: Dialogue) -> None:
    try:
        await dialogue.leave()
    except (ContinuityError, Untested) as reason:
        dialogue.untested.append(str(reason))
