"""Adopting: rows of the old shape get what rows of today have: a session, its history, and the place in it that each response stands for.

It runs at start, and again whenever a writer of the old shape has been at work (MIGRATE-06). The rows themselves stay as they were written.
"""

import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.messages import Messages
from continuity_server.store.write import append, ensure_session

logger = logging.getLogger("continuity.adopt")

WAITING: Final = "SELECT 1 FROM responses WHERE session IS NULL LIMIT 1"
# What a slug names comes first: of two old lines of one session, that is the one that is the conversation.
_OLD_ROWS: Final = """
SELECT r.rowid, r.owner, r.response_id, r.data,
    EXISTS (SELECT 1 FROM conversations c WHERE c.owner=r.owner AND c.response_id=r.response_id)
FROM responses r WHERE r.session IS NULL
"""


@dataclass(frozen=True, slots=True)
class _Old:
    """A response of the old shape, read."""

    rowid: int
    owner: str
    response: str
    session: str
    history: Messages
    named: bool


def adopt(connection: sqlite3.Connection, rules: Rules) -> None:
    """Take over all rows that wait, inside a transaction that the caller has begun."""
    rows = sorted(_read(connection, rules), key=lambda old: (old.owner, old.session, not old.named, -len(old.history)))
    for (owner, session), group in groupby(rows, key=attrgetter("owner", "session")):
        line = _Line(connection, rules, owner, session)
        for old in group:
            line.take(old)
    if rows:
        logger.info("took over %d responses of the old shape", len(rows))


def read_data(data: object) -> Mapping[str, Any] | None:
    """Read the JSON object of a row; None where it is none."""
    try:
        read = json.loads(data) if isinstance(data, str | bytes) else None
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _read(connection: sqlite3.Connection, rules: Rules) -> Iterator[_Old]:
    for rowid, owner, response, data, named in connection.execute(_OLD_ROWS).fetchall():
        read = read_data(data)
        if read is None:
            logger.warning(
                "response %r is of the old shape and cannot be read; it stays, and cannot be continued", response
            )
            connection.execute("UPDATE responses SET session=? WHERE rowid=?", (rules.unreadable_row(), rowid))
            continue
        session = rules.legacy_session(read) or rules.minted("sess_")
        yield _Old(rowid, owner, response, session, rules.legacy_history(read), bool(named))


class _Line:
    """The history of one session, and the old responses that find their place in it."""

    def __init__(self, connection: sqlite3.Connection, rules: Rules, owner: str, session: str) -> None:
        self._connection = connection
        self._rules = rules
        self._key = (owner, session)
        ensure_session(connection, owner, Session(session, session))
        query = "SELECT epoch, next FROM sessions WHERE owner=? AND id=?"
        self._epoch, self._next = connection.execute(query, self._key).fetchone()
        query = "SELECT seq, data FROM messages WHERE owner=? AND session=? AND epoch=? ORDER BY seq"
        stored = connection.execute(query, (*self._key, self._epoch)).fetchall()
        self._seqs: list[int] = [seq for seq, _ in stored]
        self._messages: Messages = [json.loads(data) for _, data in stored]

    def take(self, old: _Old) -> None:
        """Put a response where its history ends: in the session's own line, or beside it where the two differ."""
        if self._next is None:
            self._extend(self._rules.taken_over(self._messages, old.history))
        count = len(old.history)
        if self._messages[:count] == old.history:
            self._place(old, self._epoch, self._seqs[count - 1] if count else 0)
        else:
            epoch = self._epoch_beside()
            self._place(old, epoch, append(self._connection, self._key, epoch, old.history)[-1])

    def _extend(self, messages: Messages) -> None:
        self._seqs += append(self._connection, self._key, self._epoch, messages)
        self._messages += messages

    def _epoch_beside(self) -> int:
        """Negative, so that it is never one that the session gets to."""
        query = "SELECT min(0, coalesce(min(epoch), 0)) - 1 FROM messages WHERE owner=? AND session=?"
        return int(self._connection.execute(query, self._key).fetchone()[0])

    def _place(self, old: _Old, epoch: int, upto: int) -> None:
        session = self._key[1]
        query = "UPDATE responses SET session=?, epoch=?, upto=? WHERE rowid=?"
        self._connection.execute(query, (session, epoch, upto, old.rowid))
        query = "UPDATE conversations SET session=? WHERE owner=? AND response_id=? AND session IS NULL"
        self._connection.execute(query, (session, old.owner, old.response))
