"""The messages of every session, in order: the table `messages`."""

import sqlite3
from collections.abc import Iterable
from typing import Final

from continuity_server import fast_json
from continuity_server.rules.messages import Message

LAST: Final = 2**62


class Histories:
    """Reads and writes histories. An epoch is one version of a session's history: compression starts a new one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, owner: str, session: str, epoch: int, upto: int = LAST) -> list[Message]:
        query = "SELECT data FROM messages WHERE owner=? AND session=? AND epoch=? AND seq<=? ORDER BY seq"
        rows = self._connection.execute(query, (owner, session, epoch, upto)).fetchall()
        whole: list[Message] = fast_json.read(f"[{','.join(row[0] for row in rows)}]")
        return whole

    def last(self, owner: str, session: str, epoch: int) -> int:
        """Return the number of the newest message; 0 if there is none."""
        query = "SELECT coalesce(max(seq), 0) FROM messages WHERE owner=? AND session=? AND epoch=?"
        return int(self._connection.execute(query, (owner, session, epoch)).fetchone()[0])

    def append(self, owner: str, session: str, epoch: int, messages: Iterable[Message]) -> list[int]:
        """Add messages, and return their numbers."""
        query = "INSERT INTO messages (owner, session, epoch, data) VALUES (?,?,?,?)"
        values = ((owner, session, epoch, fast_json.written(message).decode()) for message in messages)
        return [self._connection.execute(query, row).lastrowid or 0 for row in values]

    def forget(self, owner: str, session: str) -> None:
        """Drop the history of a session, unless a response may still branch from it (SLUG-13)."""
        query = (
            "DELETE FROM messages WHERE owner=?1 AND session=?2 "
            "AND NOT EXISTS (SELECT 1 FROM responses WHERE owner=?1 AND session=?2)"
        )
        self._connection.execute(query, (owner, session))
