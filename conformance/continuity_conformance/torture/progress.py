"""How far a campaign is: one line on a terminal, which is overwritten; elsewhere a line every ten seconds."""

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from continuity_conformance.terminal.progress import LiveLine, duration

if TYPE_CHECKING:  # the stage plays and this only looks
    from continuity_conformance.torture.stage import Stage

_TICK: Final = 0.25
_PLAIN_EVERY: Final = 10.0
_ESTIMATE_AFTER: Final = 3
_A_READ: Final = 0.02
"""Seconds that the last reading of a conversation takes, until better is known."""


class Display:
    """Shows the progress until it is cancelled, and each violation when it is found."""

    def __init__(self) -> None:
        self._line = LiveLine(sys.stdout)
        self._shown = 0
        self._next = 0.0

    async def show(self, stage: "Stage") -> None:
        try:
            while True:
                self._tick(stage)
                await asyncio.sleep(_TICK)
        finally:
            self._line.erase()

    def _tick(self, stage: "Stage") -> None:
        for finding, _ in stage.progress.findings[self._shown :]:
            self._line.write(
                f"found {'without a kill' if finding.calm else f'after {stage.progress.kills} kills'}: {finding.violation}, {finding.conversation}: {finding.says}"
            )
        self._shown = len(stage.progress.findings)
        now = stage.journal.now
        if self._line.is_live or now >= self._next:
            self._next = now + _PLAIN_EVERY
            self._line.overwrite(status(stage))


def status(stage: "Stage") -> str:
    progress, counts = stage.progress, stage.counts
    parts = [f"{progress.kills} of {stage.plan.kills} kills", f"{counts.answered} turns answered"]
    parts += [f"{counts.read_back} read back", f"{len(progress.findings)} violations", time_left(stage)]
    return " · ".join(part for part in parts if part)


def time_left(stage: "Stage") -> str:
    """An estimate from the kills so far; never more than the time that the user allows, and the last reading back."""
    progress = stage.progress
    now = stage.journal.now - progress.killing_since
    if progress.phase != "killing":
        return progress.phase
    if progress.kills < _ESTIMATE_AFTER:
        return f"at most {duration(stage.plan.minutes * 60)}"
    by_kills = now / progress.kills * (stage.plan.kills - progress.kills)
    conversations = stage.counts.turns / 11
    return f"about {duration(min(by_kills, stage.plan.minutes * 60 - now) + conversations * _A_READ)} left"
