"""What several defects need: an agent that leaves messages behind although the turn was not answered."""

from continuity_server.rules.messages import Messages
from continuity_server.store.records import HistoryWrite, Write
from continuity_server.turn.agent import Agent
from continuity_server.turn.types import Destination


class LeavingAgent(Agent):
    """An agent that can store a part of a turn."""

    async def _leave(self, destination: Destination, messages: Messages, *, replaces: bool = False) -> None:
        history = HistoryWrite(destination.tip, destination.root, tuple(messages), replace=replaces)
        await self._committer.commit(Write(destination.owner, history))
