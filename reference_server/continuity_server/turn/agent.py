"""The agent: one turn, from the request to the stored answer.

Find the session, wait for its lock, find it again, read its history, ask the model, compress, store, answer. It knows nothing of HTTP.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Final

from continuity_server.model.types import ModelFailedError
from continuity_server.rules import Rules
from continuity_server.rules.echo import SessionInfo
from continuity_server.rules.error import Case, Refusal
from continuity_server.store.interface import AnyStore
from continuity_server.store.records import Write
from continuity_server.store.store import StoreUnreadableError
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.locks import Held, Locks
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.summarise import Summariser
from continuity_server.turn.tool_loop import ToolLoop
from continuity_server.turn.types import Destination, Outcome, Sink, Turn, TurnOutput, TurnRequest

logger = logging.getLogger("continuity.agent")

_RETRY_SECONDS: Final = 0.01


class Agent:
    """Answers turns."""

    def __init__(  # noqa: PLR0913 - a turn goes through all of them
        self,
        *,
        store: AnyStore,
        rules: Rules,
        resolver: Resolver,
        reader: HistoryReader,
        tool_loop: ToolLoop,
        summariser: Summariser,
        committer: Committer,
        locks: Locks,
    ) -> None:
        self._store = store
        self._rules = rules
        self._resolver = resolver
        self._reader = reader
        self._tool_loop = tool_loop
        self._summariser = summariser
        self._committer = committer
        self._locks = locks
        self._version: object = None

    async def turn(self, request: TurnRequest, sink: Sink) -> Outcome:
        try:
            async with self._locked(request) as destination:
                return self._replayed(request, destination) or await self._run(request, destination, sink)
        except StoreUnreadableError:
            raise Refusal(Case.HISTORY_UNAVAILABLE, "What is stored cannot be read now. Try again later.") from None

    @asynccontextmanager
    async def _locked(self, request: TurnRequest) -> AsyncIterator[Destination]:
        """Hold the locks of a turn, and give its destination. CONCUR-01: turns of one chain run one after the other."""
        await self._store.backfill()
        async with self._slug_lock(request):
            while True:
                seen = self._version
                expected = self._resolver.destination(request)
                async with self._chain_lock(request, expected) as waited:
                    # CONCUR-06: another process may have written before we had the lock.
                    stale = self._version_now() != seen or waited
                    destination = self._confirmed(request, expected) if stale else expected
                    if destination is not None:
                        yield destination
                        return
                await asyncio.sleep(_RETRY_SECONDS)

    def _version_now(self) -> object:
        """Look up and return a value that changes when another process writes. Where that cannot be read, the turn finds out by itself."""
        try:
            self._version = self._store.links_version()
        except StoreUnreadableError:
            self._version = None
        return self._version

    def _confirmed(self, request: TurnRequest, expected: Destination) -> Destination | None:
        """COMPRESS-11: look again, because the session may have rotated while the turn waited.

        Returns None if the session now belongs to another chain: this lock is then the wrong one, and the caller tries again.
        """
        destination = self._resolver.destination(request)
        # A session that does not exist yet has no chain that could change.
        moved = expected.session is not None and destination.chain != expected.chain
        return None if moved else destination

    def _slug_lock(self, request: TurnRequest) -> Held:
        return (
            self._locks.slug(request.principal, request.slug)
            if request.slug is not None
            else nullcontext(enter_result=False)
        )

    def _chain_lock(self, request: TurnRequest, destination: Destination) -> Held:
        if destination.chain:
            return self._locks.chain(destination.owner, destination.chain)
        if request.idempotency_key is not None:
            return self._locks.idempotency_key(destination.owner, request.idempotency_key)
        return nullcontext(enter_result=False)

    def _replayed(self, request: TurnRequest, destination: Destination) -> Outcome | None:
        """ISOLATE-10: the same key in the same chain, with the same body, gets the same answer and no second turn."""
        if request.idempotency_key is None:
            return None
        replay = self._store.replay(destination.owner, destination.chain, request.idempotency_key)
        if replay is None:
            return None
        self._rules.check_replay(replay.fingerprint, request.fingerprint)
        return Outcome(replay.body, SessionInfo(replay.header), replayed=True)

    async def _run(self, request: TurnRequest, destination: Destination, sink: Sink) -> Outcome:
        session_info = self._session_info(destination, destination.tip)
        if destination.response_gone:
            # SLUG-16: for operators.
            logger.info("slug %r goes on in session %s: its last response is gone", destination.slug, destination.tip)
        try:
            turn = Turn(request, destination, self._reader.read(request, destination), session_info, sink)
            if turn.input.degraded:
                return await self._answer_degraded(turn)
            return await (self._answer(turn) if request.store else self._answer_unstored(turn))
        except Refusal as refusal:
            refusal.session = refusal.session or session_info.id
            raise

    def _session_info(self, destination: Destination, tip: str, before: str | None = None) -> SessionInfo:
        """Name the session whose tip this is. `before` is the id at the start of the turn, which a compression leaves behind."""
        session = self._rules.echoed_id(destination.sent, destination.root, tip)
        return SessionInfo(session, rotated_from=before if before != session else None)

    async def _answer(self, turn: Turn) -> Outcome:
        """HISTORY-14: the turn is stored, all of it at once, before its answer ends."""
        await self._committer.check()
        output = await self._ask_model(turn)
        compression = await self._summariser.compress(turn, output)
        write = self._committer.write(turn, output, compression)
        after = self._info_after(turn, write.history.session)
        body = turn.request.shape(output, after)
        # The header of a stream is sent before anyone knows whether the session rotates (COMPRESS-07).
        header = turn.session_info if turn.request.stream else after
        outcome = Outcome(body, header)
        await self._keep(self._committer.recorded(turn, write, header.id, body), outcome)
        return outcome

    async def _keep(self, write: Write, outcome: Outcome) -> None:  # noqa: ARG002 - defects answer with it before they write
        """DURABLE-02: store the turn before anybody gets its outcome."""
        await self._committer.commit(write)

    def _info_after(self, turn: Turn, tip: str) -> SessionInfo:
        """COMPRESS-01, -07: the answer whose turn rotated the session names the new id, a stream at its end."""
        return self._session_info(turn.destination, tip, turn.session_info.id)

    async def _answer_unstored(self, turn: Turn) -> Outcome:
        """SLUG-09: `store: false` writes nothing: no slug, no response, no message, no rotation."""
        output = await self._ask_model(turn)
        return Outcome(turn.request.shape(output, turn.session_info), turn.session_info)

    async def _answer_degraded(self, turn: Turn) -> Outcome:
        """HISTORY-05, -06, -07: answer without the history, under the same id, and say so. Nothing is written."""
        self._rules.check_may_degrade()
        session_info = SessionInfo(turn.session_info.id, degraded=True)
        logger.warning("session %s: the history cannot be read; answered without it", session_info.id)
        output = await self._ask_model(replace(turn, session_info=session_info))
        return Outcome(turn.request.shape(output, session_info), session_info)

    async def _ask_model(self, turn: Turn) -> TurnOutput:
        """HISTORY-08: a failed model call is an error, never an answer with the error as its text."""
        try:
            return await self._tool_loop.run(turn, self._reader.messages(turn.input))
        except ModelFailedError as error:
            logger.warning("session %s: %s", turn.session_info.id, error)
            case = Case.RATE_LIMITED if error.rate_limited else Case.UPSTREAM
            wait = 1 if error.rate_limited else None
            message = f"{error} The turn was not stored: send it again."
            raise Refusal(case, message, retry_after=wait) from error
