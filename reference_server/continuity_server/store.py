"""The store: SQLite in WAL mode, synchronous FULL, one connection, one writer with group commit on the event loop.

HISTORY-12: one connection serves all requests; a turn opens none of its own. It keeps and gives back; it decides nothing.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from enum import Enum
from typing import Any

from continuity_server.derivation import Message
from continuity_server.lineage import COMPRESSION, Covered, Session
from continuity_server.records import HistoryWrite, Replay, StoredResponse, Write
from continuity_server.schema import SCHEMA

Change = Callable[[sqlite3.Connection], None]


class Fault(Enum):
    """What the control API can break: messages, writing, the lineage."""

    READ = "read"
    WRITE = "write"
    LINEAGE = "lineage"


class StoreUnreadableError(Exception):
    """What was stored cannot be read now."""


class StoreUnwritableError(Exception):
    """A turn cannot be stored now."""


class Store:
    """Sessions, messages, responses, slugs and replays of every principal."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("PRAGMA busy_timeout=5000")
        self._connection.executescript(SCHEMA)
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self.faults: set[Fault] = set()

    def close(self) -> None:
        self._flush()
        self._connection.close()

    # Reading

    def session(self, owner: str, session: str) -> Session | None:
        rows = self._read(Fault.LINEAGE, "SELECT * FROM sessions WHERE owner=? AND id=?", owner, session)
        return _session(rows[0]) if rows else None

    def children(self, owner: str, session: str) -> list[str]:
        rows = self._read(
            Fault.LINEAGE, "SELECT id FROM sessions WHERE owner=? AND parent=? ORDER BY rowid", owner, session
        )
        return [row[0] for row in rows]

    def messages(self, owner: str, line: str, epoch: int, upto: int | None = None) -> list[Message]:
        query = "SELECT data FROM messages WHERE owner=? AND session=? AND epoch=? AND seq<=? ORDER BY seq"
        return [json.loads(row[0]) for row in self._read(Fault.READ, query, owner, line, epoch, upto or 2**62)]

    def last_message(self, owner: str, line: str, epoch: int) -> int:
        query = "SELECT coalesce(max(seq), 0) FROM messages WHERE owner=? AND session=? AND epoch=?"
        return int(self._read(Fault.LINEAGE, query, owner, line, epoch)[0][0])

    def response(self, owner: str, response: str) -> StoredResponse | None:
        rows = self._read(Fault.READ, "SELECT * FROM responses WHERE owner=? AND id=?", owner, response)
        return _response(rows[0]) if rows else None

    def slug_session(self, owner: str, slug: str) -> tuple[str, str | None] | None:
        """Give the session that a slug is in, and the response that it last named."""
        query = "SELECT session, response_id FROM conversations WHERE owner=? AND name=?"
        rows = self._read(Fault.LINEAGE, query, owner, slug)
        return (rows[0][0], rows[0][1]) if rows else None

    def has_slug(self, owner: str, root: str) -> bool:
        query = "SELECT 1 FROM conversations c JOIN sessions s ON s.owner=c.owner AND s.id=c.session WHERE c.owner=? AND s.root=?"
        return bool(self._read(Fault.LINEAGE, query, owner, root))

    def replay(self, owner: str, scope: str, key: str) -> Replay | None:
        rows = self._read(Fault.READ, "SELECT * FROM replays WHERE owner=? AND scope=? AND key=?", owner, scope, key)
        return _replay(rows[0]) if rows else None

    def _read(self, fault: Fault, query: str, *values: object) -> list[Any]:
        if fault in self.faults:
            raise StoreUnreadableError
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreUnreadableError from error

    # Writing

    def check_writable(self) -> None:
        """Ask before the model is called: what cannot be stored is better refused than run."""
        if Fault.WRITE in self.faults:
            raise StoreUnwritableError
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreUnwritableError from error

    async def commit(self, write: Write) -> None:
        await self._change(lambda connection: _apply(connection, write))

    async def execute(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        """Several statements, committed together."""
        await self._change(lambda connection: _all(connection, statements))

    async def _change(self, change: Change) -> None:
        """DURABLE-02: returns when the change is on disk. All changes of one round of the loop share one commit."""
        if Fault.WRITE in self.faults:
            raise StoreUnwritableError
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((change, done))
        await done

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        if not batch:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            failed = [self._attempt(change) for change, _ in batch]
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            failed = [True] * len(batch)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        for (_, done), bad in zip(batch, failed, strict=True):
            _settle(done, failed=bad)

    def _attempt(self, change: Change) -> bool:
        """One change of a batch; a failing one takes no other with it. Says whether it failed."""
        self._connection.execute("SAVEPOINT change")
        try:
            change(self._connection)
        except sqlite3.Error:
            self._connection.execute("ROLLBACK TO change")
            return True
        finally:
            self._connection.execute("RELEASE change")
        return False


def _settle(done: asyncio.Future[None], *, failed: bool) -> None:
    if done.done():
        return
    if failed:
        done.set_exception(StoreUnwritableError())
    else:
        done.set_result(None)


def _all(connection: sqlite3.Connection, statements: tuple[tuple[str, tuple[object, ...]], ...]) -> None:
    for statement, values in statements:
        connection.execute(statement, values)


def _apply(connection: sqlite3.Connection, write: Write) -> None:
    """One turn: its messages, the end of its parent, its response, its slug and its replay."""
    _write_history(connection, write.owner, write.history)
    session, owner = write.history.session, write.owner
    if write.ended is not None:
        query = "UPDATE sessions SET next=?, end_reason=? WHERE owner=? AND id=?"
        connection.execute(query, (session, COMPRESSION, owner, write.ended))
    if write.uncompress is not None:
        connection.execute("UPDATE sessions SET compress_next=0 WHERE owner=? AND id=?", (owner, write.uncompress))
    if write.response is not None:
        _write_response(connection, write, *write.response)
    if write.slug is not None:
        values = (owner, write.slug, session, write.response[0] if write.response else None)
        connection.execute(
            "INSERT OR REPLACE INTO conversations (owner, name, session, response_id) VALUES (?,?,?,?)", values
        )
    if write.replay is not None:
        replay = write.replay
        names = (owner, replay.scope, replay.key, replay.fingerprint, replay.root, replay.header)
        connection.execute("INSERT OR REPLACE INTO replays VALUES (?,?,?,?,?,?,?)", (*names, json.dumps(replay.body)))


def _write_history(connection: sqlite3.Connection, owner: str, history: HistoryWrite) -> None:
    head = (owner, history.session, history.root, history.parent, history.kind, int(time.time()))
    query = "INSERT OR IGNORE INTO sessions (owner, id, root, parent, kind, created) VALUES (?,?,?,?,?,?)"
    connection.execute(query, head)
    if history.replace:
        _new_epoch(connection, owner, history)
    query = (
        "INSERT INTO messages (owner, session, epoch, data) "
        "VALUES (?1, ?2, (SELECT epoch FROM sessions WHERE owner=?1 AND id=?3), ?4)"
    )
    rows = ((owner, history.line, history.session, json.dumps(message)) for message in history.messages)
    connection.executemany(query, rows)


def _new_epoch(connection: sqlite3.Connection, owner: str, history: HistoryWrite) -> None:
    """Replace the history; the old one stays only where a response may still branch from it (SLUG-13)."""
    covered = history.covered or Covered()
    query = "UPDATE sessions SET epoch=epoch+1, covered_count=?, covered_digest=? WHERE owner=? AND id=?"
    connection.execute(query, (covered.count, covered.digest, owner, history.session))
    query = (
        "DELETE FROM messages WHERE owner=?1 AND session=?2 "
        "AND NOT EXISTS (SELECT 1 FROM responses WHERE owner=?1 AND session=?3)"
    )
    connection.execute(query, (owner, history.line, history.session))


def _write_response(connection: sqlite3.Connection, write: Write, response: str, body: dict[str, Any]) -> None:
    history = write.history
    query = (
        "INSERT INTO responses (owner, id, session, epoch, upto, body) VALUES (?1, ?2, ?3, "
        "(SELECT epoch FROM sessions WHERE owner=?1 AND id=?3), "
        "(SELECT max(seq) FROM messages WHERE owner=?1 AND session=?5), ?4)"
    )
    connection.execute(query, (write.owner, response, history.session, json.dumps(body), history.line))
    query = (
        "DELETE FROM responses WHERE owner=?1 AND seq<="
        "(SELECT seq FROM responses WHERE owner=?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)"
    )
    connection.execute(query, (write.owner, write.max_responses))


def _session(row: tuple[Any, ...]) -> Session:
    _, ident, root, parent, following, kind, end_reason, epoch, count, digest, compress_next, created = row
    covered = Covered(count, digest) if count else None
    return Session(ident, root, parent, following, kind, end_reason, epoch, covered, bool(compress_next), created)


def _response(row: tuple[Any, ...]) -> StoredResponse:
    _, _, ident, session, epoch, upto, body = row
    return StoredResponse(ident, session, epoch, upto, json.loads(body))


def _replay(row: tuple[Any, ...]) -> Replay:
    _, scope, key, fingerprint, root, header, body = row
    return Replay(scope, key, fingerprint, root, header, json.loads(body))
