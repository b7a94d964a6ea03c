"""Resolving: from what a request names to the destination of its turn. It reads the store and asks the rules; it writes nothing."""

from dataclasses import replace

from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.store.interface import AnyStore
from continuity_server.store.records import StoredResponse, StoredSlug
from continuity_server.store.store import StoreUnreadableError
from continuity_server.turn.tips import Tips
from continuity_server.turn.types import Destination, TurnRequest


class Resolver:
    """Finds the session of a turn. ISOLATE-06: sessions are looked up by principal and id, so nobody finds the session of another principal."""

    def __init__(self, store: AnyStore, rules: Rules) -> None:
        self._store = store
        self._rules = rules
        self._tips = Tips(store)

    def find(self, principal: str, session: str) -> Session | None:
        """Return exactly this session, also if it was compressed since."""
        return self._store.session(principal, session)

    def tip(self, owner: str, session: str) -> Session | None:
        """COMPRESS-02, -03: a stale id is resolved to the tip before history is read and before the turn is written."""
        start = self._store.session(owner, session)
        return start and self._tip(owner, start)

    def destination(self, request: TurnRequest) -> Destination:
        if request.surface is Surface.CHAT:
            return self._chat(request)
        if request.slug is not None:
            return self._slug(request, request.slug)
        if request.previous is not None:
            return self._previous(request, request.previous)
        if request.header is not None:
            return self._named(request.principal, request.header)
        return self._fresh(request.principal)

    def _chat(self, request: TurnRequest) -> Destination:
        session, derived = self._rules.chosen_id(request.header, lambda: self._rules.derived_id(request.body))
        if session is None:
            # DERIVE-16: nobody names a session, so the history is the body's, as it is in a session with a derived id.
            return replace(self._fresh(request.principal), derived=derived)
        return self._named(request.principal, session, derived=derived)

    def _fresh(self, principal: str) -> Destination:
        """Nothing selects a session: start a new one under a minted id."""
        session = self._rules.minted("sess_")
        return Destination(principal, tip=session, root=session)

    def _named(self, owner: str, session: str, *, derived: bool = False) -> Destination:
        try:
            start = self._store.session(owner, session)
            if start is None:
                return self._started(owner, session, derived=derived)
            return self._continued(start, self._tip(owner, start), derived=derived)
        except StoreUnreadableError:
            # Go on with the id as it was sent: the turn is answered without history, or refused later.
            return Destination(
                owner, tip=session, root=session, sent=session, derived=derived, chain=session, lost=True
            )

    def _started(self, owner: str, session: str, *, derived: bool) -> Destination:
        """HISTORY-04: an unknown id starts an empty session under that id."""
        return Destination(owner, tip=session, root=session, sent=session, derived=derived, chain=session)

    def _continued(self, start: Session, tip: Session, *, derived: bool) -> Destination:
        """COMPRESS-02, -03, -13: a turn reads and writes the tip, whether a client named the session or it was derived."""
        return Destination(start.owner, tip.id, tip.root, sent=start.id, derived=derived, session=tip, chain=tip.root)

    def _tip(self, owner: str, start: Session) -> Session:
        tip = self._rules.tip(self._tips.nearest(start), lambda ident: self._store.session(owner, ident))
        self._tips.remember(start, tip)
        return tip

    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        """SLUG-02 … -06: the slug keeps its session itself, whatever became of the response that it last named."""
        owner = request.principal
        stored = self._store.slug(owner, slug)
        if stored is None:
            return self._new_slug(request, slug)
        tip = self._slug_tip(owner, self._slug_session(stored))
        if tip is None:
            return self._new_slug(request, slug)
        self._check_header(request, tip)
        return Destination(
            owner, tip.id, tip.root, session=tip, slug=slug, chain=tip.root, response_gone=stored.response_gone
        )

    def _slug_session(self, slug: StoredSlug) -> str:
        """MIGRATE-04: a slug whose session nobody knows is refused. A new session would look like amnesia."""
        if slug.session is None:
            message = "The response that this conversation last named is gone, and its session with it. Start another conversation."
            raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, message, param="conversation")
        return slug.session

    def _slug_tip(self, owner: str, session: str) -> Session | None:
        """SLUG-11: the slug follows the tip."""
        return self.tip(owner, session)

    def _new_slug(self, request: TurnRequest, slug: str) -> Destination:
        """SLUG-01: a new slug gets a fresh session, or that of the header if it has no slug yet."""
        if request.header is None:
            session = self._rules.minted("sess_")
            return Destination(request.principal, tip=session, root=session, slug=slug, chain=session)
        named = self._named(request.principal, request.header)
        self._rules.check_unbound(self._store.slug_of(named.owner, named.root))
        return Destination(
            named.owner, named.tip, named.root, sent=request.header, session=named.session, slug=slug, chain=named.chain
        )

    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        """SLUG-07, -13: the newest response continues its session, an older one branches there."""
        owner = request.principal
        response, session = self._response_and_session(owner, previous)
        self._check_header(request, self.tip(owner, session.id) or session)
        newest = self._store.last_message(owner, session.id, session.epoch)
        if self._rules.is_newest(session, epoch=response.epoch, upto=response.upto, newest=newest):
            return Destination(owner, session.id, session.root, session=session, chain=session.root)
        return self._branch(owner, session, response)

    def _response_and_session(self, owner: str, previous: str) -> tuple[StoredResponse, Session]:
        """SLUG-07: a response that cannot be found is 404, never a silent new session."""
        response = self._store.response(owner, previous)
        session = self._store.session(owner, response.session) if response and response.session else None
        if response is None or session is None:
            message = "There is no response with the id given in previous_response_id. Start anew, or name another."
            raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, message, param="previous_response_id")
        return response, session

    def _branch(self, owner: str, session: Session, response: StoredResponse) -> Destination:
        """SLUG-13: a branch has an id of its own, so the newer turns stay as they were."""
        branch = self._rules.minted("sess_")
        return Destination(owner, tip=branch, root=branch, branch_from=(session, response), chain=session.root)

    def _check_header(self, request: TurnRequest, tip: Session) -> None:
        """ECHO-11: the header is honoured beside a slug or a response id too."""
        if request.header is not None:
            named = self.tip(request.principal, request.header)
            self._rules.check_same_session(named.id if named else None, tip.id)
