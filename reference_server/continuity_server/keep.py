"""Keeping: what a turn leaves in the store, as one `Write`. It asks the rules and writes through the store."""

from dataclasses import replace
from typing import Any

from continuity_server.compress import Compression
from continuity_server.continuity import Rules
from continuity_server.echo import Surface
from continuity_server.errors import Case, Refusal
from continuity_server.history import Messages
from continuity_server.lineage import BRANCH, COMPRESSION
from continuity_server.records import HistoryWrite, Replay, Write
from continuity_server.store import Store, StoreUnwritableError
from continuity_server.turn import Ask, Made, Place, View


class Keeper:
    """Stores turns."""

    def __init__(self, store: Store, rules: Rules, max_responses: int) -> None:
        self._store = store
        self._rules = rules
        self._max_responses = max_responses

    def check(self) -> None:
        """HISTORY-14: what cannot be stored is refused before the model is asked."""
        try:
            self._store.check_writable()
        except StoreUnwritableError:
            self._unstorable()

    def write(self, ask: Ask, place: Place, view: View, made: Made, compression: Compression | None) -> Write:
        used_up = place.tip if place.session and place.session.compress_next else None
        history = self._history(ask, place, view, made)
        write = Write(place.owner, history, uncompress=used_up, slug=place.slug, max_responses=self._max_responses)
        return self._compressed(ask, place, write, compression) if compression is not None else write

    def recorded(self, ask: Ask, place: Place, write: Write, header: str, body: dict[str, Any]) -> Write:
        """Give the same write with the response and the replay that come with the answer."""
        if ask.surface is Surface.RESPONSES:
            write = replace(write, response=(ask.answer_id, body))
        if ask.idempotency_key is None:
            return write
        replay = Replay(place.chain, ask.idempotency_key, ask.fingerprint, write.history.root, header, body)
        return replace(write, replay=replay)

    async def commit(self, write: Write) -> None:
        try:
            for due in self._rules.due(write):
                await self._store.commit(due)
        except StoreUnwritableError:
            self._unstorable()

    async def leave(self, ask: Ask, place: Place, messages: Messages, *, replaces: bool = False) -> None:
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

    def _compressed(self, ask: Ask, place: Place, write: Write, compression: Compression) -> Write:
        """COMPRESS-10, -14, -15: a child of the same principal and slug (rotate), or the same session with a new history (in-place)."""
        rotates = self._rules.options.compaction == "rotate"
        session = self._rules.minted("sess_") if rotates else place.tip
        history = HistoryWrite(
            session=session,
            root=place.root,
            line=self._rules.line(session, ask.surface),
            messages=tuple(compression.messages),
            replace=True,
            parent=place.tip if rotates else None,
            kind=COMPRESSION,
            covered=compression.covered,
        )
        return replace(write, history=history, ended=place.tip if rotates else None)

    def _history(self, ask: Ask, place: Place, view: View, made: Made) -> HistoryWrite:
        line = self._rules.line(place.tip, ask.surface)
        if place.derived:
            whole = self._rules.stored_derived([*view.before, *view.new], made.messages)
            return self._derived(place, line, view, whole)
        turn = self._rules.stored_turn(view.new, made.messages)
        if place.branch_from is None:
            return HistoryWrite(place.tip, place.root, line, tuple(turn))
        parent = place.branch_from[0].id
        return HistoryWrite(place.tip, place.root, line, (*view.stored, *turn), parent=parent, kind=BRANCH)

    def _derived(self, place: Place, line: str, view: View, whole: Messages) -> HistoryWrite:
        """Settled: after a derived turn the history is the request's messages and the answer; what is there already stays."""
        known = len(view.stored)
        if whole[:known] == view.stored:
            return HistoryWrite(place.tip, place.root, line, tuple(whole[known:]))
        return HistoryWrite(place.tip, place.root, line, tuple(whole), replace=True, covered=view.covered)
