"""What several defects need: a resolver that takes a session for another principal's, and a store that knows who has what."""

from dataclasses import replace

from continuity_server.rules.compress import Session
from continuity_server.store.store import Store
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination


class OtherOwner(Resolver):
    """A resolver that asks `owner` whose session an id names."""

    def owner(self, principal: str, session: str) -> str:
        raise NotImplementedError

    def find(self, principal: str, session: str) -> Session | None:
        return super().find(self.owner(principal, session), session)

    def _fresh(self, principal: str) -> Destination:
        fresh = super()._fresh(principal)
        return replace(fresh, owner=self.owner(principal, fresh.tip))

    def _named(self, owner: str, session: str, *, derived: bool = False) -> Destination:
        return super()._named(self.owner(owner, session), session, derived=derived)


class OpenStore(Store):
    """A store that tells who has a response or a session."""

    def holder(self, ident: str) -> str | None:
        query = "SELECT owner FROM responses WHERE response_id=?1 UNION ALL SELECT owner FROM sessions WHERE id=?1"
        rows = self._read(query, ident)
        return rows[0][0] if rows else None

    def almost(self, ident: str) -> tuple[str, str] | None:
        """Return the owner and the id of a response whose id differs at most in its last three characters."""
        query = "SELECT owner, response_id FROM responses WHERE substr(response_id, 1, length(response_id) - 3)=?1"
        rows = self._read(query, ident[:-3])
        return (rows[0][0], rows[0][1]) if rows else None
