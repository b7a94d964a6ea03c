"""Databases of any size, filled directly through the tables of the store: a million sessions take seconds instead of an hour."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import dialogue
from continuity_server.rules import Rules
from continuity_server.settings import KEYLESS, Options
from continuity_server.store.backfill import Backfill
from continuity_server.store.upgrade import Upgrade

ROOT_OF_CHAIN: Final = "chain-1"
LONG_SESSION: Final = "long"
_COUNTED: Final = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :size) "
_USER: Final = f"""'{{"role":"user","content":"{dialogue.SAID}"}}'"""
_ASSISTANT: Final = """'{"role":"assistant","content":"Noted. [a:-#1 saw ]"}'"""


@contextmanager
def _tables(path: Path) -> Iterator[sqlite3.Connection]:
    """Make the tables as the server does, and keep what the block fills in."""
    rules = Rules(Options())
    with closing(Upgrade(rules, Backfill(rules), KEYLESS).open(str(path))) as connection:
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def sessions(path: Path, size: int) -> None:
    """So many sessions of one turn each."""
    with _tables(path) as connection:
        _add_sessions(connection, "'s-' || i", size)
        _add_turns(connection, "'s-' || i", size)


def history(path: Path, size: int) -> None:
    """One session with so many turns."""
    with _tables(path) as connection:
        _add_sessions(connection, f"'{LONG_SESSION}'", 1)
        _add_turns(connection, f"'{LONG_SESSION}'", size)


def chain(path: Path, size: int) -> None:
    """One chain of so many sessions, each compressed into the next."""
    with _tables(path) as connection:
        insert = (
            "INSERT INTO sessions (owner, id, root, parent, next, kind, end_reason, created) "
            "SELECT :owner, 'chain-' || i, 'chain-1', iif(i = 1, NULL, 'chain-' || (i - 1)), "
            "iif(i = :size, NULL, 'chain-' || (i + 1)), iif(i = 1, 'session', 'compression'), "
            "iif(i = :size, NULL, 'compression'), 0 FROM n"
        )
        connection.execute(f"{_COUNTED} {insert}", {"owner": KEYLESS, "size": size})
        _add_turns(connection, f"'chain-{size}'", 1)


def slugs(path: Path, size: int) -> None:
    """So many slugs, each with a session of one turn."""
    with _tables(path) as connection:
        _add_sessions(connection, "'s-' || i", size)
        _add_turns(connection, "'s-' || i", size)
        insert = "INSERT INTO conversations (owner, name, session) SELECT :owner, 'slug-' || i, 's-' || i FROM n"
        connection.execute(f"{_COUNTED} {insert}", {"owner": KEYLESS, "size": size})


def responses(path: Path, size: int) -> None:
    """So many stored responses, all in the first session."""
    with _tables(path) as connection:
        _add_sessions(connection, "'s-' || i", 1)
        _add_turns(connection, "'s-' || i", 1)
        insert = (
            "INSERT INTO responses (owner, response_id, data, accessed_at, session, epoch, upto) "
            "SELECT :owner, 'resp_' || i, '{\"response\":{}}', i, 's-1', 1, 2 FROM n"
        )
        connection.execute(f"{_COUNTED} {insert}", {"owner": KEYLESS, "size": size})


def _add_sessions(connection: sqlite3.Connection, ident: str, size: int) -> None:
    insert = f"INSERT INTO sessions (owner, id, root, created) SELECT :owner, {ident}, {ident}, 0 FROM n"  # noqa: S608 - the names are ours
    connection.execute(f"{_COUNTED} {insert}", {"owner": KEYLESS, "size": size})


def _add_turns(connection: sqlite3.Connection, session: str, size: int) -> None:
    """Two messages for each number: what the user said, and the answer."""
    insert = (
        f"INSERT INTO messages (owner, session, epoch, data) "  # noqa: S608 - the names are ours
        f"SELECT :owner, {session}, 1, iif(half = 0, {_USER}, {_ASSISTANT}) "
        "FROM n CROSS JOIN (SELECT 0 AS half UNION ALL SELECT 1) ORDER BY i, half"
    )
    connection.execute(f"{_COUNTED} {insert}", {"owner": KEYLESS, "size": size})
