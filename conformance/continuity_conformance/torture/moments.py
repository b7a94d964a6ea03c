"""When the target is killed: at random, or in a chosen moment of one client's turn."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from continuity_conformance.http.messages import Request
from continuity_conformance.probe.script import Script
from continuity_conformance.torture.probe import CampaignProbe

_AFTER_REPLY_SECONDS: Final = 0.012
"""The target stores a turn and answers within this time after the model has answered."""


class Moment(StrEnum):
    """A moment at which a kill can come. The value reads after "SIGKILL, "."""

    RANDOM = "at random"
    AT_MODEL = "while the turn is at the model"
    AFTER_MODEL = "after the model has answered"
    FIRST_BYTE = "at the first byte of an answer"
    LAST_BYTE = "at the last byte of an answer"
    ROTATION = "during a compression"
    START = "during the start"
    MIGRATION = "during a migration"
    STOPPED = "while it was stopped"


WEIGHTS: Final = {
    Moment.RANDOM: 4,
    Moment.AT_MODEL: 3,
    Moment.AFTER_MODEL: 4,
    Moment.FIRST_BYTE: 2,
    Moment.LAST_BYTE: 4,
    Moment.ROTATION: 3,
    Moment.START: 1,
    Moment.MIGRATION: 2,
    Moment.STOPPED: 1,
}
"""How often each moment is chosen, in proportion."""
OF_A_TURN: Final = frozenset(
    {Moment.AT_MODEL, Moment.AFTER_MODEL, Moment.FIRST_BYTE, Moment.LAST_BYTE, Moment.ROTATION}
)


@dataclass(frozen=True, slots=True)
class Trap:
    """A kill that waits for a moment of one turn. `strike` sends the signal to the process that the turn is sent to."""

    moment: Moment
    delay: float
    strike: Callable[[int], None]

    def set(self, request: Request, mark: str, replica: int, probe: CampaignProbe) -> Request:
        """Attach the trap to a turn before it is sent. Returns the request to send."""
        if self.moment is Moment.FIRST_BYTE:
            return replace(request, on_begin=lambda: self.strike(replica))
        if self.moment is Moment.LAST_BYTE:
            return replace(request, on_answer=lambda: self.strike(replica))
        if self.moment is Moment.AFTER_MODEL:
            probe.on_reply[mark] = lambda: self._later(replica)
        if self.moment is Moment.ROTATION:
            probe.on_summary = lambda _: self._later(replica)
        return request

    async def hold(self, mark: str, replica: int, probe: CampaignProbe) -> None:
        """Strike while the model holds its answer. Does nothing for the other moments."""
        await probe.arrived(mark)
        await asyncio.sleep(self.delay)
        self.strike(replica)

    async def script(self, mark: str, probe: CampaignProbe) -> bool:
        """Make the model hold its answer, where the kill comes during that."""
        if self.moment is Moment.AT_MODEL:
            await probe.script(mark, Script(held=True))
        return self.moment is Moment.AT_MODEL

    def _later(self, replica: int) -> None:
        asyncio.get_running_loop().call_later(self.delay, self.strike, replica)


def delay_of(moment: Moment, chance: random.Random) -> float:
    return chance.uniform(0, _AFTER_REPLY_SECONDS) if moment in OF_A_TURN else 0.0
