"""DELETE: what goes with a session that is deleted. Pure: rows come as records."""

from collections.abc import Iterable
from enum import Enum

from continuity_server.rules.compress import Session


class Trace(Enum):
    """Where a session leaves something."""

    MESSAGES = "messages"
    SLUGS = "slugs"
    RESPONSES = "responses"
    REPLAYS = "replays"
    SESSION = "the session itself"


class DeleteRules:
    """The rules about deleted sessions."""

    def deleted_with(self, named: Session, family: Iterable[Session]) -> list[str]:
        """DELETE-01: the whole compression chain. Forks and branches have roots of their own, and stay."""
        return [session.id for session in family if session.root == named.root]

    def erased(self) -> frozenset[Trace]:
        """DELETE-01: its content is not shown again by id, ancestor, slug, response or replay."""
        return frozenset(Trace)
