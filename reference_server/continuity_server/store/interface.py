"""What the rest of the server needs of a store. There are two: SQLite (`store.py`) and PostgreSQL (`postgres/store.py`).

A read is a plain call in both. On SQLite it takes microseconds. On PostgreSQL it lets other turns run meanwhile (`postgres/waiting.py`).
"""

from collections.abc import Hashable, Sequence
from typing import Protocol

from continuity_server.rules.compress import Session
from continuity_server.rules.messages import Message
from continuity_server.store.faults import Fault
from continuity_server.store.histories import LAST
from continuity_server.store.records import Replay, StoredConversation, StoredResponse, StoredSlug, Write


class TurnLocks(Protocol):
    """Locks that all processes on one database share."""

    def take(self, name: Hashable, *, queue: bool) -> bool:
        """Take a lock, unless another process has it. One that waits calls this again, until it has the lock or leaves."""

    def leave(self, name: Hashable) -> None:
        """Give a lock back, or wait for it no longer."""


class StoreFaults(Protocol):
    """Faults that the control API can switch on. The database itself then refuses statements."""

    def set(self, fault: Fault, *, on: bool) -> None:
        """Switch a fault on or off."""


class AnyStore(Protocol):
    """Sessions, messages, responses, slugs and replays of every principal. What cannot be read is StoreUnreadableError, what cannot be written StoreUnwritableError."""

    @property
    def locks(self) -> TurnLocks: ...

    @property
    def faults(self) -> StoreFaults: ...

    async def backfill(self) -> None:
        """MIGRATE-06: complete what a program with the old schema wrote meanwhile, before anybody asks for it."""

    def failures(self) -> list[str]:
        """Return what cannot be done now, for GET /health: `read`, `written`."""

    def session(self, owner: str, session: str) -> Session | None: ...

    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:
        """Return a page of a principal's sessions, the newest first."""

    def family(self, owner: str, root: str) -> list[Session]:
        """Return a chain, the oldest session first, and whatever was forked or branched from it."""

    def messages(self, owner: str, session: str, epoch: int, upto: int = LAST) -> list[Message]: ...

    def links_version(self) -> object:
        """Return a value that changes with any link between sessions, and when another process has written."""

    def last_message(self, owner: str, session: str, epoch: int) -> int: ...

    def response(self, owner: str, response: str) -> StoredResponse | None: ...

    def slug(self, owner: str, name: str) -> StoredSlug | None: ...

    def slug_of(self, owner: str, root: str) -> str | None:
        """Return the slug of a chain."""

    def conversation(self, owner: str, ident: str) -> StoredConversation | None: ...

    def replay(self, owner: str, scope: str, key: str) -> Replay | None: ...

    async def check_writable(self) -> None:
        """Raise StoreUnwritableError if a turn could not be stored now, so that it is refused before the model is asked."""

    async def commit(self, write: Write) -> None:
        """Store one turn, all of it or nothing."""

    async def touch(self, owner: str, response: str) -> None:
        """Note that a response was read."""

    async def delete_sessions(self, owner: str, sessions: Sequence[str]) -> None:
        """Delete these sessions together, with everything that belongs to them."""

    async def delete_response(self, owner: str, response: str) -> None: ...

    async def add_conversation(self, owner: str, made: StoredConversation) -> None: ...

    async def delete_conversation(self, owner: str, conversation: str, sessions: Sequence[str]) -> None:
        """Delete a conversation object together with these sessions, and so with its slug."""

    async def evict(self, owner: str, response: str) -> None:
        """Remove a response as the cache does: its slug stays as it is."""

    async def mark_for_compression(self, owner: str, session: str) -> None:
        """Make the next turn of a session compress it."""

    async def link(self, owner: str, session: str, following: str | None) -> None:
        """Set the compression child of a session; None makes the session its own tip again."""
