"""The agent: one turn, from the request to the stored answer.

Resolve, lock, resolve again, view, run the loop, compress, store; only then is the answer's end sent. It knows nothing of HTTP.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from continuity_server.model.types import ModelFailedError
from continuity_server.rules import Rules
from continuity_server.rules.echo import SessionInfo
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.history import Unanswered
from continuity_server.rules.slug import Part
from continuity_server.store.store import Store, StoreUnreadableError
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.locks import Locks
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.summarise import Summariser
from continuity_server.turn.tool_loop import ToolLoop
from continuity_server.turn.types import Destination, Outcome, Sink, TurnInput, TurnOutput, TurnRequest

logger = logging.getLogger("continuity.agent")

_RETRY_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Agent:
    """Takes turns."""

    store: Store
    rules: Rules
    resolver: Resolver
    viewer: HistoryReader
    loop: ToolLoop
    compressor: Summariser
    keeper: Committer
    locks: Locks

    async def turn(self, ask: TurnRequest, sink: Sink) -> Outcome:
        try:
            async with self._landing(ask) as place:
                return await self._replayed(ask, place) or await self._run(ask, place, sink)
        except StoreUnreadableError:
            raise Refusal(Case.HISTORY_UNAVAILABLE, "What is stored cannot be read now. Try again later.") from None
        except Refusal as refusal:
            if refusal.case is Case.SESSION_BUSY:
                await self._leave_rejected(ask)
            raise

    async def _leave_rejected(self, ask: TurnRequest) -> None:
        """CONCUR-01: of a turn that was rejected nothing is stored."""
        if left := self.rules.left_behind(self.viewer.new_input(ask), Unanswered.BUSY):
            await self.keeper.leave(ask, self.resolver.place(ask), left)

    @asynccontextmanager
    async def _landing(self, ask: TurnRequest) -> AsyncIterator[Destination]:
        """SLUG-12, COMPRESS-11: a slug is born once; and while a turn waited, its session may have rotated, or be gone."""
        self.store.adopt()
        unknown = self.resolver.place(ask).session is None
        async with self.locks.hold(self.rules.slug_lock(ask.principal, ask.slug, ask.answer_id)):
            while True:
                waited = self.resolver.place(ask)
                async with self._chain(ask, waited):
                    place = self.rules.landing(waited, lambda: self.resolver.place(ask))
                    if waited.session is None or place.chain == waited.chain:
                        yield replace(place, late=unknown and place.session is not None)
                        return
                await asyncio.sleep(_RETRY_SECONDS)

    def _chain(self, ask: TurnRequest, place: Destination) -> AbstractAsyncContextManager[None]:
        """CONCUR-01: a chain has one lock, named by its root. Where nothing selects a session, the Idempotency-Key has one."""
        if place.chain:
            return self.locks.hold(self.rules.chain_lock(place.owner, place.chain, ask.answer_id))
        return self.locks.hold(("key", place.owner, ask.idempotency_key or ask.answer_id))

    async def _replayed(self, ask: TurnRequest, place: Destination) -> Outcome | None:
        """ISOLATE-10: the same key in the same chain, with the same body, gives the same answer and no second turn."""
        key = ask.idempotency_key
        scope = self.rules.replay_scope(place.owner, place.chain)
        replay = self.rules.replayed(self.store.replay(*scope, key)) if key is not None else None
        if replay is None:
            return None
        self.rules.check_replay(replay.fingerprint, ask.fingerprint)
        await self.keeper.leave(ask, place, self.rules.left_by_replay(ask.messages))
        return Outcome(replay.body, SessionInfo(replay.header), replayed=True)

    async def _run(self, ask: TurnRequest, place: Destination, sink: Sink) -> Outcome:
        told = self._told(place, place.tip)
        if place.response_gone:
            # SLUG-16: for operators.
            logger.info("slug %r goes on in session %s: its last response is gone", place.slug, place.tip)
        try:
            view = self.viewer.view(ask, place)
            if view.degraded:
                return await self._answer_degraded(ask, place, view, told, sink)
            if not self.rules.parts(store=ask.store):
                return Outcome(ask.shape(await self._made(ask, place, view, told, sink), told), told)
            return await self._answer(ask, place, view, told, sink)
        except Refusal as refusal:
            refusal.session = refusal.session or told.id
            raise

    def _told(self, place: Destination, tip: str, before: str | None = None) -> SessionInfo:
        """Tell the session whose tip this is; `rotated_from` is the id that this turn's compression left behind."""
        session = self.rules.told_id(place.sent, place.root, tip)
        return SessionInfo(session, rotated_from=before if before != session else None)

    async def _answer(
        self, ask: TurnRequest, place: Destination, view: TurnInput, told: SessionInfo, sink: Sink
    ) -> Outcome:
        """HISTORY-14: the turn is stored, all of it at once, before its answer ends."""
        self.keeper.check()
        await self.keeper.leave(ask, place, [] if place.derived else self.rules.begun(view.new))
        made = await self._made(ask, place, view, told, sink)
        kept = self.rules.stored_answer(place.tip, made.messages, streamed=ask.stream, gone=sink.gone)
        made = replace(made, messages=tuple(kept))
        rotates = Part.ROTATION in self.rules.parts(store=ask.store)
        compression = await self.compressor.compress(ask, place, view, made) if rotates else None
        write = self.keeper.write(ask, place, view, made, compression)
        after = self._told(place, write.history.session, told.id)
        final = self.rules.final_told(told, after, streamed=ask.stream)
        body = ask.shape(made, final)
        # A stream's header went out before anyone knew that the session would rotate (COMPRESS-07).
        header = told if ask.stream else final
        await self.keeper.commit(self.keeper.recorded(ask, place, write, header.id, body))
        return Outcome(body, header)

    async def _answer_degraded(
        self, ask: TurnRequest, place: Destination, view: TurnInput, told: SessionInfo, sink: Sink
    ) -> Outcome:
        """HISTORY-05, -06, -07: answered with empty history under the same id, and said so; nothing is written."""
        try:
            session = self.rules.unreadable(told.id)
        except Refusal:
            await self.keeper.leave(ask, place, self.rules.left_behind(view.new, Unanswered.REFUSED))
            raise
        logger.warning("session %s: the history cannot be read; answered without it", session)
        admitted = SessionInfo(session, degraded=self.rules.admitted(degraded=True))
        made = await self._made(ask, place, view, admitted, sink)
        await self.keeper.leave(ask, place, self.rules.left_by_degraded([*view.new, *made.messages]), replaces=True)
        return Outcome(ask.shape(made, admitted), admitted)

    async def _made(
        self, ask: TurnRequest, place: Destination, view: TurnInput, told: SessionInfo, sink: Sink
    ) -> TurnOutput:
        try:
            if cut_short := self.rules.resumed(view.stored):
                await self.loop.run(replace(ask, stream=False), place, cut_short, told, sink)
            return await self.loop.run(ask, place, self.viewer.messages(view), told, sink)
        except ModelFailedError as error:
            logger.warning("session %s: %s", told.id, error)
            case = Case.RATE_LIMITED if error.rate_limited else Case.UPSTREAM
            wait = 1 if error.rate_limited else None
            refusal = Refusal(case, f"{error} The turn was not stored: send it again.", retry_after=wait)
            await self.keeper.leave(ask, place, self.rules.left_behind(view.new, Unanswered.MODEL_FAILED))
            answer = self.rules.failure_answer(refusal)
            return TurnOutput((answer,), str(answer["content"]))
