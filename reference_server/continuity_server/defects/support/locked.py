"""What two defects need: an agent that never releases the session of some turns."""

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

from continuity_server.rules.error import Case, Refusal
from continuity_server.turn.agent import Agent
from continuity_server.turn.types import Destination, Turn, TurnOutput, TurnRequest


class LockingAgent(Agent):
    """An agent after whose turn the session is busy for good, if `_keeps_session` says so."""

    _locked_for_good: ClassVar[set[str]] = set()

    @abstractmethod
    def _keeps_session(self, turn: Turn) -> bool:
        """Whether this turn locks its session."""

    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        if self._keeps_session(turn):
            self._locked_for_good.add(turn.destination.tip)
        return output

    @asynccontextmanager
    async def _locked(self, request: TurnRequest) -> AsyncIterator[Destination]:
        async with super()._locked(request) as destination:
            if destination.tip in self._locked_for_good:
                raise Refusal(Case.SESSION_BUSY, "Another turn of this session is running.", retry_after=1)
            yield destination
