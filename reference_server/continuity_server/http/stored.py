"""What the endpoints about stored sessions and conversations share: their parts, and which sessions a deletion removes."""

import asyncio

from continuity_server.http.request import Access
from continuity_server.model.workspace import Workspace
from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.interface import AnyStore
from continuity_server.turn.locks import Locks
from continuity_server.turn.resolve import Resolver


class StoredHandler:
    """A handler that reads and deletes what is stored."""

    def __init__(  # noqa: PLR0913 - a deletion touches all of them
        self, rules: Rules, access: Access, store: AnyStore, resolver: Resolver, locks: Locks, *, workspace: Workspace
    ) -> None:
        self._rules = rules
        self._access = access
        self._store = store
        self._resolver = resolver
        self._locks = locks
        self._workspace = workspace

    def _deleted_with(self, session: Session) -> list[str]:
        """DELETE-01: the sessions that go with this one."""
        return self._rules.deleted_with(session, self._store.family(session.owner, session.root))

    async def _delete_environment(self, session: Session) -> None:
        """ENV-04: the files go before the conversation does. While they cannot be deleted, the deletion is refused, and can be tried again."""
        environment = self._rules.deleted_environment(session.owner, session.root)
        if environment is None:
            return
        try:
            await asyncio.to_thread(self._workspace.delete, environment)
        except OSError as error:
            raise StoreUnwritableError(f"the workspace cannot be deleted: {error}") from error
