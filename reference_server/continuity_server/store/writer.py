"""The one writer: it commits on the event loop whatever is to be changed, and tells those who wait when it is on the disk."""

import asyncio
import sqlite3

from continuity_server.store.disk import Change, Disk


class Writer(Disk):
    """Changes the database in groups: a commit for each round of the event loop, and one sync for all commits that wait for the disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []

    async def change(self, change: Change) -> None:
        """DURABLE-02: return when the change is on disk. All changes of one round of the event loop share a commit, or fail together."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            self._wait_from_now()
            loop.call_soon(self._flush)
        self._waiting.append((change, done))
        await done

    def _flush(self) -> None:
        if self._copying or not self._waiting:
            return  # it is called again when the log is copied
        if self._begun():
            self._change_all()

    def _change_all(self) -> None:
        batch, self._waiting = self._waiting, []
        with self._all_or_none(batch):
            for change, _ in batch:
                change()
            self._commit()
            self._changes += len(batch)
            self._committed += [done for _, done in batch]
        self._sync()

    def _refuse(self, error: sqlite3.Error) -> None:
        batch, self._waiting = self._waiting, []
        self._settle([done for _, done in batch], error)
