"""Resolving: from what a request names to the place where its turn lands. It reads the store and asks the rules; it writes nothing."""

import logging

from continuity_server.continuity import Rules
from continuity_server.echo import Surface
from continuity_server.errors import Case, Refusal
from continuity_server.lineage import Session
from continuity_server.records import StoredResponse
from continuity_server.store import Store, StoreUnreadableError
from continuity_server.turn import Ask, Place

logger = logging.getLogger("continuity.resolve")


class Resolver:
    """Finds the session of a turn."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self._store = store
        self._rules = rules

    def place(self, ask: Ask) -> Place:
        if ask.surface is Surface.CHAT:
            return self._chat(ask)
        if ask.slug is not None:
            return self._slug(ask, ask.slug)
        if ask.previous is not None:
            return self._previous(ask, ask.previous)
        header = self._rules.header_on_responses(ask.header)
        return self._named(ask.principal, header) if header is not None else self._fresh(ask.principal)

    def _chat(self, ask: Ask) -> Place:
        session, derived = self._rules.chosen_id(ask.header, lambda: self._rules.derived_id(ask.body))
        return self._fresh(ask.principal) if session is None else self._named(ask.principal, session, derived=derived)

    def _fresh(self, principal: str) -> Place:
        """Nothing selects a session: a new one under a minted id."""
        session = self._rules.minted("sess_")
        return Place(self._rules.owner(principal, session), session, session)

    def _named(self, principal: str, session: str, *, derived: bool = False) -> Place:
        owner = self._rules.owner(principal, session)
        try:
            tip = self.tip(owner, session)
        except StoreUnreadableError:
            return Place(owner, session, session, sent=session, derived=derived, chain=session, lost=True)
        if tip is None:
            new = session if derived else self._rules.started(session)
            return Place(owner, new, new, sent=new, derived=derived, chain=new)
        return Place(owner, tip.id, tip.root, sent=session, derived=derived, session=tip, chain=tip.root)

    def tip(self, owner: str, session: str) -> Session | None:
        """COMPRESS-02, -03: a stale id is resolved to the tip before history is read and before the turn is written."""
        start = self._store.session(owner, session)
        return start and self._rules.tip(start, lambda ident: self._store.session(owner, ident))

    def _slug(self, ask: Ask, slug: str) -> Place:
        """SLUG-02 … -05: the slug keeps its session itself, whatever became of the response that it last named."""
        found = self._store.slug_session(ask.principal, slug)
        if found is None:
            return self._new_slug(ask, slug)
        session, response = found
        tip = self.tip(ask.principal, session)
        if tip is None:
            return Place(ask.principal, session, session, slug=slug, chain=session)
        self._same_tip(ask, tip)
        if response is not None and self._is_gone(ask.principal, response):
            logger.info("slug %r goes on in session %s: its last response is gone", slug, tip.id)
        return Place(ask.principal, tip.id, tip.root, session=tip, slug=slug, chain=tip.root)

    def _is_gone(self, owner: str, response: str) -> bool:
        try:
            return self._store.response(owner, response) is None
        except StoreUnreadableError:
            return False

    def _new_slug(self, ask: Ask, slug: str) -> Place:
        """SLUG-01: a fresh session; or the header's, if that has no slug yet."""
        header = self._rules.header_on_responses(ask.header)
        if header is None:
            session = self._rules.minted("sess_")
            return Place(ask.principal, session, session, slug=slug, chain=session)
        named = self._named(ask.principal, header)
        if self._store.slug_of(named.owner, named.root) is not None:
            message = "The session that the header names belongs to another conversation. Leave one of the two out."
            raise Refusal(Case.SESSION_CONFLICT, message, param="conversation")
        return Place(
            named.owner, named.tip, named.root, sent=header, session=named.session, slug=slug, chain=named.chain
        )

    def _previous(self, ask: Ask, previous: str) -> Place:
        """SLUG-07, -13: the newest response continues its session, an older one branches there, an unknown one is 404."""
        row = self._store.response(ask.principal, previous)
        session = self._store.session(ask.principal, row.session) if row else None
        if row is None or session is None:
            message = "There is no response with the id given in previous_response_id. Start anew, or name another."
            raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, message, param="previous_response_id")
        tip = self.tip(ask.principal, session.id) or session
        self._same_tip(ask, tip)
        if self._is_newest(ask.principal, session, row):
            return Place(ask.principal, session.id, session.root, session=session, chain=session.root)
        branch = self._rules.minted("sess_")
        return Place(ask.principal, branch, branch, branch_from=(session, row), chain=session.root)

    def _is_newest(self, owner: str, session: Session, row: StoredResponse) -> bool:
        line = self._rules.line(session.id, Surface.RESPONSES)
        newest = self._store.last_message(owner, line, session.epoch)
        return session.next is None and session.epoch == row.epoch and newest == row.upto

    def _same_tip(self, ask: Ask, tip: Session) -> None:
        """ECHO-11: a header beside a slug or a response id must resolve to the same tip."""
        header = self._rules.header_on_responses(ask.header)
        if header is None:
            return
        named = self.tip(ask.principal, header)
        if named is None or named.id != tip.id:
            message = "The header and the body name two sessions. Leave one of the two out."
            raise Refusal(Case.SESSION_CONFLICT, message)
