"""The store: SQLite in WAL mode, one connection, and one writer that commits on the event loop.

HISTORY-12: one connection serves all requests; a turn opens none of its own. The store stores and reads back; it decides nothing.
"""

import asyncio
import contextlib
import json
import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.messages import Message
from continuity_server.rules.migrate import response_from_row
from continuity_server.store.backfill import Backfill
from continuity_server.store.deletions import Deletions
from continuity_server.store.disk import Change, StoreUnwritableError
from continuity_server.store.faults import Faults
from continuity_server.store.health import READ, Health
from continuity_server.store.histories import LAST, Histories
from continuity_server.store.records import Replay, StoredConversation, StoredResponse, StoredSlug, Write
from continuity_server.store.shared_locks import SharedLocks
from continuity_server.store.write import add_conversation, apply, touch
from continuity_server.store.writer import Writer

logger = logging.getLogger("continuity.store")


class StoreUnreadableError(Exception):
    """The store cannot be read now."""


class Store:
    """Sessions, messages, responses, slugs and replays of every principal."""

    def __init__(  # noqa: PLR0913, PLR0917 - it has all parts of the store
        self,
        connection: sqlite3.Connection,
        rules: Rules,
        histories: Histories,
        deletions: Deletions,
        backfill: Backfill,
        writer: Writer,
        shared: SharedLocks,
    ) -> None:
        self._connection = connection
        self._rules = rules
        self._histories = histories
        self._deletions = deletions
        self._backfill = backfill
        self._writer = writer
        self._checked: set[str] = set()
        self._relinked = 0
        self.faults = Faults(connection)
        self.health = writer.health
        self._readable = _Readable(self.health)
        self.locks = shared

    def close(self) -> None:
        self._writer.close()
        self.locks.close()
        self._connection.close()

    async def backfill(self) -> None:
        """MIGRATE-06: complete what a program with the old schema wrote meanwhile, before anybody asks for it."""
        if "backfill" in self._checked:
            return
        try:
            while self._backfill.is_due(self._connection):
                await self._change(lambda: self._backfill.run(self._connection))
            self._was_checked("backfill")
        except (sqlite3.Error, StoreUnwritableError) as error:
            logger.warning("rows of the old schema could not be taken over now: %s", error)

    def failures(self) -> list[str]:
        """Return what cannot be done now, for GET /health: `read`, `written`."""
        self._writer.look()
        return self.health.failures

    # Reading

    def session(self, owner: str, session: str) -> Session | None:
        rows = self._read("SELECT * FROM sessions WHERE owner=? AND id=?", owner, session)
        return _session(rows[0]) if rows else None

    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:
        """Return a page of a principal's sessions, the newest first."""
        query = (
            "SELECT * FROM sessions INDEXED BY sessions_by_age WHERE owner=?1 "
            "AND rowid<coalesce((SELECT rowid FROM sessions WHERE owner=?1 AND id=?2), 1<<62) ORDER BY rowid DESC LIMIT ?3"
        )
        return [_session(row) for row in self._read(query, owner, after, limit)]

    def family(self, owner: str, root: str) -> list[Session]:
        """Return a chain, the oldest session first, and whatever was forked or branched from it."""
        query = (
            "SELECT * FROM sessions WHERE owner=?1 AND (root=?2 OR parent IN "
            "(SELECT id FROM sessions WHERE owner=?1 AND root=?2)) ORDER BY rowid"
        )
        return [_session(row) for row in self._read(query, owner, root)]

    def messages(self, owner: str, session: str, epoch: int, upto: int = LAST) -> list[Message]:
        with self._readable:
            return self._histories.read(owner, session, epoch, upto)

    def links_version(self) -> tuple[int, int]:
        """Return a value that changes with any link between sessions: set or deleted here, or written by another process."""
        return self._relinked, self._read("PRAGMA data_version")[0][0]

    def last_message(self, owner: str, session: str, epoch: int) -> int:
        with self._readable:
            return self._histories.last(owner, session, epoch)

    def response(self, owner: str, response: str) -> StoredResponse | None:
        query = "SELECT response_id, data, session, epoch, upto FROM responses WHERE owner=? AND response_id=?"
        rows = self._read(query, owner, response)
        return self._response(rows[0]) if rows else None

    def slug(self, owner: str, name: str) -> StoredSlug | None:
        """Return the session of a slug. One of the old schema knows it only through the response that it names."""
        query = (
            "SELECT coalesce(c.session, r.session), c.response_id IS NOT NULL AND r.response_id IS NULL "
            "FROM conversations c LEFT JOIN responses r ON r.owner=c.owner AND r.response_id=c.response_id "
            "WHERE c.owner=? AND c.name=?"
        )
        rows = self._read(query, owner, name)
        return StoredSlug(rows[0][0] or None, bool(rows[0][1])) if rows else None

    def slug_of(self, owner: str, root: str) -> str | None:
        """Return the slug of a chain."""
        query = "SELECT name FROM conversations c JOIN sessions s ON s.owner=c.owner AND s.id=c.session WHERE c.owner=? AND s.root=?"
        rows = self._read(query, owner, root)
        return rows[0][0] if rows else None

    def conversation(self, owner: str, ident: str) -> StoredConversation | None:
        rows = self._read("SELECT id, created, metadata FROM conversation_objects WHERE owner=? AND id=?", owner, ident)
        return StoredConversation(rows[0][0], rows[0][1], json.loads(rows[0][2])) if rows else None

    def replay(self, owner: str, scope: str, key: str) -> Replay | None:
        rows = self._read("SELECT * FROM replays WHERE owner=? AND scope=? AND key=?", owner, scope, key)
        return _replay(rows[0]) if rows else None

    def _read(self, query: str, *values: object) -> list[Any]:
        with self._readable:
            return self._connection.execute(query, values).fetchall()

    def _response(self, row: tuple[Any, ...]) -> StoredResponse:
        ident, data, session, epoch, upto = row
        value = self._rules.row_data(data)
        return StoredResponse(
            ident, session or None, epoch, upto, response_from_row(ident, value) if value is not None else None
        )

    # Writing

    async def check_writable(self) -> None:
        """Raise StoreUnwritableError if a turn could not be stored now, so that it is refused before the model is asked."""
        if self._was_checked("writable"):
            return
        try:
            await self._writer.check()
        except StoreUnwritableError:
            self._checked.discard("writable")
            raise

    def _was_checked(self, what: str) -> bool:
        """Whether this was looked at in this round of the event loop. The requests of a round had all arrived when it began, so one look is enough for them."""
        if not self._checked:
            asyncio.get_running_loop().call_soon(self._checked.clear)
        known = what in self._checked
        self._checked.add(what)
        return known

    async def commit(self, write: Write) -> None:
        """Store one turn, all of it or nothing."""
        await self._change(lambda: self._apply(write))

    async def touch(self, owner: str, response: str) -> None:
        """Note that a response was read. If that cannot be written, the response was read all the same."""
        with contextlib.suppress(StoreUnwritableError):
            await self._change(lambda: touch(self._connection, owner, response))

    async def delete_sessions(self, owner: str, sessions: Sequence[str]) -> None:
        """Delete these sessions together, with everything that belongs to them."""

        def delete() -> None:
            self._delete_sessions(owner, sessions)

        await self._change(delete)

    async def delete_response(self, owner: str, response: str) -> None:
        await self._change(lambda: self._deletions.response(owner, response))

    async def add_conversation(self, owner: str, made: StoredConversation) -> None:
        """Store a conversation object. Its first turn makes its slug, as it does for every other slug."""
        await self._change(lambda: add_conversation(self._connection, owner, made))

    async def delete_conversation(self, owner: str, conversation: str, sessions: Sequence[str]) -> None:
        """Delete a conversation object together with these sessions, and so with its slug."""

        def delete() -> None:
            self._delete_sessions(owner, sessions)
            self._deletions.conversation(owner, conversation)

        await self._change(delete)

    async def evict(self, owner: str, response: str) -> None:
        """Remove a response as the cache does: its slug stays as it is."""
        await self._execute("DELETE FROM responses WHERE owner=? AND response_id=?", owner, response)

    async def mark_for_compression(self, owner: str, session: str) -> None:
        """Make the next turn of a session compress it."""
        await self._execute("UPDATE sessions SET compress_next=1 WHERE owner=? AND id=?", owner, session)

    async def link(self, owner: str, session: str, following: str | None) -> None:
        """Set the compression child of a session; None makes the session its own tip again."""

        def change() -> None:
            self._relinked += 1
            statement = "UPDATE sessions SET next=? WHERE owner=? AND id=?"
            self._connection.execute(statement, (following, owner, session))

        await self._change(change)

    def _delete_sessions(self, owner: str, sessions: Sequence[str]) -> None:
        self._relinked += 1
        for session in sessions:
            self._deletions.session(owner, session)

    def _apply(self, write: Write) -> None:
        apply(self._connection, self._histories, write)
        if write.response is not None:
            self._deletions.evict(write.owner, write.max_responses)

    async def _execute(self, statement: str, *values: object) -> None:
        await self._change(lambda: self._connection.execute(statement, values))

    async def _change(self, change: Change) -> None:
        await self._writer.change(change)


class _Readable:
    """A block that reads: what SQLite cannot read is StoreUnreadableError."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            self._health.failed(READ, error)
            raise StoreUnreadableError from error


def _session(row: tuple[Any, ...]) -> Session:
    owner, ident, root, parent, following, kind, end_reason, epoch, count, digest, compress_next, created = row
    covered = Covered(count, digest) if count else None
    return Session(
        ident, root, parent, following, kind, end_reason, epoch, covered, bool(compress_next), created, owner
    )


def _replay(row: tuple[Any, ...]) -> Replay:
    owner, scope, key, fingerprint, root, header, body = row
    return Replay(owner, scope, key, fingerprint, root, header, json.loads(body))
