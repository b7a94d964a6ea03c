"""Tips: where a chain of compressed sessions ended when somebody last walked along it.

A client may name the oldest session of a long chain in every turn. The walk to its tip is then made once after each compression, not in every turn.
"""

from typing import Final

from continuity_server.rules.compress import Session
from continuity_server.store.interface import AnyStore

_MOST: Final = 10_000

Link = tuple[str, str, str | None]
"""The owner and the id of a session, and the session that it went on in."""


class Tips:
    """Remembers the tip of every session that was asked for, until somebody changes a link."""

    def __init__(self, store: AnyStore) -> None:
        self._store = store
        self._known: dict[Link, str] = {}
        self._links: object = None

    def nearest(self, start: Session) -> Session:
        """Return where the walk begins: at the tip, if it is known and still one, or at the session itself."""
        known = self._known_tip(start) if start.next is not None else None
        tip = self._store.session(start.owner, known) if known is not None else None
        return tip if tip is not None and tip.next is None else start

    def remember(self, start: Session, tip: Session) -> None:
        """Note a tip. One that has a next session is none for long: there is a cycle, or a session is missing."""
        if start.next is None or tip.next is not None:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[start.owner, start.id, start.next] = tip.id

    def _known_tip(self, start: Session) -> str | None:
        links = self._store.links_version()
        if links != self._links:
            self._links = links
            self._known.clear()
        return self._known.get((start.owner, start.id, start.next))
