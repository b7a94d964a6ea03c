"""Databases of PostgreSQL that are named by a folder: each server of a run has one, and finds it again after a restart. Also as an old server would have left it."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import asyncpg

from continuity_conformance.plugin import OldRow, old_responses, old_slugs

_OLD_TABLES: Final = (
    "CREATE TABLE conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL)",
    "CREATE TABLE responses (response_id TEXT PRIMARY KEY, data TEXT NOT NULL, accessed_at DOUBLE PRECISION NOT NULL)",
)
_OLD_WRITES: Final = (
    "DELETE FROM responses WHERE response_id=$1",
    "INSERT INTO responses (response_id, data, accessed_at) VALUES ($1, $2, $3)",
    "DELETE FROM conversations WHERE name=$1",
    "INSERT INTO conversations (name, response_id) VALUES ($1, $2)",
)
_BUSY: Final = "SELECT count(*) FROM pg_stat_activity WHERE datname=$1 AND pid<>pg_backend_pid()"


def name_of(folder: Path) -> str:
    """The name of the database of a folder."""
    return f"c_{hashlib.sha256(str(folder).encode()).hexdigest()[:24]}"


def database_of(cluster: str, folder: Path) -> str:
    """The URL of the database of a folder. `cluster`: a URL with {database} for its name."""
    return cluster.replace("{database}", name_of(folder))


async def create(cluster: str, folder: Path) -> None:
    """Make the database of a folder, unless it is there."""
    async with _connected(cluster.replace("{database}", "postgres")) as connection:
        if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname=$1", name_of(folder)):
            with suppress(asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):  # by another process
                await connection.execute(f"CREATE DATABASE {name_of(folder)}")


class PostgresOldStore:
    """Old databases in a cluster. `superuser`: the URL for what its owner may not do, which is to disconnect PostgreSQL's own processes."""

    def __init__(self, cluster: str, superuser: str) -> None:
        self._cluster = cluster
        self._superuser = superuser

    async def replace(self, folder: Path, rows: Sequence[OldRow]) -> None:
        """Put a database of the old schema with these rows in the place of the target's."""
        async with _connected(self._superuser) as connection:
            await connection.execute(f"DROP DATABASE IF EXISTS {name_of(folder)} WITH (FORCE)")
        await create(self._cluster, folder)
        async with _connected(database_of(self._cluster, folder)) as connection:
            for statement in _OLD_TABLES:
                await connection.execute(statement)
        await self.add(folder, rows)

    async def add(self, folder: Path, rows: Sequence[OldRow]) -> None:
        """Write rows as an old server does: without the columns that were added later."""
        responses, slugs = old_responses(rows), old_slugs(rows)
        values = ([row[:1] for row in responses], responses, [row[:1] for row in slugs], slugs)
        async with _connected(database_of(self._cluster, folder)) as connection, connection.transaction():
            for statement, written in zip(_OLD_WRITES, values, strict=True):
                await connection.executemany(statement, written)

    async def state(self, folder: Path) -> object:
        """How many connections the database has."""
        async with _connected(self._cluster.replace("{database}", "postgres")) as connection:
            return await connection.fetchval(_BUSY, name_of(folder))


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        yield connection
    finally:
        await connection.close()
