"""What a streamed turn is on both endpoints: it opens with the first piece, and a failure after that is an event."""

from abc import ABC, abstractmethod

from aiohttp import web

from continuity_server.http.sse import EventStream
from continuity_server.rules import Rules
from continuity_server.rules.echo import SessionInfo
from continuity_server.rules.error import Refusal
from continuity_server.turn.agent import Agent
from continuity_server.turn.types import Outcome, TurnRequest


class TurnStream(ABC):
    """A sink of a turn that sends events."""

    def __init__(self, stream: EventStream, rules: Rules, request: TurnRequest) -> None:
        self._stream = stream
        self._rules = rules
        self._request = request

    async def run(self, agent: Agent) -> web.StreamResponse:
        try:
            await self._finish(await agent.turn(self._request, self))
        except Refusal as refusal:
            if not self._stream.opened:
                raise
            await self._fail(refusal)
        return self._stream.response

    @property
    def gone(self) -> bool:
        return self._stream.gone

    @abstractmethod
    async def text(self, session_info: SessionInfo, delta: str) -> None:
        """Send a piece of the answer."""

    async def _open(self, session_info: SessionInfo) -> None:
        if not self._stream.opened:
            await self._stream.open(self._rules.answer_fields(session_info))
            await self._begin()

    @abstractmethod
    async def _begin(self) -> None:
        """Send the first events."""

    @abstractmethod
    async def _finish(self, outcome: Outcome) -> None:
        """Send the rest of the answer and the end."""

    @abstractmethod
    async def _fail(self, refusal: Refusal) -> None:
        """Send the failure and the end."""
