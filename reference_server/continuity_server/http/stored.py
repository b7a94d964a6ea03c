"""What the endpoints about stored sessions and conversations share: their parts, and which sessions a deletion removes."""

from continuity_server.http.request import Access
from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.store.interface import AnyStore
from continuity_server.turn.locks import Locks
from continuity_server.turn.resolve import Resolver


class StoredHandler:
    """A handler that reads and deletes what is stored."""

    def __init__(self, rules: Rules, access: Access, store: AnyStore, resolver: Resolver, locks: Locks) -> None:
        self._rules = rules
        self._access = access
        self._store = store
        self._resolver = resolver
        self._locks = locks

    def _deleted_with(self, session: Session) -> list[str]:
        """DELETE-01: the sessions that go with this one."""
        return self._rules.deleted_with(session, self._store.family(session.owner, session.root))
