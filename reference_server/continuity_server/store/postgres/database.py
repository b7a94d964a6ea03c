"""The connections to PostgreSQL: a pool, one way to read, and one way to write.

A read, and a transaction that was not yet to be committed, is tried again for a few seconds if the connection is lost, as when the database restarts. What became of a
COMMIT whose answer did not arrive nobody knows: it is not tried again.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import asyncpg

from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.health import READ, WRITTEN, Health
from continuity_server.store.store import StoreUnreadableError

logger = logging.getLogger("continuity.store")

_CONNECTIONS: Final = 10
"""The most connections of one process."""
_IDLE_SECONDS: Final = 60.0
_CONNECT_SECONDS: Final = 5.0
_STATEMENT_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 5.0
"""How long a lost database is waited for."""
_LOOK_SECONDS: Final = 0.05
_ESCAPE: Final = "\x1a"
_UNSTORABLE: Final = re.compile("[\0\x1a\ud800-\udfff]")
_ESCAPED: Final = re.compile("\x1a([0-9a-f]{4})")

LOST: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
)
"""The errors of a database that is not there now."""
_CROSSED: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""The errors of a transaction that met another one, and may be made again."""
FAILED: Final = (asyncpg.PostgresError, *LOST)

T = TypeVar("T")
Work = Callable[[Any], Awaitable[T]]
"""What is done inside a transaction, with its connection."""


class _Unknown(Exception):  # noqa: N818 - it is no error of its own, and never leaves this module
    """The COMMIT failed, and may have been made all the same."""


def stored(value: object) -> object:
    """Return a value as PostgreSQL can have it: a text there has no NUL and no half of a surrogate pair, and a client's slug may."""
    return _UNSTORABLE.sub(_escaped, value) if isinstance(value, str) else value


def read_back(text: str) -> str:
    """Return a text as it was before `stored`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text


def _escaped(found: "re.Match[str]") -> str:
    return f"{_ESCAPE}{ord(found[0]):04x}"


class Database:
    """One database, with the connections of this process."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.health = Health()
        self.lost = False
        """Whether it was waited for in vain. Nobody waits for it then, until it answers again."""

    @classmethod
    async def open(cls, url: str) -> "Database":
        """Raises one of FAILED, or ValueError for a URL that is none."""
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=_CONNECTIONS,
            max_inactive_connection_lifetime=_IDLE_SECONDS,
            timeout=_CONNECT_SECONDS,
            command_timeout=_STATEMENT_SECONDS,
            reset=_as_it_is,
            server_settings={"application_name": "continuity"},
        )
        return cls(pool)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._pool.close()
        except FAILED:
            self._pool.terminate()

    async def fetch(self, query: str, *values: object) -> list[Any]:
        """Read. Raises StoreUnreadableError."""
        try:
            return await self._patiently(lambda: self._pool.fetch(query, *map(stored, values)))
        except FAILED as error:
            self.health.failed(READ, _reason(error))
            raise StoreUnreadableError from error

    async def execute(self, query: str, *values: object) -> str:
        """Make one statement that may be made twice. Returns what PostgreSQL says about it. Raises one of FAILED."""
        done: str = await self._patiently(lambda: self._pool.execute(query, *map(stored, values)))
        return done

    async def change(self, work: Work[T]) -> T:
        """Do all of some work in one transaction, or nothing of it. Raises StoreUnwritableError."""
        try:
            done = await self._patiently(lambda: self._transaction(work))
        except (*FAILED, _Unknown) as error:
            self.health.failed(WRITTEN, _reason(error))
            raise StoreUnwritableError from error
        self.health.works(WRITTEN)
        return done

    async def _transaction(self, work: Work[T]) -> T:
        async with self._pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                done = await work(connection)
            except BaseException:
                if not connection.is_closed():
                    await transaction.rollback()
                raise
            try:
                await transaction.commit()
            except LOST as error:
                raise _Unknown(str(error)) from error
            return done

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try again while the database is not there, for a few seconds, and at once if two transactions crossed each other."""
        until = time.monotonic() + (0 if self.lost else _PATIENCE_SECONDS)
        while True:
            try:
                done = await attempt()
            except _CROSSED:
                if time.monotonic() > until:
                    raise
            except LOST:
                if time.monotonic() > until:
                    self.lost = True
                    raise
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                self.lost = False
                return done


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


async def _as_it_is(connection: Any) -> None:
    """A connection goes back into the pool as it is: nothing here changes its settings, and to reset them takes a statement."""
