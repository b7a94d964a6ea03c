"""Kills during a migration: a process of its own starts on an old database, is killed, starts again, and must have every turn of the old database."""

import asyncio
import itertools
import random
from collections.abc import Sequence
from typing import Final

from continuity_conformance.probe.marks import answer_text, new_mark, user_text
from continuity_conformance.target.old_database import OldRow
from continuity_conformance.target.server import Server
from continuity_conformance.torture.calm import Wrong, first_wrong
from continuity_conformance.torture.client import Client
from continuity_conformance.torture.conversation import Conversation, ConversationKind, new_name
from continuity_conformance.torture.slots import Names, Slot
from continuity_conformance.torture.state import CampaignState

_SLUGS: Final = 12
_ORPHANS: Final = 400
"""Slugs without a response make a migration long enough to be killed in its middle."""
_FIRST_NUMBER: Final = 100_001
"""These conversations have numbers of their own."""
_LATEST: Final = 1.2
"""A kill comes at the latest after so many times the time of a start."""


class Migrations:
    """Plays migrations on a server that nothing else uses."""

    def __init__(self, state: CampaignState, server: Server, chance: random.Random) -> None:
        self._state = state
        self._server = server
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._chance = chance

    async def wrong_when_calm(self) -> Wrong | None:
        """What is wrong with the turns of an old database without a kill; None if nothing is. Raises NotStartedError."""
        conversations, rows = self._old_conversations()
        await self._server.restart_on_database(rows, 1)
        await self._continue(conversations)
        return next(filter(None, (first_wrong(self._state, each) for each in conversations)), None)

    async def kill_one(self) -> list[Conversation]:
        """One migration that is killed. Returns the conversations of the old database, each continued by a turn. Raises NotStartedError."""
        conversations, rows = self._old_conversations()
        seconds = _LATEST * self._chance.random() ** 2  # most of a migration is at its beginning
        self._state.journal.note(0, "another process starts on an old database, and gets SIGKILL in its migration")
        await self._server.kill_during_start(rows, seconds)
        self._state.journal.note(0, "it was started again")
        await self._continue(conversations)
        return conversations

    async def _continue(self, conversations: Sequence[Conversation]) -> None:
        slot = Slot((), "alice", Names(self._state.context, ["alice"]), self._numbers, self._chance)
        client = Client(self._state, slot, self._chance)
        await asyncio.gather(*(client.turn(conversation) for conversation in conversations))

    def _old_conversations(self) -> tuple[list[Conversation], list[OldRow]]:
        """Conversations, and the rows of an old database that has them."""
        named = [new_name(self._state.context) for _ in range(_SLUGS)]
        conversations = [
            Conversation(ConversationKind.OLD, next(self._numbers), "alice", name, self._chance) for name in named
        ]
        rows = [self._row(conversation, name) for conversation, name in zip(conversations, named, strict=True)]
        orphans = [OldRow(f"resp_gone_{new_mark()}", f"orphan-{new_mark()}") for _ in range(_ORPHANS)]
        rows[_SLUGS // 2 : _SLUGS // 2] = orphans
        return conversations, rows

    def _row(self, conversation: Conversation, name: str) -> OldRow:
        """A response of an old database, with the turns that its conversation had."""
        marks = [new_mark() for _ in range(self._chance.randint(1, 3))]
        history: list[dict[str, object]] = []
        for mark in marks:
            conversation.remember(mark)
            self._state.owners[mark] = conversation.name
            history += [{"role": "user", "content": user_text(mark, "torture")}]
            history += [{"role": "assistant", "content": answer_text(mark, 0)}]
        return OldRow(f"resp_{new_mark()}{new_mark()}", name, f"old-{new_mark()}{new_mark()}", tuple(history))
