"""The one writer: it commits on the event loop whatever is to be changed, and tells those who wait when it is on the disk."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence

from continuity_server.store.wal import Wal

logger = logging.getLogger("continuity.store")

Change = Callable[[], object]


class StoreUnwritableError(Exception):
    """The store cannot be written now."""


class Writer:
    """Changes the database in groups: a commit for each round of the event loop, and one sync for all commits that wait for the disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._wal = Wal(connection)
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self._committed: list[asyncio.Future[None]] = []
        self._syncing = False
        self._sync_failed = False

    def close(self) -> None:
        self._wal.close()

    def check(self) -> None:
        """Raise StoreUnwritableError if nothing could be changed now."""
        try:
            self._begin()
            self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreUnwritableError from error

    async def change(self, change: Change) -> None:
        """DURABLE-02: return when the change is on disk. All changes of one round of the event loop share a commit, or fail together."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((change, done))
        await done

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        try:
            self._begin()
            for change, _ in batch:
                change()
            self._commit()
        except sqlite3.Error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            _settle([done for _, done in batch], failed=True)
            return
        self._committed += [done for _, done in batch]
        self._sync()

    def _sync(self) -> None:
        """DURABLE-02: wait for the disk. What is committed meanwhile shares the next sync."""
        if self._syncing or not self._committed:
            return
        batch, self._committed, self._syncing = self._committed, [], True
        self._wal.synced().add_done_callback(lambda synced: self._synced(batch, synced.exception()))

    def _synced(self, batch: Sequence[asyncio.Future[None]], error: BaseException | None) -> None:
        if error is not None:
            logger.error(
                "the disk failed, and nobody knows what is on it. Nothing is stored until a restart: %s", error
            )
            self._sync_failed = True
        self._syncing = False
        _settle(batch, failed=self._sync_failed)
        self._sync()

    def _begin(self) -> None:
        if self._sync_failed:
            raise sqlite3.OperationalError("the disk failed before")
        self._connection.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._connection.execute("COMMIT")


def _settle(batch: Sequence[asyncio.Future[None]], *, failed: bool) -> None:
    """Tell those who wait what became of their change. One that was cancelled waits no longer."""
    for done in batch:
        if done.done():
            continue
        if failed:
            done.set_exception(StoreUnwritableError())
        else:
            done.set_result(None)
