"""DELETE: which sessions are deleted together. Pure: rows come as records."""

from collections.abc import Iterable

from continuity_server.rules.compress import Session


class DeleteRules:
    """The rule about deleted sessions."""

    def deleted_with(self, named: Session, family: Iterable[Session]) -> list[str]:
        """DELETE-01: the whole compression chain. Forks and branches have roots of their own, and stay."""
        return [session.id for session in family if session.root == named.root]
