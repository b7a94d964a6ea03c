"""The disk under the writer: it may be slow, full, read-only or gone, and another process may have the database locked.

Nothing here waits on the event loop: what takes long is done by the thread of `wal.py`.
"""

import asyncio
import logging
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from continuity_server.store.health import WRITTEN, Health
from continuity_server.store.wal import FilesChangedError, Wal, write_nothing

logger = logging.getLogger("continuity.store")

LOCKED_SECONDS: Final = 5.0
"""How long a change waits for a database that another process has locked."""
LOOK_SECONDS: Final = 0.01
CHANGES_A_LOG: Final = 200
"""After so many changes the log is copied into the database, so that it does not grow for ever. A turn has about five pages."""

Change = Callable[[], object]


class StoreUnwritableError(Exception):
    """The store cannot be written now."""


class Disk(ABC):
    """Begins, commits and syncs, and tells those who wait what became of their change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.health = Health()
        self._connection = connection
        self._wal = Wal(connection)
        self._committed: list[asyncio.Future[None]] = []
        self._waiting_since = 0.0
        self._locked_since: float | None = None
        self._changes = 0
        self._syncing = False
        self._copying = False
        self._sync_failed = False
        self._try_to_write()

    @abstractmethod
    def _flush(self) -> None:
        """Commit what waits."""

    @abstractmethod
    def _refuse(self, error: sqlite3.Error) -> None:
        """Refuse what waits."""

    @contextmanager
    def _all_or_none(self, batch: Sequence[tuple[Change, asyncio.Future[None]]]) -> Iterator[None]:
        """Whatever a change raises, nobody waits for ever, and nothing of it is committed."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - those who wait are told
            self._roll_back()
            self._settle([done for _, done in batch], error)

    def _wait_from_now(self) -> None:
        self._waiting_since = time.monotonic()

    def _begun(self) -> bool:
        """Begin a transaction. If the database is locked, `_flush` is called again a moment later; if it cannot be used, what waits is refused."""
        try:
            self._begin()
        except sqlite3.Error as error:
            if self._is_locked(error) and time.monotonic() < self._waiting_since + LOCKED_SECONDS:
                asyncio.get_running_loop().call_later(LOOK_SECONDS, self._flush)
            else:
                self._refuse(error)
            return False
        return True

    def close(self) -> None:
        self._wal.close()

    def look(self) -> None:
        """For GET /health: note what is wrong now, also if nobody writes."""
        try:
            self._wal.check()
        except sqlite3.Error as error:
            self.health.failed(WRITTEN, error)
        if self._locked_since is not None and time.monotonic() - self._locked_since > 1:
            self.health.failed(WRITTEN, "another process has it locked")

    async def check(self) -> None:
        """HISTORY-14: raise StoreUnwritableError if nothing could be changed now. A database that is locked is waited for."""
        until = time.monotonic() + LOCKED_SECONDS
        while (error := self._obstacle()) is not None:
            if not self._is_locked(error) or time.monotonic() > until:
                self.health.failed(WRITTEN, error)
                raise StoreUnwritableError from error
            await asyncio.sleep(LOOK_SECONDS)

    def _obstacle(self) -> sqlite3.Error | None:
        """Return why nothing can be written now. After a failure only a write shows that it is over."""
        try:
            self._wal.check()
            self._begin()
            if self.health.writes_failed:
                write_nothing(self._connection)
                self._commit()
                self.health.works(WRITTEN)
            else:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._roll_back()
            return error
        return None

    def _sync(self) -> None:
        """DURABLE-02: wait for the disk. What is committed meanwhile shares the next sync."""
        if self._syncing or not self._committed:
            return
        batch, self._committed, self._syncing = self._committed, [], True
        self._wal.synced().add_done_callback(lambda synced: self._synced(batch, synced.exception()))

    def _synced(self, batch: Sequence[asyncio.Future[None]], error: BaseException | None) -> None:
        """If the disk failed, nobody knows what is on it. So nothing is stored until a restart. Files that are gone may be put back."""
        if error is not None:
            logger.error("the disk failed, and turns that are refused now may be stored all the same: %s", error)
        self._syncing = False
        self._sync_failed = self._sync_failed or not isinstance(error, FilesChangedError | None)
        self._settle(batch, sqlite3.OperationalError("the disk failed") if self._sync_failed or error else None)
        self._sync()
        if self._changes >= CHANGES_A_LOG and not self._copying:
            self._changes, self._copying = 0, True
            self._wal.copied().add_done_callback(self._copied)

    def _copied(self, copied: asyncio.Future[None]) -> None:
        """Go on. Nothing was committed meanwhile: SQLite would have begun the new log on the event loop."""
        if (error := copied.exception()) is not None:
            logger.warning("the log of the database could not be copied now: %s", error)
        self._copying = False
        self._flush()

    def _try_to_write(self) -> None:
        """Learn at the start whether the file may be written: SQLite opens one that may not without a word."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            write_nothing(self._connection)
        except sqlite3.Error as error:
            if not self._is_locked(error):
                self.health.failed(WRITTEN, error)
        self._roll_back()

    def _begin(self) -> None:
        if self._sync_failed:
            raise sqlite3.OperationalError("the disk failed before; restart the server")
        self._connection.execute("BEGIN IMMEDIATE")
        self._locked_since = None

    def _commit(self) -> None:
        self._connection.execute("COMMIT")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _settle(self, batch: Sequence[asyncio.Future[None]], error: Exception | None) -> None:
        """Tell those who wait what became of their change. One that was cancelled waits no longer."""
        if error is None:
            self.health.works(WRITTEN)
        elif isinstance(error, sqlite3.Error):
            self.health.failed(WRITTEN, error)
        for done in [done for done in batch if not done.done()]:
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(StoreUnwritableError() if isinstance(error, sqlite3.Error) else error)

    def _is_locked(self, error: sqlite3.Error) -> bool:
        """Whether another process has the database locked, which passes. Notes since when."""
        locked: bool = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
        if locked and self._locked_since is None:
            self._locked_since = time.monotonic()
        return locked
