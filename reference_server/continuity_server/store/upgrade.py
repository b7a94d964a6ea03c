"""Opening the database: a new one gets its tables, one of the old schema is upgraded in place.

The upgrade is one transaction that begins with the write lock. Killed in the middle, the database is the old one, and the next start upgrades it. If several
processes start at once, one upgrades, and the others wait and find it done. What a row means is a rule (`rules/migrate.py`).
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from continuity_server.rules import Rules
from continuity_server.rules.durable import SYNCHRONOUS
from continuity_server.store.backfill import Backfill
from continuity_server.store.schema import statements

logger = logging.getLogger("continuity.upgrade")

_OLD_COLUMNS: Final = {"conversations": "name, response_id", "responses": "response_id, data, accessed_at"}
_START_SECONDS: Final = 60
Step = Callable[[sqlite3.Connection], None]
Row = tuple[object, ...]


class StoreUnusableError(Exception):
    """The database cannot be opened or upgraded."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """MIGRATE-07: begin with the write lock, so that nothing changes between a look and a write."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


class Upgrade:
    """Opens a database and brings it to the schema of today. No step changes a database that already has it."""

    def __init__(self, rules: Rules, backfill: Backfill, first_principal: str) -> None:
        self._rules = rules
        self._backfill = backfill
        self._owner = first_principal
        self._old_tables: list[str] = []

    def open(self, path: str) -> sqlite3.Connection:
        """MIGRATE-01, -02: return a connection to a database that has the tables of today, and every row that it had."""
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            self._share(connection)
            _use_wal(connection)
            connection.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
            self._run(connection)
            connection.execute("PRAGMA busy_timeout=0")
        except sqlite3.Error as error:
            connection.close()
            message = f"The database cannot be used: {error}. It is {path}. Stop what has it locked, or name another with --db."
            raise StoreUnusableError(message) from error
        return connection

    def _share(self, connection: sqlite3.Connection) -> None:
        """MIGRATE-07: processes that start on one database at once wait for each other, and all start."""
        connection.execute(f"PRAGMA busy_timeout={_START_SECONDS * 1000}")

    def _run(self, connection: sqlite3.Connection) -> None:
        """MIGRATE-08: all steps are one transaction, so that a kill leaves the old database or the new one."""
        with transaction(connection):
            for step in self._steps():
                step(connection)

    def _steps(self) -> list[Step]:
        return [self._make_tables, self._copy_rows, self._backfill.run]

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Set the old tables aside, and make those of today."""
        self._old_tables = [table for table in _OLD_COLUMNS if self._rules.is_old(_columns(connection, table))]
        if self._old_tables:
            logger.info("the database has the old schema: upgrading it")
        for table in self._old_tables:
            connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        self._create_tables(connection)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        """MIGRATE-06: rows that a program with the old schema writes belong to the first principal, by default of the column."""
        quoted = connection.execute("SELECT quote(?)", (self._owner,)).fetchone()[0]
        for statement in statements(quoted):
            connection.execute(statement)

    def _copy_rows(self, connection: sqlite3.Connection) -> None:
        for table in self._old_tables:
            names = _OLD_COLUMNS[table]
            marks = ", ".join("?" for _ in names.split(","))
            insert = f"INSERT INTO {table} ({names}, owner) VALUES ({marks}, ?)"  # noqa: S608 - the names are ours
            connection.executemany(insert, [(*row, self._owner) for row in self._old_rows(connection, table)])
            connection.execute(f"DROP TABLE old_{table}")

    def _old_rows(self, connection: sqlite3.Connection, table: str) -> list[Row]:
        """MIGRATE-01: every row of an old table."""
        query = f"SELECT {_OLD_COLUMNS[table]} FROM old_{table}"  # noqa: S608 - the names are ours
        return connection.execute(query).fetchall()


def _use_wal(connection: sqlite3.Connection) -> None:
    """Set the journal mode. SQLite does not wait if another process does the same, and need not: the mode is that of the file."""
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
