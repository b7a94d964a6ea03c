"""Controls that change the databases of a Hermes gateway. The gateway reads them again in every turn, so they can be changed while it runs."""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from continuity_conformance.plugin import Control, ControlContext, Inapplicable, Untested

_RESPONSES: Final = "home/response_store.db"
_STATE: Final = "home/state.db"
_WAIT: Final = 10.0


def evict_control(*, slugs: bool) -> Control:
    """The control that evicts a response as the gateway itself does. `slugs`: also delete the slugs whose newest response it is."""
    tables = ("conversations", "responses") if slugs else ("responses",)

    async def evict(context: ControlContext, params: Mapping[str, object]) -> None:
        """Delete the response from the gateway's database, as the gateway itself does with its least recently used one."""
        response = [params["response_id"]]
        deletions = [(f"DELETE FROM {table} WHERE response_id = ?", response) for table in tables]  # noqa: S608
        await _write(context.file(_RESPONSES), deletions)

    return evict


async def fill(context: ControlContext, params: Mapping[str, object]) -> None:
    """Insert so many recently used responses into the gateway's database, so that the next ones make it evict. Each real one would need a turn."""
    row = "INSERT INTO responses (response_id, data, accessed_at) VALUES (?, '{}', ?)"
    names = [f"resp_continuity_{secrets.token_hex(8)}" for _ in range(int(str(params["responses"])))]
    await _write(context.file(_RESPONSES), [(row, [name, time.time()]) for name in names])


async def fork(context: ControlContext, params: Mapping[str, object]) -> None:
    """Send POST /api/sessions/{session_id}/fork, the gateway's own operation."""
    await context.send("POST", f"/api/sessions/{params['session_id']}/fork", {})


async def link(context: ControlContext, params: Mapping[str, object]) -> None:
    """Mark a session as ended by a compression, and make it the parent of the next one, if the next one exists: else the link is missing."""
    session, following = params["session_id"], params["next"]
    ended = ("UPDATE sessions SET end_reason = 'compression', ended_at = ? WHERE id = ?", [time.time(), session])
    child = ("UPDATE sessions SET parent_session_id = ? WHERE id = ?", [session, following])
    changed, _ = await _write(context.file(_STATE), [ended, child])
    if not changed:
        raise Untested("the gateway does not have the session to link")


async def fault(context: ControlContext, params: Mapping[str, object]) -> None:
    """Break or repair the store: its table of messages becomes a view that fails when it is read, or rejects every new row."""
    what, on = str(params["what"]), bool(params["on"])
    if what != "lineage":
        await asyncio.to_thread(_fault, context.file(_STATE), what, on=on)
    elif on and not await asyncio.to_thread(_is_unreadable, context.file(_STATE)):
        raise Inapplicable("the gateway keeps the lineage in the rows of its store, so it cannot fail alone")


def _is_unreadable(file: Path) -> bool:
    with closing(sqlite3.connect(file, timeout=_WAIT)) as database:
        return database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [_BEHIND]).fetchone() is not None


def _fault(file: Path, what: str, *, on: bool) -> None:
    with closing(sqlite3.connect(file, timeout=_WAIT)) as database, database:
        database.execute("BEGIN IMMEDIATE")
        for statement in (_READ_FAULT if what == "read" else _WRITE_FAULT)[on](database):
            database.execute(statement)


def _unreadable(database: sqlite3.Connection) -> list[str]:
    """Put a view in place of the table. It fails when it is read, and writes new rows to the table behind it."""
    columns = [str(row[1]) for row in database.execute("PRAGMA table_info(messages)")]
    into, values = ", ".join(columns), ", ".join(f"NEW.{column}" for column in columns)
    through = f"INSERT INTO {_BEHIND} ({into}) VALUES ({values})"  # noqa: S608 - names of the gateway's tables
    return [
        f"ALTER TABLE messages RENAME TO {_BEHIND}",
        f"CREATE VIEW messages AS SELECT * FROM {_BEHIND} WHERE abs(-9223372036854775808)",  # noqa: S608 - as above
        f"CREATE TRIGGER continuity_through INSTEAD OF INSERT ON messages BEGIN {through}; END",
    ]


def _readable(_: sqlite3.Connection) -> list[str]:
    return ["DROP VIEW messages", f"ALTER TABLE {_BEHIND} RENAME TO messages"]


def _unwritable(database: sqlite3.Connection) -> list[str]:
    behind = database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [_BEHIND]).fetchone()
    table = _BEHIND if behind else "messages"
    abort = "BEGIN SELECT RAISE(ABORT, 'the store cannot be written'); END"
    return [f"CREATE TRIGGER continuity_refuses BEFORE INSERT ON {table} {abort}"]


def _writable(_: sqlite3.Connection) -> list[str]:
    return ["DROP TRIGGER continuity_refuses"]


_BEHIND: Final = "continuity_messages"
_READ_FAULT: Final = (_readable, _unreadable)
_WRITE_FAULT: Final = (_writable, _unwritable)


async def _write(file: Path, statements: Sequence[tuple[str, Sequence[object]]]) -> list[int]:
    return await asyncio.to_thread(_execute, file, statements)


def _execute(file: Path, statements: Sequence[tuple[str, Sequence[object]]]) -> list[int]:
    """Execute the statements in one transaction. Returns how many rows each of them changed."""
    with closing(sqlite3.connect(file, timeout=_WAIT)) as database, database:
        return [database.execute(*statement).rowcount for statement in statements]
