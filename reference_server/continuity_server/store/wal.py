"""The write-ahead log of SQLite: who waits for it to be on the disk. It is a thread, so that the event loop need not.

SQLite with `synchronous=FULL` syncs the log inside each COMMIT, and everything else stands still meanwhile. With NORMAL it only writes the log, and this class
syncs it afterwards: DURABLE-02 holds as before, because a turn is answered after the sync, and one sync covers all commits before it.
"""

import asyncio
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Final

_sync: Final = getattr(os, "fdatasync", os.fsync)


class Wal:
    """The log of one database. A database in memory, or with another kind of journal, has none: SQLite itself then does all there is to do."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wal")
        self._file = _opened(connection)
        if self._file is not None:
            connection.execute("PRAGMA synchronous=NORMAL")

    def synced(self) -> asyncio.Future[None]:
        """Return a future that is done when all that was committed before is on the disk."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._sync)

    def close(self) -> None:
        self._thread.shutdown()
        if self._file is not None:
            os.close(self._file)

    def _sync(self) -> None:
        if self._file is not None:
            _sync(self._file)


def database_file(connection: sqlite3.Connection) -> str:
    """Return the path of a database; an empty text if it is in memory."""
    [(_, _, path), *_] = connection.execute("PRAGMA database_list").fetchall()
    return str(path)


def _opened(connection: sqlite3.Connection) -> int | None:
    path = database_file(connection)
    try:
        return os.open(f"{path}-wal", os.O_RDWR) if path else None
    except FileNotFoundError:
        return None
