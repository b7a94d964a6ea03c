"""Opening a database of PostgreSQL: a new one gets its tables, one of the old schema is upgraded in place.

The upgrade is one transaction, which begins with a locked row. If several processes start at once, one upgrades, and the others wait and find it done.
"""

import asyncio
import logging
from typing import Any, Final

import asyncpg

from continuity_server.rules import Rules
from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.postgres.backfill import ONE_AT_A_TIME, PostgresBackfill
from continuity_server.store.postgres.database import FAILED, Database, stored
from continuity_server.store.postgres.faults import ALL_OFF, WORKS
from continuity_server.store.postgres.leases import LeasedLocks
from continuity_server.store.postgres.schema import lock_tables, tables
from continuity_server.store.postgres.store import PostgresStore
from continuity_server.store.store import StoreUnreadableError
from continuity_server.store.upgrade import StoreUnusableError

logger = logging.getLogger("continuity.upgrade")

_OLD_COLUMNS: Final = {"conversations": "name, response_id", "responses": "response_id, data, accessed_at"}
_COLUMNS: Final = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema=current_schema() AND table_name=$1"
)
_THERE: Final = (
    "SELECT tablename FROM pg_tables WHERE schemaname=current_schema() "
    "UNION SELECT indexname FROM pg_indexes WHERE schemaname=current_schema()"
)
_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.1
_AT_ONCE: Final = (asyncpg.UniqueViolationError, asyncpg.DuplicateObjectError, asyncpg.DuplicateTableError)
"""What CREATE TABLE IF NOT EXISTS says if another process makes the same table at the same time."""


async def open_postgres(url: str, rules: Rules, owner: str, *, mend: bool) -> PostgresStore:
    """Open the database, upgrade it if it has the old schema, and build the store on it. `mend`: end the faults that the control API has left."""
    try:
        database = await Database.open(url)
    except (*FAILED, ValueError) as error:
        raise _unusable(error) from error
    locks, backfill = LeasedLocks(database), PostgresBackfill(rules)
    try:
        await _make_lock_tables(database)
        await database.change(_Upgrade(rules, backfill, owner, mend=mend).run)
        await locks.start()
    except (*FAILED, StoreUnreadableError, StoreUnwritableError) as error:
        await database.close()
        raise _unusable(error.__cause__ or error) from error
    return PostgresStore(database, rules, backfill, locks)


async def _make_lock_tables(database: Database) -> None:
    """Make the tables that everything else waits with."""
    statements = [*lock_tables(), "INSERT INTO upgrades (name) VALUES ('schema') ON CONFLICT DO NOTHING"]
    for statement in statements:
        for left in reversed(range(_ATTEMPTS)):
            try:
                await database.execute(statement)
                break
            except _AT_ONCE:
                if not left:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)


class _Upgrade:
    """Brings a database to the schema of today. No step changes one that already has it."""

    def __init__(self, rules: Rules, backfill: PostgresBackfill, owner: str, *, mend: bool) -> None:
        self._rules = rules
        self._backfill = backfill
        self._owner = owner
        self._mend = mend

    async def run(self, connection: Any) -> None:
        """MIGRATE-01, -02, -07, -08: all steps are one transaction, so that a kill leaves the old database or the new one."""
        await connection.execute(ONE_AT_A_TIME)
        old = [table for table in _OLD_COLUMNS if self._rules.is_old(await self._columns(connection, table))]
        if old:
            logger.info("the database has the old schema: upgrading it")
        for table in old:
            await connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        await self._make_tables(connection)
        for table in old:
            await self._copy(connection, table)
        if self._mend and not await connection.fetchval(WORKS):
            for statement in ALL_OFF:
                await connection.execute(statement)
        await self._backfill.run(connection)

    async def _make_tables(self, connection: Any) -> None:
        """Make what is missing. `IF NOT EXISTS` alone would lock tables that are there, and cross the turns of other replicas."""
        there = {row[0] for row in await connection.fetch(_THERE)}
        for statement in tables(str(stored(self._owner))):
            if statement.split("IF NOT EXISTS ")[1].split()[0] not in there:
                await connection.execute(statement)

    async def _columns(self, connection: Any, table: str) -> set[str]:
        return {row[0] for row in await connection.fetch(_COLUMNS, table)}

    async def _copy(self, connection: Any, table: str) -> None:
        """MIGRATE-01: every row of an old table."""
        names = _OLD_COLUMNS[table]
        query = f"INSERT INTO {table} ({names}, owner) SELECT {names}, $1::text FROM old_{table}"  # noqa: S608 - the names are ours
        await connection.execute(query, stored(self._owner))
        await connection.execute(f"DROP TABLE old_{table}")


def _unusable(error: BaseException) -> StoreUnusableError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return StoreUnusableError(
        f"The database cannot be used: {reason}. Look at --db, or at CONTINUITY_DB and PGPASSWORD."
    )
