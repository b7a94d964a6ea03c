"""Locks that all server processes on one PostgreSQL share: rows that name their holder, and the time when each holder was last alive.

A process that does not say that it lives for a few seconds has lost its locks. It may not know that yet, as after a SIGSTOP. So the transaction of a turn looks, with
the rows locked, whether the turn still has its locks, and stores nothing if not (`check_held`).
"""

import asyncio
import logging
import secrets
from collections.abc import Hashable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.postgres.database import FAILED, Database, stored
from continuity_server.store.postgres.waiting import waited
from continuity_server.store.store import StoreUnreadableError

logger = logging.getLogger("continuity.locks")

_LEASE: Final = "interval '4 seconds'"
"""How long a process that says nothing keeps its locks."""
_BEAT_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.005
_LONGEST_POLL_SECONDS: Final = 0.04

_ALIVE: Final = f"(SELECT id FROM replicas WHERE seen > now() - {_LEASE})"  # noqa: S608 - the texts are ours
_TAKE: Final = f"""
INSERT INTO turn_locks AS held (name, holder, taking) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder=$2, taking=$3, waiting=NULL
WHERE (held.holder IS NULL OR held.holder=$2 OR held.holder NOT IN {_ALIVE})
AND (held.waiting IS NULL OR held.waiting=$2 OR held.waiting NOT IN {_ALIVE})
"""  # noqa: S608 - the texts are ours
_WAIT: Final = f"UPDATE turn_locks SET waiting=$2 WHERE name=$1 AND (waiting IS NULL OR waiting NOT IN {_ALIVE})"  # noqa: S608
_LEAVE: Final = "DELETE FROM turn_locks WHERE name=$1 AND taking=$3 AND (waiting IS NULL OR waiting=$2)"
_LEAVE_TO_NEXT: Final = """
UPDATE turn_locks SET holder=CASE WHEN taking=$3 THEN NULL ELSE holder END, taking=CASE WHEN taking=$3 THEN NULL ELSE taking END,
    waiting=CASE WHEN waiting=$2 THEN NULL ELSE waiting END
WHERE name=$1
"""
_BEAT: Final = """
INSERT INTO replicas (id, seen) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET seen=excluded.seen
"""
_OURS: Final = "SELECT name, holder, taking FROM turn_locks WHERE holder=$1 OR waiting=$1"
_GONE: Final = "DELETE FROM replicas WHERE seen < now() - interval '10 minutes'"
_LEFT_BEHIND: Final = """
DELETE FROM turn_locks WHERE (holder IS NULL OR holder NOT IN (SELECT id FROM replicas))
AND (waiting IS NULL OR waiting NOT IN (SELECT id FROM replicas))
"""
_HELD: Final = (
    "SELECT name FROM turn_locks WHERE name = ANY($1::text[]) AND taking = ANY($2::text[]) ORDER BY name FOR UPDATE"
)

_OF_TURN: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("the locks of the running turn", default=())
"""Their names, and the ids that their rows have as long as the turn has them."""


@dataclass(slots=True)
class _Taking:
    """One turn that takes a lock: its id in the row, and how often it asked for it."""

    id: str = field(default_factory=lambda: secrets.token_hex(16))
    tries: int = 0


class LeasedLocks:
    """The locks of this process. `Locks` of the turns lets one turn of this process at a time ask for a name."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._holder = secrets.token_hex(16)
        self._takings: dict[str, _Taking] = {}
        """What this process holds or waits for, by name."""
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Say for the first time that this process lives, and then again and again. Raises one of FAILED."""
        await self._beat()
        self._beating = asyncio.create_task(self._beat_for_ever())

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
        with suppress(*FAILED):
            await self._database.execute("DELETE FROM turn_locks WHERE holder=$1", self._holder)
            await self._database.execute("DELETE FROM replicas WHERE id=$1", self._holder)

    def take(self, name: Hashable, *, queue: bool) -> bool:
        """Take a lock, unless another process has it. `queue`: of the processes that wait for it, one is the next.

        Without a database there is nothing to wait for: the turn goes on, and `check_held` lets it store nothing.
        """
        text = _text(name)
        try:
            taken = waited(self._taken(text, queue=queue))
        except FAILED as error:
            logger.warning("a lock could not be taken: %s", type(error).__name__)
            taken = True
        if taken:
            _OF_TURN.set((*_OF_TURN.get(), (text, self._takings[text].id)))
        return taken

    def leave(self, name: Hashable) -> None:
        """Give a lock back, or wait for it no longer. If that fails, the next beat does it."""
        text = _text(name)
        taking = self._takings.pop(text, None)
        if taking is None:  # it was not even asked for
            return
        _OF_TURN.set(tuple(held for held in _OF_TURN.get() if held[1] != taking.id))
        with suppress(*FAILED):
            waited(self._left(text, taking.id))

    async def check_held(self, connection: Any) -> None:
        """CONCUR-06: raise StoreUnwritableError unless the running turn still has all its locks. Nobody takes them before the transaction ends."""
        held = _OF_TURN.get()
        names, takings = [name for name, _ in held], [taking for _, taking in held]
        if held and len(await connection.fetch(_HELD, names, takings)) < len(held):
            logger.warning(
                "a turn took so long, or the database was away so long, that another process may have gone on with its session: it is not stored"
            )
            raise StoreUnwritableError

    async def _taken(self, text: str, *, queue: bool) -> bool:
        taking = self._takings.setdefault(text, _Taking())
        if taking.tries:
            await asyncio.sleep(min(_POLL_SECONDS * taking.tries, _LONGEST_POLL_SECONDS))
        taking.tries += 1
        if _changed(await self._database.execute(_TAKE, text, self._holder, taking.id)):
            return True
        if queue:
            await self._database.execute(_WAIT, text, self._holder)
        return False

    async def _left(self, text: str, taking: str) -> None:
        if not _changed(await self._database.execute(_LEAVE, text, self._holder, taking)):
            await self._database.execute(_LEAVE_TO_NEXT, text, self._holder, taking)

    async def _beat_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            try:
                async with asyncio.timeout(_BEAT_SECONDS * 4):
                    await self._beat()
            except (*FAILED, StoreUnreadableError) as error:
                logger.warning("the database cannot be told that this process lives: %s", type(error).__name__)

    async def _beat(self) -> None:
        """Say that this process lives, and give back what it has by mistake: a lock whose return failed."""
        await self._database.execute(_BEAT, self._holder)
        for name, holder, taking in await self._database.fetch(_OURS, self._holder):
            known = self._takings.get(name)
            # The id that was read is given back. A turn that takes the same name meanwhile has another one.
            if known is None or (holder == self._holder and taking != known.id):
                await self._left(name, taking if holder == self._holder else "")
        await self._database.execute(_GONE)
        await self._database.execute(_LEFT_BEHIND)


def _text(name: Hashable) -> str:
    return str(stored(repr(name)))


def _changed(done: str) -> bool:
    """Whether a statement changed a row: PostgreSQL says `UPDATE 1`."""
    return not done.endswith(" 0")
