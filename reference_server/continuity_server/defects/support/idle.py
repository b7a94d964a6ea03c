"""What several defects need: a store that forgets at a start what nobody used since the start before."""

import sqlite3

from continuity_server.rules import Rules
from continuity_server.store.backfill import Backfill
from continuity_server.store.deletions import Deletions
from continuity_server.store.histories import Histories
from continuity_server.store.records import Write
from continuity_server.store.store import Store


class IdleForgettingStore(Store):
    """A store that notes what is used between two starts."""

    forget = ""
    """The statement that forgets what is not in the table `used`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        rules: Rules,
        histories: Histories,
        deletions: Deletions,
        backfill: Backfill,
    ) -> None:
        super().__init__(connection, rules, histories, deletions, backfill)
        connection.execute("CREATE TABLE IF NOT EXISTS used (owner TEXT, name TEXT, PRIMARY KEY (owner, name))")
        connection.execute(self.forget)
        connection.execute("DELETE FROM used")

    def used(self, write: Write) -> str | None:
        """Return the name of what a turn uses."""
        raise NotImplementedError

    def _apply(self, write: Write) -> None:
        super()._apply(write)
        name = self.used(write)
        if name is not None:
            self._connection.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (write.owner, name))
