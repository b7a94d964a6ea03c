"""Backfill on PostgreSQL: rows of the old schema get what rows of today have. The steps are those of `store/backfill.py`."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.messages import Messages
from continuity_server.store.postgres.database import Database, stored
from continuity_server.store.postgres.write import append, ensure_session, execute

logger = logging.getLogger("continuity.backfill")

_WAITING: Final = "SELECT 1 FROM responses WHERE session IS NULL LIMIT 1"
# The row that a slug names comes first: if two old rows of a session differ, that one is the conversation.
_OLD_ROWS: Final = """
SELECT r.owner, r.response_id, r.data,
    EXISTS (SELECT 1 FROM conversations c WHERE c.owner=r.owner AND c.response_id=r.response_id)
FROM responses r WHERE r.session IS NULL
"""
_NO_SESSION: Final = ""
ONE_AT_A_TIME: Final = "SELECT 1 FROM upgrades WHERE name='schema' FOR UPDATE"
"""What a transaction does first that upgrades, or takes over old rows: no other one does the same until it ends."""


@dataclass(frozen=True, slots=True)
class _OldRow:
    owner: str
    response: str
    session: str
    history: Messages
    named_by_slug: bool


class PostgresBackfill:
    """Completes the rows of the old schema."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    async def is_due(self, database: Database) -> bool:
        return bool(await database.fetch(_WAITING))

    async def run(self, connection: Any) -> None:
        """Complete all rows that wait, inside a transaction that the caller has begun."""
        await connection.execute(ONE_AT_A_TIME)
        rows = sorted(
            await self._old_rows(connection),
            key=lambda old: (old.owner, old.session, not old.named_by_slug, -len(old.history)),
        )
        for (owner, session), group in groupby(rows, key=attrgetter("owner", "session")):
            await self._take_over(connection, owner, session, list(group))
        if rows:
            logger.info("took over %d responses of the old schema", len(rows))

    async def _take_over(self, connection: Any, owner: str, session: str, rows: Sequence[_OldRow]) -> None:
        line = await _OldLine.of(connection, self._rules, owner, session)
        for old in rows:
            epoch, upto = await line.take(old.history)
            query = "UPDATE responses SET session=$1, epoch=$2, upto=$3 WHERE owner=$4 AND response_id=$5"
            await execute(connection, query, session, epoch, upto, owner, old.response)
            query = "UPDATE conversations SET session=$1 WHERE owner=$2 AND response_id=$3 AND session IS NULL"
            await execute(connection, query, session, owner, old.response)

    async def _old_rows(self, connection: Any) -> list[_OldRow]:
        """Read the rows that wait. MIGRATE-09: one that cannot be read stays as it is, in no session."""
        found = []
        for owner, response, data, named in await connection.fetch(_OLD_ROWS):
            value = self._rules.row_data(data)
            if value is None:
                logger.warning(
                    "response %r has the old schema and cannot be read; it stays, and cannot be continued", response
                )
                query = "UPDATE responses SET session=$1 WHERE owner=$2 AND response_id=$3"
                await execute(connection, query, _NO_SESSION, owner, response)
                continue
            session = self._rules.legacy_session(value) or self._rules.minted("sess_")
            found.append(_OldRow(owner, response, session, self._rules.legacy_history(value), bool(named)))
        return found


class _OldLine:
    """The history of one session, whose row is locked, and the place of old responses in it. Within an epoch, messages are numbered from 1."""

    def __init__(self, connection: Any, rules: Rules, key: tuple[str, str]) -> None:
        self._connection = connection
        self._rules = rules
        self._key = key
        self._epoch = 1
        self._next: str | None = None
        self._messages: Messages = []

    @classmethod
    async def of(cls, connection: Any, rules: Rules, owner: str, session: str) -> "_OldLine":
        line = cls(connection, rules, (owner, session))
        await ensure_session(connection, owner, Session(session, session))
        query = "SELECT epoch, next FROM sessions WHERE owner=$1 AND id=$2 FOR UPDATE"
        key = (stored(owner), stored(session))
        line._epoch, line._next = await connection.fetchrow(query, *key)
        query = "SELECT data FROM messages WHERE owner=$1 AND session=$2 AND epoch=$3 ORDER BY seq"
        line._messages = [json.loads(row[0]) for row in await connection.fetch(query, *key, line._epoch)]
        return line

    async def take(self, history: Messages) -> tuple[int, int]:
        """Store an old history: in the session's own line, or beside it if the two differ. Returns its epoch and newest message."""
        if self._next is None:
            added = self._rules.taken_over(self._messages, history)
            await append(self._connection, *self._key, self._epoch, added)
            self._messages += added
        count = len(history)
        if self._messages[:count] == history:
            return self._epoch, count
        epoch = await self._epoch_beside()
        return epoch, await append(self._connection, *self._key, epoch, history)

    async def _epoch_beside(self) -> int:
        """Return an unused negative epoch: the session itself never gets to one."""
        query = "SELECT least(0, coalesce(min(epoch), 0)) - 1 FROM messages WHERE owner=$1 AND session=$2"
        return int(await self._connection.fetchval(query, *map(stored, self._key)))
