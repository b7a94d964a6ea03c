"""Backfill: rows of the old schema get what rows of today have: a session, its history, and the place of each response in it.

It runs at start, and again whenever a program that knows only the old schema has written (MIGRATE-06). The rows stay as they were written.
"""

import json
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.messages import Messages
from continuity_server.store.histories import Histories
from continuity_server.store.write import ensure_session

logger = logging.getLogger("continuity.backfill")

_WAITING: Final = "SELECT 1 FROM responses WHERE session IS NULL LIMIT 1"
# The row that a slug names comes first: if two old rows of a session differ, that one is the conversation.
_OLD_ROWS: Final = """
SELECT r.rowid, r.owner, r.response_id, r.data,
    EXISTS (SELECT 1 FROM conversations c WHERE c.owner=r.owner AND c.response_id=r.response_id)
FROM responses r WHERE r.session IS NULL
"""
_NO_SESSION: Final = ""


@dataclass(frozen=True, slots=True)
class OldResponse:
    """A response of the old schema, read."""

    rowid: int
    owner: str
    response: str
    session: str
    history: Messages
    named_by_slug: bool


class Backfill:
    """Completes the rows of the old schema."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def is_due(self, connection: sqlite3.Connection) -> bool:
        return connection.execute(_WAITING).fetchone() is not None

    def run(self, connection: sqlite3.Connection) -> None:
        """Complete all rows that wait, inside a transaction that the caller has begun."""
        rows = sorted(
            self._old_rows(connection),
            key=lambda old: (old.owner, old.session, not old.named_by_slug, -len(old.history)),
        )
        for (owner, session), group in groupby(rows, key=attrgetter("owner", "session")):
            line = _Line(connection, self._rules, owner, session)
            for old in group:
                epoch, upto = line.take(old.history)
                query = "UPDATE responses SET session=?, epoch=?, upto=? WHERE rowid=?"
                connection.execute(query, (session, epoch, upto, old.rowid))
                self._bind_slug(connection, old)
        if rows:
            logger.info("took over %d responses of the old schema", len(rows))

    def _old_rows(self, connection: sqlite3.Connection) -> Iterator[OldResponse]:
        """Read the rows that wait. MIGRATE-09: one that cannot be read stays as it is, in no session."""
        for rowid, owner, response, data, named in connection.execute(_OLD_ROWS).fetchall():
            value = self._rules.row_data(data)
            if value is None:
                logger.warning(
                    "response %r has the old schema and cannot be read; it stays, and cannot be continued", response
                )
                connection.execute("UPDATE responses SET session=? WHERE rowid=?", (_NO_SESSION, rowid))
                continue
            session = self._rules.legacy_session(value) or self._rules.minted("sess_")
            yield OldResponse(rowid, owner, response, session, self._rules.legacy_history(value), bool(named))

    def _bind_slug(self, connection: sqlite3.Connection, old: OldResponse) -> None:
        """Give the session of a response to the slug that names it."""
        query = "UPDATE conversations SET session=? WHERE owner=? AND response_id=? AND session IS NULL"
        connection.execute(query, (old.session, old.owner, old.response))


class _Line:
    """The history of one session, and the place of old responses in it."""

    def __init__(self, connection: sqlite3.Connection, rules: Rules, owner: str, session: str) -> None:
        self._connection = connection
        self._histories = Histories(connection)
        self._rules = rules
        self._key = (owner, session)
        ensure_session(connection, owner, Session(session, session))
        query = "SELECT epoch, next FROM sessions WHERE owner=? AND id=?"
        self._epoch, self._next = connection.execute(query, self._key).fetchone()
        query = "SELECT seq, data FROM messages WHERE owner=? AND session=? AND epoch=? ORDER BY seq"
        stored = connection.execute(query, (*self._key, self._epoch)).fetchall()
        self._seqs: list[int] = [seq for seq, _ in stored]
        self._messages: Messages = [json.loads(data) for _, data in stored]

    def take(self, history: Messages) -> tuple[int, int]:
        """Store an old history: in the session's own line, or beside it if the two differ. Returns its epoch and newest message."""
        if self._next is None:
            self._extend(self._rules.taken_over(self._messages, history))
        count = len(history)
        if self._messages[:count] == history:
            return self._epoch, self._seqs[count - 1] if count else 0
        epoch = self._epoch_beside()
        return epoch, self._histories.append(*self._key, epoch, history)[-1]

    def _extend(self, messages: Messages) -> None:
        self._seqs += self._histories.append(*self._key, self._epoch, messages)
        self._messages += messages

    def _epoch_beside(self) -> int:
        """Return an unused negative epoch: the session itself never gets to one."""
        query = "SELECT min(0, coalesce(min(epoch), 0)) - 1 FROM messages WHERE owner=? AND session=?"
        return int(self._connection.execute(query, self._key).fetchone()[0])
