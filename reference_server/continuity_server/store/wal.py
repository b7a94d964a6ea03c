"""The write-ahead log of SQLite: who waits for it to be on the disk. It is a thread, so that the event loop need not.

SQLite with `synchronous=FULL` syncs the log inside each COMMIT, and everything else stands still meanwhile. With NORMAL it only writes the log, and this class
syncs it afterwards: DURABLE-02 holds as before, because a turn is answered after the sync, and one sync covers all commits before it. What SQLite itself syncs with
NORMAL happens when the log is copied into the database and begun anew: this class does both, in the same thread.
"""

import asyncio
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

_sync: Final = getattr(os, "fdatasync", os.fsync)
_MAGIC: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
"""How a log begins. SQLite writes this first; a log without it is lost at the next start."""
_WAIT_SECONDS: Final = 0.1


class FilesChangedError(sqlite3.OperationalError):
    """Somebody has deleted or replaced a file of the database."""


class Wal:
    """The log of one database. A database in memory, or with another kind of journal, has none: SQLite itself then does all there is to do."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wal")
        path = database_file(connection)
        self._path, self._log = Path(path), Path(f"{path}-wal")
        self._file = _opened(self._log) if path else None
        self._copying: sqlite3.Connection | None = None
        if self._file is not None:
            self._database = self._path.stat()
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint=0")

    def synced(self) -> asyncio.Future[None]:
        """Return a future that is done when all that was committed before is on the disk."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._sync)

    def copied(self) -> asyncio.Future[None]:
        """Return a future that is done when the log was copied into the database, and begun anew."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._copy)

    def check(self) -> None:
        """Raise FilesChangedError if the files under these names are no longer those that are open: nobody would find there what is written now."""
        if self._file is None:
            return
        try:
            same = os.path.samestat(self._path.stat(), self._database)
            same = same and os.path.samestat(self._log.stat(), os.fstat(self._file))
        except OSError:
            same = False
        if not same:
            raise FilesChangedError("its files were deleted or replaced; put them back, or restart the server")

    def close(self) -> None:
        self._thread.shutdown()
        if self._copying is not None:
            self._copying.close()
        if self._file is not None:
            os.close(self._file)

    def _sync(self) -> None:
        if self._file is None:
            return
        _sync(self._file)
        self.check()
        if os.pread(self._file, 4, 0) not in _MAGIC:
            raise OSError("the log was emptied")

    def _copy(self) -> None:
        """Copy the log, and write to the new one first, because SQLite syncs the beginning of a log. The version is ours, and stays what it is."""
        if self._file is None:
            return
        if self._copying is None:
            self._copying = sqlite3.connect(
                self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
        self._copying.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        write_nothing(self._copying)


def write_nothing(connection: sqlite3.Connection) -> None:
    """Write to a database without changing it."""
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    connection.execute(f"PRAGMA user_version={version}")


def database_file(connection: sqlite3.Connection) -> str:
    """Return the path of a database; an empty text if it is in memory."""
    [(_, _, path), *_] = connection.execute("PRAGMA database_list").fetchall()
    return str(path)


def _opened(log: Path) -> int | None:
    try:
        return os.open(log, os.O_RDWR)
    except (FileNotFoundError, PermissionError):
        return None
