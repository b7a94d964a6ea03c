"""Resolving: from what a request names to the place where its turn lands. It reads the store and asks the rules; it writes nothing."""

from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.isolate import Act
from continuity_server.store.records import StoredResponse, StoredSlug
from continuity_server.store.store import Store, StoreUnreadableError
from continuity_server.turn.types import Destination, TurnRequest


class Resolver:
    """Finds the session of a turn."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self._store = store
        self._rules = rules

    def place(self, ask: TurnRequest) -> Destination:
        if ask.surface is Surface.CHAT:
            return self._chat(ask)
        if ask.slug is not None:
            return self._slug(ask, ask.slug)
        if ask.previous is not None:
            return self._previous(ask, ask.previous)
        header = self._rules.header_on_responses(ask.header)
        return self._named(ask.principal, header) if header is not None else self._fresh(ask.principal)

    def _chat(self, ask: TurnRequest) -> Destination:
        session, derived = self._rules.chosen_id(ask.header, lambda: self._rules.derived_id(ask.body))
        return self._fresh(ask.principal) if session is None else self._named(ask.principal, session, derived=derived)

    def _fresh(self, principal: str) -> Destination:
        """Nothing selects a session: a new one under a minted id."""
        session = self._rules.minted("sess_")
        return Destination(self._rules.owner(principal, session), session, session)

    def _named(self, principal: str, session: str, *, derived: bool = False) -> Destination:
        owner, rules = self._rules.owner(principal, session), self._rules
        try:
            start = self._store.session(owner, session)
            tip = start and self._tip(owner, start)
        except StoreUnreadableError:
            return Destination(owner, session, session, sent=session, derived=derived, chain=session, lost=True)
        if start is None or tip is None:
            new = session if derived else rules.started(session)
            return Destination(owner, new, new, sent=new, derived=derived, chain=new)
        read, written = rules.read_from(start, tip), rules.written_to(start, tip, derived=derived)
        return Destination(owner, written.id, written.root, sent=session, derived=derived, session=read, chain=tip.root)

    def tip(self, owner: str, session: str) -> Session | None:
        """COMPRESS-02, -03: a stale id is resolved to the tip before history is read and before the turn is written."""
        start = self._store.session(owner, session)
        return start and self._tip(owner, start)

    def _tip(self, owner: str, start: Session) -> Session:
        return self._rules.tip(start, lambda ident: self._store.session(owner, ident))

    def _slug(self, ask: TurnRequest, slug: str) -> Destination:
        """SLUG-02 … -06: the slug keeps its session itself, whatever became of the response that it last named."""
        owner, name = self._rules.slug_owner(ask.principal, slug), self._rules.slug_name(slug)
        found = self._rules.known_slug(self._store.slug(owner, name))
        session = self._slug_session(found) if found is not None else None
        if found is None or session is None:
            return self._new_slug(ask, owner, name)
        tip = self._slug_tip(owner, session)
        if tip is None:
            return Destination(owner, session, session, slug=name, chain=session, old_slug=found.old)
        self._same_tip(ask, tip)
        return Destination(
            owner, tip.id, tip.root, session=tip, slug=name, chain=tip.root, old_slug=found.old,
            response_gone=found.response_gone,
        )  # fmt: skip

    def _slug_session(self, found: StoredSlug) -> str | None:
        """MIGRATE-04: a slug whose session nobody knows is refused, not forked."""
        if found.session is None:
            self._rules.orphan()
            return None
        return self._rules.without_response(found.session) if found.response_gone else found.session

    def _slug_tip(self, owner: str, session: str) -> Session | None:
        """SLUG-11: the slug follows the tip."""
        tip = self.tip(owner, session)
        return self._store.session(owner, self._rules.slug_follows(session, tip.id)) if tip else None

    def _new_slug(self, ask: TurnRequest, owner: str, name: str) -> Destination:
        """SLUG-01: a fresh session; or the header's, if that has no slug yet."""
        header = self._rules.header_on_responses(ask.header)
        if header is None:
            session = self._rules.new_slug_session(self._rules.minted("sess_"))
            return Destination(owner, session, session, slug=name, chain=session)
        named = self._named(ask.principal, header)
        if self._store.slug_of(named.owner, named.root) is not None:
            message = "The session that the header names belongs to another conversation. Leave one of the two out."
            raise Refusal(Case.SESSION_CONFLICT, message, param="conversation")
        return Destination(
            named.owner, named.tip, named.root, sent=header, session=named.session, slug=name, chain=named.chain
        )

    def _previous(self, ask: TurnRequest, previous: str) -> Destination:
        """SLUG-07, -13: the newest response continues its session, an older one branches there, an unknown one is 404."""
        owner = self._rules.whose(ask.principal, previous, Act.CONTINUE, lambda: self._store.holder(previous))
        found = self._rules.continued(self._anchor(owner, previous))
        if found is None:
            return self._fresh(owner)
        row, session = found
        self._same_tip(ask, self.tip(owner, session.id) or session)
        if self._is_newest(owner, session, row):
            return Destination(owner, session.id, session.root, session=session, chain=session.root)
        branch = self._rules.branch_session(session.id, self._rules.minted("sess_"))
        return Destination(owner, branch, branch, branch_from=(session, row), chain=session.root)

    def _anchor(self, owner: str, response: str) -> tuple[StoredResponse, Session] | None:
        row = self._store.response(owner, response)
        session = self._store.session(owner, row.session) if row and row.session else None
        return (row, session) if row and session else None

    def _is_newest(self, owner: str, session: Session, row: StoredResponse) -> bool:
        line = self._rules.line(session.id, Surface.RESPONSES)
        newest = self._store.last_message(owner, line, session.epoch)
        return session.next is None and session.epoch == row.epoch and newest == row.upto

    def _same_tip(self, ask: TurnRequest, tip: Session) -> None:
        """ECHO-11: a header beside a slug or a response id must resolve to the same tip."""
        header = self._rules.header_on_responses(ask.header)
        if header is None:
            return
        named = self.tip(ask.principal, header)
        if named is None or named.id != tip.id:
            message = "The header and the body name two sessions. Leave one of the two out."
            raise Refusal(Case.SESSION_CONFLICT, message)
