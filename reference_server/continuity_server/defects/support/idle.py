"""What several defects need: a store that forgets at a start what nobody used since the start before."""

from typing import Any

from continuity_server.store.records import Write
from continuity_server.store.store import Store


class IdleForgettingStore(Store):
    """A store that notes what is used between two starts."""

    forget = ""
    """The statement that forgets what is not in the table `used`."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._connection.execute("CREATE TABLE IF NOT EXISTS used (owner TEXT, name TEXT, PRIMARY KEY (owner, name))")
        self._connection.execute(self.forget)
        self._connection.execute("DELETE FROM used")

    def used(self, write: Write) -> str | None:
        """Return the name of what a turn uses."""
        raise NotImplementedError

    def _apply(self, write: Write) -> None:
        super()._apply(write)
        name = self.used(write)
        if name is not None:
            self._connection.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (write.owner, name))
