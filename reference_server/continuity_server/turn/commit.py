"""Keeping: what a turn leaves in the store, as one `Write`. It asks the rules and writes through the store."""

from dataclasses import replace
from typing import Any

from continuity_server.rules import Rules
from continuity_server.rules.compress import BRANCH, COMPRESSION
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Messages
from continuity_server.rules.slug import Part
from continuity_server.store.records import Cache, Ended, HistoryWrite, Replay, SlugWrite, Write
from continuity_server.store.store import Store, StoreUnwritableError
from continuity_server.turn.summarise import Compression
from continuity_server.turn.types import Destination, TurnInput, TurnOutput, TurnRequest


class Committer:
    """Stores turns."""

    def __init__(self, store: Store, rules: Rules, max_responses: int) -> None:
        self._store = store
        self._rules = rules
        self._cache = Cache(rules.kept_responses(max_responses), takes_slugs=rules.eviction_takes_slug())

    def check(self) -> None:
        """HISTORY-14: what cannot be stored is refused before the model is asked."""
        try:
            self._store.check_writable()
        except StoreUnwritableError:
            self._unstorable()

    def write(
        self, ask: TurnRequest, place: Destination, view: TurnInput, made: TurnOutput, compression: Compression | None
    ) -> Write:
        used_up = place.tip if ask.store and place.session and place.session.compress_next else None
        history = self._history(ask, place, view, made)
        write = Write(
            place.owner,
            history,
            ended=self._branch_end(history),
            uncompress=used_up,
            previous=ask.previous,
            cache=self._cache,
        )
        return self._compressed(ask, place, write, compression) if compression is not None else write

    def recorded(self, ask: TurnRequest, place: Destination, write: Write, header: str, body: dict[str, Any]) -> Write:
        """Give the same write with the response, the slug and the replay that come with the answer."""
        if ask.surface is Surface.RESPONSES:
            write = replace(write, response=(ask.answer_id, body), slug=self._slug(place, write.history.session))
        if ask.idempotency_key is None or not ask.store:
            return self._only(write, self._rules.parts(store=ask.store))
        owner, scope = self._rules.replay_scope(place.owner, place.chain)
        replay = Replay(owner, scope, ask.idempotency_key, ask.fingerprint, write.history.root, header, body)
        return replace(write, replay=replay)

    def ended(self, parent: str, *, kind: str) -> Ended | None:
        """COMPRESS-05, -10: what a child of this kind means for its parent."""
        return Ended(parent, self._rules.end_reason(kind)) if self._rules.is_successor(kind) else None

    async def commit(self, write: Write) -> None:
        try:
            for due in self._rules.due(write):
                await self._store.commit(due)
        except StoreUnwritableError:
            self._unstorable()

    async def leave(self, ask: TurnRequest, place: Destination, messages: Messages, *, replaces: bool = False) -> None:
        """Store what an unanswered or degraded turn leaves: by the rules, nothing."""
        if messages:
            line = self._rules.line(place.tip, ask.surface)
            await self.commit(
                Write(place.owner, HistoryWrite(place.tip, place.root, line, tuple(messages), replace=replaces))
            )

    def _unstorable(self) -> None:
        if self._rules.must_be_stored():
            message = "The turn cannot be stored now, so it is not answered. Try again later."
            raise Refusal(Case.HISTORY_UNAVAILABLE, message)

    def _slug(self, place: Destination, session: str) -> SlugWrite | None:
        """SLUG-11, MIGRATE-05: the slug keeps the session that this turn ended in."""
        if place.slug is None:
            return None
        follows = self._rules.slug_follows(place.tip, session)
        return SlugWrite(place.slug, self._rules.slug_session(follows, old=place.old_slug))

    @staticmethod
    def _only(write: Write, parts: frozenset[Part]) -> Write:
        """SLUG-09: of a turn, only these parts. A session of which nothing is stored cannot be kept by its slug either."""
        response = write.response if Part.RESPONSE in parts else None
        slug = write.slug if Part.MAPPING in parts else None
        if Part.MESSAGES in parts:
            return replace(write, response=response, slug=slug)
        history = replace(write.history, messages=(), replace=False)
        unkept = replace(slug, session=None) if slug is not None else None
        return replace(write, history=history, response=response, slug=unkept)

    def _branch_end(self, history: HistoryWrite) -> Ended | None:
        return self.ended(history.parent, kind=history.kind) if history.parent is not None else None

    def _compressed(self, ask: TurnRequest, place: Destination, write: Write, compression: Compression) -> Write:
        """COMPRESS-10, -14, -15: a child of the same principal and slug (rotate), or the same session with a new history (in-place)."""
        rules, rotates = self._rules, self._rules.rotates()
        session = rules.minted("sess_") if rotates else place.tip
        history = HistoryWrite(
            session=session,
            root=place.root,
            line=rules.line(session, ask.surface),
            messages=tuple(compression.messages),
            replace=True,
            parent=rules.child_parent(place.tip) if rotates else None,
            kind=COMPRESSION,
            covered=compression.covered,
        )
        if not rotates:
            return replace(write, history=history)
        owner = rules.child_owner(write.owner)
        return replace(write, owner=owner, history=history, ended=self.ended(place.tip, kind=COMPRESSION))

    def _history(self, ask: TurnRequest, place: Destination, view: TurnInput, made: TurnOutput) -> HistoryWrite:
        line = self._rules.line(place.tip, ask.surface)
        if place.derived:
            whole = self._rules.stored_derived([*view.before, *view.new], made.messages)
            return self._derived(place, line, view, whole)
        turn = self._rules.stored_turn(view.new, made.messages)
        if place.branch_from is None:
            overwrites = self._rules.overwrites(slug=place.slug is not None, late=place.late)
            return HistoryWrite(place.tip, place.root, line, tuple(turn), replace=overwrites)
        parent = place.branch_from[0].id
        return HistoryWrite(
            place.tip, place.root, line, (*view.stored, *turn), replace=True, parent=parent, kind=BRANCH
        )

    def _derived(self, place: Destination, line: str, view: TurnInput, whole: Messages) -> HistoryWrite:
        """Settled: after a derived turn the history is the request's messages and the answer; what is there already stays."""
        known = len(view.stored)
        if whole[:known] == view.stored:
            return HistoryWrite(place.tip, place.root, line, tuple(whole[known:]))
        return HistoryWrite(place.tip, place.root, line, tuple(whole), replace=True, covered=view.covered)
