"""The store: SQLite in WAL mode, synchronous FULL, one connection, one writer with group commit on the event loop.

HISTORY-12: one connection serves all requests; a turn opens none of its own. It keeps and gives back; it decides nothing.
"""

import asyncio
import contextlib
import json
import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.messages import Message
from continuity_server.rules.migrate import shown
from continuity_server.store.backfill import WAITING, adopt, read_data
from continuity_server.store.faults import Faults
from continuity_server.store.records import Replay, StoredResponse, StoredSlug, Write
from continuity_server.store.upgrade import prepare, transaction
from continuity_server.store.write import apply, run_all, touch

logger = logging.getLogger("continuity.store")

Change = Callable[[sqlite3.Connection], None]
_LAST: Final = 2**62


class StoreUnusableError(Exception):
    """The database cannot be opened, or not be made ready."""


class StoreUnreadableError(Exception):
    """What was stored cannot be read now."""


class StoreUnwritableError(Exception):
    """A turn cannot be stored now."""


class Store:
    """Sessions, messages, responses, slugs and replays of every principal."""

    def __init__(self, path: str, rules: Rules, first_principal: str) -> None:
        self._rules = rules
        self._connection = _opened(path, rules, first_principal)
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self.faults = Faults(self._connection)

    def close(self) -> None:
        self._commit()
        self._connection.close()

    def adopt(self) -> None:
        """MIGRATE-06: what a writer of the old shape wrote meanwhile is taken over before anybody asks for it."""
        try:
            if self._connection.execute(WAITING).fetchone():
                with transaction(self._connection):
                    adopt(self._connection, self._rules)
        except sqlite3.Error as error:
            logger.warning("rows of the old shape could not be taken over now: %s", error)

    # Reading

    def session(self, owner: str, session: str) -> Session | None:
        rows = self._read("SELECT * FROM sessions WHERE owner=? AND id=?", owner, session)
        return _session(rows[0]) if rows else None

    def sessions(self, owners: Sequence[str], after: str | None, limit: int) -> list[Session]:
        """Give a page of these owners' sessions, the newest first."""
        query = (
            "WITH theirs AS (SELECT rowid AS place, * FROM sessions WHERE owner IN (SELECT value FROM json_each(?1))) "
            "SELECT * FROM theirs WHERE place<coalesce((SELECT place FROM theirs WHERE id=?2), 1<<62) "
            "ORDER BY place DESC LIMIT ?3"
        )
        return [_session(row[1:]) for row in self._read(query, json.dumps(list(owners)), after, limit)]

    def owners(self) -> list[str]:
        return [row[0] for row in self._read("SELECT DISTINCT owner FROM sessions")]

    def holder(self, ident: str) -> str | None:
        """Give somebody who has a response or a session of this id."""
        query = "SELECT owner FROM responses WHERE response_id=?1 UNION ALL SELECT owner FROM sessions WHERE id=?1"
        rows = self._read(query, ident)
        return rows[0][0] if rows else None

    def family(self, owner: str, root: str) -> list[Session]:
        """Give a chain, the oldest first, and whatever was forked or branched from it."""
        query = (
            "SELECT * FROM sessions WHERE owner=?1 AND (root=?2 OR parent IN "
            "(SELECT id FROM sessions WHERE owner=?1 AND root=?2)) ORDER BY rowid"
        )
        return [_session(row) for row in self._read(query, owner, root)]

    def messages(self, owner: str, line: str, epoch: int, *, after: int = 0, upto: int = _LAST) -> list[Message]:
        query = "SELECT data FROM messages WHERE owner=? AND session=? AND epoch=? AND seq>? AND seq<=? ORDER BY seq"
        return [json.loads(row[0]) for row in self._read(query, owner, line, epoch, after, upto)]

    def last_message(self, owner: str, line: str, epoch: int) -> int:
        query = "SELECT coalesce(max(seq), 0) FROM messages WHERE owner=? AND session=? AND epoch=?"
        return int(self._read(query, owner, line, epoch)[0][0])

    def response(self, owner: str, response: str) -> StoredResponse | None:
        query = "SELECT response_id, data, session, epoch, upto FROM responses WHERE owner=? AND response_id=?"
        rows = self._read(query, owner, response)
        return _response(rows[0]) if rows else None

    def slug(self, owner: str, name: str) -> StoredSlug | None:
        """Give the session that a slug is in; one of the old shape knows it only through the response that it names."""
        query = (
            "SELECT coalesce(c.session, r.session), c.old, c.response_id IS NOT NULL AND r.response_id IS NULL "
            "FROM conversations c LEFT JOIN responses r ON r.owner=c.owner AND r.response_id=c.response_id "
            "WHERE c.owner=? AND c.name=?"
        )
        rows = self._read(query, owner, name)
        return StoredSlug(rows[0][0] or None, bool(rows[0][1]), bool(rows[0][2])) if rows else None

    def slug_of(self, owner: str, root: str) -> str | None:
        """Give the slug of a chain."""
        query = "SELECT name FROM conversations c JOIN sessions s ON s.owner=c.owner AND s.id=c.session WHERE c.owner=? AND s.root=?"
        rows = self._read(query, owner, root)
        return rows[0][0] if rows else None

    def replay(self, owner: str, scope: str, key: str) -> Replay | None:
        rows = self._read("SELECT * FROM replays WHERE owner=? AND scope=? AND key=?", owner, scope, key)
        return _replay(rows[0]) if rows else None

    def _read(self, query: str, *values: object) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreUnreadableError from error

    # Writing

    def check_writable(self) -> None:
        """Ask before the model is called: what cannot be stored is better refused than run."""
        if self._connection.in_transaction:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreUnwritableError from error

    async def commit(self, write: Write) -> None:
        await self._change(lambda connection: apply(connection, write))

    async def touch(self, owner: str, response: str) -> None:
        """Remember that a response was read; where that cannot be written, it was read all the same."""
        with contextlib.suppress(StoreUnwritableError):
            await self._change(lambda connection: touch(connection, owner, response))

    async def execute(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        """Several statements, committed together."""
        await self._change(lambda connection: run_all(connection, statements))

    async def _change(self, change: Change) -> None:
        """DURABLE-02: returns when the change is on disk. All changes of one round of the loop share one commit, or fail together."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((change, done))
        await done

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        try:
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            for change, _ in batch:
                change(self._connection)
            if self._rules.commits_at_once():
                self._commit()
            failed = False
        except sqlite3.Error:
            failed = True
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        for _, done in batch:
            _settle(done, failed=failed)

    def _commit(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")


def _opened(path: str, rules: Rules, first_principal: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        prepare(connection, rules, first_principal)
        connection.execute("PRAGMA busy_timeout=5000")
    except sqlite3.Error as error:
        connection.close()
        message = (
            f"The database cannot be used: {error}. It is {path}. Stop what has it locked, or name another with --db."
        )
        raise StoreUnusableError(message) from error
    return connection


def _settle(done: asyncio.Future[None], *, failed: bool) -> None:
    if done.done():
        return
    if failed:
        done.set_exception(StoreUnwritableError())
    else:
        done.set_result(None)


def _session(row: tuple[Any, ...]) -> Session:
    _, ident, root, parent, following, kind, end_reason, epoch, count, digest, compress_next, created = row
    covered = Covered(count, digest) if count else None
    return Session(ident, root, parent, following, kind, end_reason, epoch, covered, bool(compress_next), created)


def _response(row: tuple[Any, ...]) -> StoredResponse:
    ident, data, session, epoch, upto = row
    read = read_data(data)
    return StoredResponse(ident, session or None, epoch, upto, shown(ident, read) if read is not None else None)


def _replay(row: tuple[Any, ...]) -> Replay:
    owner, scope, key, fingerprint, root, header, body = row
    return Replay(owner, scope, key, fingerprint, root, header, json.loads(body))
