"""Faults that the control API can switch on. SQLite itself then refuses statements, so that the server sees real errors."""

import sqlite3
from enum import Enum
from typing import Final

_CONTENT: Final = {("messages", "data"), ("responses", "data"), ("replays", "body")}
_LINEAGE: Final = {"sessions", "conversations"}
_WRITING: Final = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}


class Fault(Enum):
    """What fails: reading messages and answers, writing, or reading which session is which."""

    READ = "read"
    WRITE = "write"
    LINEAGE = "lineage"


class Faults:
    """The faults of a connection that are switched on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._on: set[Fault] = set()

    def set(self, fault: Fault, *, on: bool) -> None:
        """Switch a fault on or off. SQLite asks the authorizer again about every statement, prepared ones too."""
        (self._on.add if on else self._on.discard)(fault)
        self._connection.set_authorizer(self._allowed if self._on else None)

    def _allowed(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        return sqlite3.SQLITE_DENY if self._denies(action, first, second) else sqlite3.SQLITE_OK

    def _denies(self, action: int, first: str | None, second: str | None) -> bool:
        if action == sqlite3.SQLITE_READ:
            content, lineage = (first, second) in _CONTENT, first in _LINEAGE
            return (content and Fault.READ in self._on) or (lineage and Fault.LINEAGE in self._on)
        begins = action == sqlite3.SQLITE_TRANSACTION and first == "BEGIN"
        return (begins or action in _WRITING) and Fault.WRITE in self._on
