"""The store on PostgreSQL. It stores and reads back what the store on SQLite does, and decides nothing either."""

import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from continuity_server import fast_json
from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.messages import Message
from continuity_server.rules.migrate import response_from_row
from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.health import READ, WRITTEN
from continuity_server.store.histories import LAST
from continuity_server.store.postgres import deletions
from continuity_server.store.postgres.backfill import PostgresBackfill
from continuity_server.store.postgres.database import Database, read_back
from continuity_server.store.postgres.faults import RevokedPrivileges
from continuity_server.store.postgres.leases import LeasedLocks
from continuity_server.store.postgres.schema import REPLAY, SESSION
from continuity_server.store.postgres.waiting import run_waiting, waited
from continuity_server.store.postgres.write import apply, execute, touch
from continuity_server.store.records import Replay, StoredConversation, StoredResponse, StoredSlug, Write
from continuity_server.store.store import StoreUnreadableError

logger = logging.getLogger("continuity.store")

T = TypeVar("T")
R = TypeVar("R")
Change = Callable[[Any], Awaitable[None]]


class PostgresStore:
    """Sessions, messages, responses, slugs and replays of every principal."""

    def __init__(self, database: Database, rules: Rules, backfill: PostgresBackfill, locks: LeasedLocks) -> None:
        self._database = database
        self._rules = rules
        self._backfill = backfill
        self.locks = locks
        self.faults = RevokedPrivileges(database)

    async def attend(self, answer: Callable[[T], Awaitable[R]], request: T) -> R:
        """Answer a request. Its reads may wait for the database."""
        return await run_waiting(answer, request)

    async def close(self) -> None:
        await self.locks.close()
        await self._database.close()

    async def backfill(self) -> None:
        """MIGRATE-06: complete what a program with the old schema wrote meanwhile, before anybody asks for it."""
        try:
            if await self._backfill.is_due(self._database):
                await self._database.change(self._backfill.run)
        except (StoreUnreadableError, StoreUnwritableError) as error:
            logger.warning("rows of the old schema could not be taken over now: %s", type(error).__name__)

    def failures(self) -> list[str]:
        """Return what cannot be done now, for GET /health: `read`, `written`."""
        return sorted({READ, WRITTEN}) if self._database.lost else self._database.health.failures

    # Reading

    def session(self, owner: str, session: str) -> Session | None:
        rows = self._read(f"SELECT {SESSION} FROM sessions WHERE owner=$1 AND id=$2", owner, session)  # noqa: S608 - our columns
        return _session(rows[0]) if rows else None

    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:
        """Return a page of a principal's sessions, the newest first."""
        query = (
            f"SELECT {SESSION} FROM sessions WHERE owner=$1 AND (NOT EXISTS (SELECT 1 FROM sessions WHERE owner=$1 AND id=$2) "  # noqa: S608 - our columns
            "OR (born, id) < (SELECT born, id FROM sessions WHERE owner=$1 AND id=$2)) ORDER BY born DESC, id DESC LIMIT $3"
        )
        return [_session(row) for row in self._read(query, owner, after, limit)]

    def family(self, owner: str, root: str) -> list[Session]:
        """Return a chain, the oldest session first, and whatever was forked or branched from it."""
        query = (
            f"SELECT {SESSION} FROM sessions WHERE owner=$1 AND (root=$2 OR parent IN "  # noqa: S608 - our columns
            "(SELECT id FROM sessions WHERE owner=$1 AND root=$2)) ORDER BY born, id"
        )
        return [_session(row) for row in self._read(query, owner, root)]

    def messages(self, owner: str, session: str, epoch: int, upto: int = LAST) -> list[Message]:
        query = "SELECT data FROM messages WHERE owner=$1 AND session=$2 AND epoch=$3 AND seq<=$4 ORDER BY seq"
        rows = self._read(query, owner, session, epoch, upto)
        whole: list[Message] = fast_json.read(f"[{','.join(row[0] for row in rows)}]")
        return whole

    def links_version(self) -> object:
        """Return another value each time: any other process may have written meanwhile. So a turn looks again after it has its locks, and no tip is remembered."""
        return object()

    def last_message(self, owner: str, session: str, epoch: int) -> int:
        query = "SELECT coalesce(max(seq), 0) FROM messages WHERE owner=$1 AND session=$2 AND epoch=$3"
        return int(self._read(query, owner, session, epoch)[0][0])

    def response(self, owner: str, response: str) -> StoredResponse | None:
        query = "SELECT response_id, data, session, epoch, upto FROM responses WHERE owner=$1 AND response_id=$2"
        rows = self._read(query, owner, response)
        return self._response(rows[0]) if rows else None

    def slug(self, owner: str, name: str) -> StoredSlug | None:
        """Return the session of a slug. One of the old schema knows it only through the response that it names."""
        query = (
            "SELECT coalesce(c.session, r.session), c.response_id IS NOT NULL AND r.response_id IS NULL "
            "FROM conversations c LEFT JOIN responses r ON r.owner=c.owner AND r.response_id=c.response_id "
            "WHERE c.owner=$1 AND c.name=$2"
        )
        rows = self._read(query, owner, name)
        return StoredSlug(rows[0][0] or None, bool(rows[0][1])) if rows else None

    def slug_of(self, owner: str, root: str) -> str | None:
        """Return the slug of a chain."""
        query = "SELECT name FROM conversations c JOIN sessions s ON s.owner=c.owner AND s.id=c.session WHERE c.owner=$1 AND s.root=$2"
        rows = self._read(query, owner, root)
        return read_back(rows[0][0]) if rows else None

    def conversation(self, owner: str, ident: str) -> StoredConversation | None:
        query = "SELECT id, created, metadata FROM conversation_objects WHERE owner=$1 AND id=$2"
        rows = self._read(query, owner, ident)
        return StoredConversation(rows[0][0], rows[0][1], json.loads(rows[0][2])) if rows else None

    def replay(self, owner: str, scope: str, key: str) -> Replay | None:
        query = f"SELECT {REPLAY} FROM replays WHERE owner=$1 AND scope=$2 AND key=$3"  # noqa: S608 - our columns
        rows = self._read(query, owner, scope, key)
        return _replay(rows[0]) if rows else None

    def _read(self, query: str, *values: object) -> list[Any]:
        return waited(self._database.fetch(query, *values))

    def _response(self, row: Any) -> StoredResponse:
        ident, data, session, epoch, upto = row
        value = self._rules.row_data(data)
        return StoredResponse(
            ident, session or None, epoch, upto, response_from_row(ident, value) if value is not None else None
        )

    # Writing

    async def check_writable(self) -> None:
        """Raise StoreUnwritableError if a turn could not be stored now: PostgreSQL looks at privileges, and whether it may write, also for a statement that finds nothing to do."""

        async def write_nothing(connection: Any) -> None:
            query = "INSERT INTO messages (owner, session, epoch, seq, data) SELECT '', '', 0, 0, '' WHERE false"
            await execute(connection, query)

        await self._database.change(write_nothing)

    async def commit(self, write: Write) -> None:
        """Store one turn, all of it or nothing."""

        async def change(connection: Any) -> None:
            await self.locks.check_held(connection)
            await apply(connection, write)

        await self._database.change(change)

    async def touch(self, owner: str, response: str) -> None:
        """Note that a response was read. If that cannot be written, the response was read all the same."""
        with contextlib.suppress(StoreUnwritableError):
            await self._database.change(lambda connection: touch(connection, owner, response))

    async def delete_sessions(self, owner: str, sessions: Sequence[str]) -> None:
        """Delete these sessions together, with everything that belongs to them."""
        await self._database.change(self._without(owner, sessions))

    async def delete_response(self, owner: str, response: str) -> None:
        await self._database.change(lambda connection: deletions.response(connection, owner, response))

    async def add_conversation(self, owner: str, made: StoredConversation) -> None:
        """Store a conversation object. Its first turn makes its slug, as it does for every other slug."""
        query = "INSERT INTO conversation_objects (owner, id, created, metadata) VALUES ($1,$2,$3,$4) ON CONFLICT DO NOTHING"
        metadata = fast_json.written(made.metadata).decode()
        await self._execute(query, owner, made.id, made.created, metadata)

    async def delete_conversation(self, owner: str, conversation: str, sessions: Sequence[str]) -> None:
        """Delete a conversation object together with these sessions, and so with its slug."""
        delete_sessions = self._without(owner, sessions)

        async def change(connection: Any) -> None:
            await delete_sessions(connection)
            await deletions.conversation(connection, owner, conversation)

        await self._database.change(change)

    async def evict(self, owner: str, response: str) -> None:
        """Remove a response as the cache does: its slug stays as it is."""
        await self._execute("DELETE FROM responses WHERE owner=$1 AND response_id=$2", owner, response)

    async def mark_for_compression(self, owner: str, session: str) -> None:
        """Make the next turn of a session compress it."""
        await self._execute("UPDATE sessions SET compress_next=1 WHERE owner=$1 AND id=$2", owner, session)

    async def link(self, owner: str, session: str, following: str | None) -> None:
        """Set the compression child of a session; None makes the session its own tip again."""
        await self._execute("UPDATE sessions SET next=$3 WHERE owner=$1 AND id=$2", owner, session, following)

    def _without(self, owner: str, sessions: Sequence[str]) -> Change:
        async def change(connection: Any) -> None:
            await self.locks.check_held(connection)
            for session in sorted(sessions):
                await deletions.session(connection, owner, session)

        return change

    async def _execute(self, statement: str, *values: object) -> None:
        await self._database.change(lambda connection: execute(connection, statement, *values))


def _session(row: Any) -> Session:
    owner, ident, root, parent, following, kind, end_reason, epoch, count, digest, compress_next, created = row
    covered = Covered(count, digest) if count else None
    return Session(
        ident, root, parent, following, kind, end_reason, epoch, covered, bool(compress_next), created, owner
    )


def _replay(row: Any) -> Replay:
    owner, scope, key, fingerprint, root, header, body = row
    return Replay(owner, scope, key, fingerprint, root, header, json.loads(body))
