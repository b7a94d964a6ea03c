"""Migrating: a database is made ready at start: a new one gets its tables, one of the old schema is upgraded in place.

One transaction, begun with the write lock: killed in between, the database is the old one, and the next start upgrades it; of several processes one upgrades,
and the others wait and find it done. What a row means is a rule (`legacy.py`).
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from continuity_server.rules import Rules
from continuity_server.store.backfill import adopt
from continuity_server.store.schema import statements

logger = logging.getLogger("continuity.migrate")

_OLD_COLUMNS: Final = {"conversations": "name, response_id", "responses": "response_id, data, accessed_at"}
Step = Callable[[sqlite3.Connection], None]


def prepare(connection: sqlite3.Connection, rules: Rules, first_principal: str) -> None:
    """MIGRATE-01, -02: after this the database has the tables of today, and every row that it had."""
    sharing = rules.sharing()
    connection.execute(f"PRAGMA busy_timeout={int(sharing.seconds * 1000)}")
    connection.execute(f"PRAGMA locking_mode={'EXCLUSIVE' if sharing.exclusive else 'NORMAL'}")
    _use_wal(connection)
    connection.execute("PRAGMA synchronous=FULL")
    for steps in rules.transactions(_Upgrade(rules, first_principal).steps()):
        with transaction(connection):
            for step in steps:
                step(connection)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """MIGRATE-07: begun with the write lock, so that what is looked at is still so when it is changed."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def _use_wal(connection: sqlite3.Connection) -> None:
    """Change the journal mode. SQLite does not wait where another process is doing the same, and need not: that one changes it for all."""
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")


class _Upgrade:
    """The steps of an upgrade; none of them does anything to a database that is as it is to be."""

    def __init__(self, rules: Rules, first_principal: str) -> None:
        self._rules = rules
        self._owner = first_principal
        self._old: list[str] = []

    def steps(self) -> list[Step]:
        return [self._set_aside, self._copy, self._adopt]

    def _set_aside(self, connection: sqlite3.Connection) -> None:
        self._old = [table for table in _OLD_COLUMNS if self._rules.is_old(_columns(connection, table))]
        if self._old:
            logger.info("the database has the old schema: upgrading it")
        for table in self._old:
            connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        named = (self._rules.old_writers_owner(self._owner),)
        for statement in statements(connection.execute("SELECT quote(?)", named).fetchone()[0]):
            connection.execute(statement)

    def _copy(self, connection: sqlite3.Connection) -> None:
        for table in self._old:
            names = _OLD_COLUMNS[table]
            rows = self._rules.kept(connection.execute(f"SELECT {names} FROM old_{table}"))  # noqa: S608 - names of ours
            marks = ", ".join("?" for _ in names.split(","))
            insert = f"INSERT INTO {table} ({names}, owner) VALUES ({marks}, ?)"  # noqa: S608 - names of ours
            connection.executemany(insert, ((*row, self._owner) for row in rows))
            connection.execute(f"DROP TABLE old_{table}")

    def _adopt(self, connection: sqlite3.Connection) -> None:
        adopt(connection, self._rules)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
