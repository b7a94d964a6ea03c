"""Write databases of the old schema, as earlier versions of servers did."""

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS responses (response_id TEXT PRIMARY KEY, data TEXT NOT NULL, accessed_at REAL NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class OldRow:
    """A response, and the slug (`conversation`) whose newest response it is, if any.

    A row without session, raw data and fields is a slug whose response was deleted. `raw` replaces the data of the response, `fields` some of its fields.
    """

    response: str
    conversation: str = ""
    session: str = ""
    history: tuple[dict[str, object], ...] = ()
    raw: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)

    def data(self) -> str:
        if self.raw:
            return self.raw
        text = str(self.history[-1]["content"]) if self.history else ""
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": "msg_old", "role": "assistant", "status": "completed", "content": [part]}
        response = {
            "id": self.response,
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": "old",
            "output": [item],
        }
        data = {"response": response, "conversation_history": list(self.history), "session_id": self.session}
        return json.dumps({**data, **self.fields})


class OldStore(Protocol):
    """Where a target whose database is no SQLite file keeps data of the old schema. `folder`: the one that the kit made for the target."""

    async def replace(self, folder: Path, rows: Sequence[OldRow]) -> None:
        """Put a database of the old schema with these rows in the place of the target's. The target is stopped."""

    async def add(self, folder: Path, rows: Sequence[OldRow]) -> None:
        """Add rows to the database of the running target, as an old server writes them."""

    async def state(self, folder: Path) -> object:
        """Return a value that changes when the target begins to work on its database."""


def old_database(rows: Sequence[OldRow]) -> Callable[[Path], None]:
    """A function that writes a database of the old schema with these rows to a file."""

    def write(file: Path) -> None:
        with closing(sqlite3.connect(file)) as database:
            database.executescript(_SCHEMA)
            write_rows(database, rows)

    return write


def write_to(file: Path, rows: Sequence[OldRow]) -> None:
    """Add rows to an existing database while a server uses it."""
    with closing(sqlite3.connect(file, timeout=10)) as database:
        write_rows(database, rows)


def write_rows(database: sqlite3.Connection, rows: Sequence[OldRow]) -> None:
    """Write rows as an old server does: without the columns that were added later."""
    responses, slugs = old_responses(rows), old_slugs(rows)
    with database:
        database.executemany(
            "INSERT OR REPLACE INTO responses (response_id, data, accessed_at) VALUES (?, ?, ?)", responses
        )
        database.executemany("INSERT OR REPLACE INTO conversations (name, response_id) VALUES (?, ?)", slugs)


def old_responses(rows: Sequence[OldRow]) -> list[tuple[str, str, float]]:
    """The rows of the table `responses`: response_id, data, accessed_at."""
    return [(row.response, row.data(), time.time()) for row in rows if row.session or row.raw or row.fields]


def old_slugs(rows: Sequence[OldRow]) -> list[tuple[str, str]]:
    """The rows of the table `conversations`: name, response_id."""
    return [(row.conversation, row.response) for row in rows if row.conversation]
