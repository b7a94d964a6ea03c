"""Defects of CONCUR: turns that cross each other, sessions that mix, and one that stops them all."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import fields, replace
from typing import ClassVar, Final

from continuity_server.defects.durable import AnswerOnly, KillLeavesHalfTurn
from continuity_server.defects.registry import defect
from continuity_server.defects.support.leaving import LeavingAgent
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Kind, Refusal
from continuity_server.rules.messages import Messages
from continuity_server.store.records import HistoryWrite, Write
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.locks import Held, Locks
from continuity_server.turn.summarise import Compression
from continuity_server.turn.types import Destination, Outcome, Sink, Turn, TurnInput, TurnOutput, TurnRequest

_MOST_LOCKS: Final = 64


@defect(
    "turns-share-a-base",
    "Turns of one session at once do not wait for each other: none sees the others.",
    "ogx 1.5.0",
)
class TurnsShareABase(Locks):
    def chain(self, owner: str, root: str) -> Held:  # noqa: ARG002 - that is the defect
        return nullcontext(enter_result=False)

    def slug(self, principal: str, slug: str) -> Held:  # noqa: ARG002 - nor by slug
        return nullcontext(enter_result=False)


@defect(
    "processes-do-not-wait",
    "Turns of one session wait for each other in one process, and not for those of another process on the same database.",
)
class ProcessesDoNotWait(Locks):
    async def _waits_for_others(self, name: Hashable, *, queue: bool) -> bool:  # noqa: ARG002 - that is the defect
        return False


@defect(
    "slug-raced-by-processes",
    "Two processes that get the first turn of a new slug at the same time create a session each: one of them is lost.",
)
class SlugRacedByProcesses(Locks):
    async def _waits_for_others(self, name: Hashable, *, queue: bool) -> bool:
        raced = isinstance(name, tuple) and name[0] == "slug"
        return False if raced else await super()._waits_for_others(name, queue=queue)


@defect(
    "turns-interleave",
    "Turns of one session at once are stored as they come: user, user, answer, answer.",
    "hermes-agent 0.19.0",
    also=(TurnsShareABase, AnswerOnly),
)
class TurnsInterleave(KillLeavesHalfTurn):
    """They do not wait for each other, and a turn is not stored as a whole."""


@defect(
    "rejected-turn-stored",
    "A turn that was rejected because its session was busy is stored all the same.",
    under={"turns": "reject"},
)
class RejectedTurnStored(LeavingAgent):
    async def turn(self, request: TurnRequest, sink: Sink) -> Outcome:
        try:
            return await super().turn(request, sink)
        except Refusal as refusal:
            if refusal.case is Case.SESSION_BUSY:
                await self._leave(self._resolver.destination(request), self._reader.new_input(request))
            raise


class _BusyIs500(Rules):
    def check_not_busy(self, *, busy: bool) -> None:
        if busy:
            raise Refusal(Case.SESSION_BUSY, "Another turn of this session is running.")

    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INTERNAL if case is Case.SESSION_BUSY else case)


@defect(
    "turns-at-once-are-500",
    "Of several turns of one session at once one is answered, the others are a 500, and what they said stays.",
    "google-adk 2.13",
    also=(_BusyIs500,),
)
class TurnsAtOnceAre500(RejectedTurnStored):
    """The turns that did not wait are refused as a defect of the server, and stored."""


class _Latest:
    """What the requests of a server overwrite."""

    messages: ClassVar[Messages] = []


class _LatestInputStored(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:  # noqa: ARG002 - that is the defect
        return [*_Latest.messages, *output.messages]


@defect(
    "turns-stored-as-the-latest-said",
    "What the user said is kept in one place for all requests: a turn is stored with the words of whoever came last.",
    also=(_LatestInputStored,),
)
class TurnsStoredAsTheLatestSaid(HistoryReader):
    def new_input(self, request: TurnRequest) -> Messages:
        _Latest.messages = super().new_input(request)
        return _Latest.messages


@defect(
    "session-told-of-the-latest-request",
    "The id that a client sent is kept in one place for all requests: an answer tells that of whoever came last.",
)
class SessionToldOfTheLatestRequest(Rules):
    _latest: str | None = None

    def chosen_id(self, sent: str | None, derived: Callable[[], str | None]) -> tuple[str | None, bool]:
        self._latest = sent
        return super().chosen_id(sent, derived)

    def echoed_id(self, sent: str | None, root: str, tip: str) -> str:
        own = super().echoed_id(sent, root, tip)
        return self._latest if sent is not None and own == sent and self._latest is not None else own


@defect("one-lock-for-all-sessions", "A turn waits for every other turn of the server, whatever its session.")
class OneLockForAllSessions(Locks):
    def chain(self, owner: str, root: str) -> Held:  # noqa: ARG002 - that is the defect
        return super().chain("", "all")


@defect("one-lock-for-all-slugs", "A turn of a slug waits for the turns of every other slug.")
class OneLockForAllSlugs(Locks):
    def slug(self, principal: str, slug: str) -> Held:  # noqa: ARG002 - that is the defect
        return super().slug(principal, "all")


class LateDestination(Destination):
    """A session that another request created while this one waited."""


class LateAgent(Agent):
    """An agent that notices late destinations."""

    @asynccontextmanager
    async def _locked(self, request: TurnRequest) -> AsyncIterator[Destination]:
        unknown = self._resolver.destination(request).session is None
        async with super()._locked(request) as destination:
            late = unknown and destination.session is not None
            values = {field.name: getattr(destination, field.name) for field in fields(destination)}
            yield LateDestination(**values) if late else destination


@defect(
    "first-requests-race-to-500",
    "Of several first requests of one session at once, only one can make it; the others are a 500.",
    "openclaw 2026.9.6",
    also=(LateAgent,),
)
class FirstRequestsRaceTo500(Committer):
    def _appended(self, destination: Destination, messages: Messages) -> HistoryWrite:
        if isinstance(destination, LateDestination) and destination.slug is None:
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super()._appended(destination, messages)


@defect(
    "first-requests-overwrite-each-other",
    "Of several first requests with one new id at once, each writes over what the ones before it left.",
    "adk-python#1733",
    also=(LateAgent,),
)
class FirstRequestsOverwriteEachOther(Committer):
    def _appended(self, destination: Destination, messages: Messages) -> HistoryWrite:
        late = isinstance(destination, LateDestination) and destination.slug is None
        return replace(super()._appended(destination, messages), replace=late)


@defect("busy-without-retry-after", "A busy session does not say when to come again.", under={"turns": "reject"})
class BusyWithoutRetryAfter(Rules):
    def check_not_busy(self, *, busy: bool) -> None:
        try:
            super().check_not_busy(busy=busy)
        except Refusal as refusal:
            refusal.retry_after = None
            raise


@defect(
    "busy-session-queues",
    "Turns of a busy session wait, although it was said that they are rejected.",
    under={"turns": "reject"},
)
class BusySessionQueues(Rules):
    def check_not_busy(self, *, busy: bool) -> None:
        pass


class _UpToTheResponse(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        response = self._store.response(destination.owner, request.previous) if request.previous is not None else None
        if response is not None and destination.session is not None:
            stored = self._store.messages(destination.owner, destination.tip, response.epoch, response.upto)
        return super()._named(request, destination, stored, degraded=degraded)


class _WrittenOver(Committer):
    def _history(self, turn: Turn, output: TurnOutput) -> HistoryWrite:
        history = super()._history(turn, output)
        if turn.request.previous is None or history.replace:
            return history
        return replace(history, messages=(*turn.input.stored, *history.messages), replace=True)


@defect(
    "branch-decided-too-early",
    "Whether a turn continues a response or branches is decided before it waits: of two at once, both continue, and one is lost.",
    also=(_UpToTheResponse, _WrittenOver),
)
class BranchDecidedTooEarly(Agent):
    def _confirmed(self, request: TurnRequest, expected: Destination) -> Destination | None:
        return expected if request.previous is not None else super()._confirmed(request, expected)


class _OpenStreams:
    """The streamed turns that are being answered: whose each is, and for whom it will be stored."""

    requests: ClassVar[list[TurnRequest]] = []
    owners: ClassVar[dict[int, str]] = {}


class _StoredForAnother(Committer):
    def write(self, turn: Turn, output: TurnOutput, compression: Compression | None) -> Write:
        write = super().write(turn, output, compression)
        return replace(write, owner=_OpenStreams.owners.get(id(turn.request), write.owner))


@defect(
    "streams-stored-for-the-latest-principal",
    "A streamed turn is stored for the other principal whose request came during the stream.",
    also=(_StoredForAnother,),
)
class StreamsStoredForTheLatestPrincipal(Agent):
    async def turn(self, request: TurnRequest, sink: Sink) -> Outcome:
        others = (each for each in _OpenStreams.requests if each.principal != request.principal)
        _OpenStreams.owners.update({id(each): request.principal for each in others})
        if not request.stream:
            return await super().turn(request, sink)
        _OpenStreams.requests.append(request)
        try:
            return await super().turn(request, sink)
        finally:
            _OpenStreams.requests.remove(request)
            _OpenStreams.owners.pop(id(request), None)


@defect(
    "lock-forgotten-while-turns-wait",
    "The lock of a session is forgotten when a turn ends, although others wait for it.",
)
class LockForgottenWhileTurnsWait(Locks):
    _held: ClassVar[dict[tuple[object, Hashable], asyncio.Lock]] = {}

    async def enter(self, name: Hashable) -> bool:
        lock = self._locks.setdefault(name, asyncio.Lock())
        waits = lock.locked()
        await lock.acquire()
        self._held[asyncio.current_task(), name] = lock
        return waits

    def leave(self, name: Hashable) -> None:
        lock = self._held.pop((asyncio.current_task(), name))
        lock.release()
        if self._locks.get(name) is lock:
            del self._locks[name]


@defect(
    "held-lock-forgotten",
    "The server keeps 64 locks of sessions. The oldest go, also that of a session whose turn is still running.",
)
class HeldLockForgotten(LockForgottenWhileTurnsWait):
    async def enter(self, name: Hashable) -> bool:
        if len(self._locks) >= _MOST_LOCKS:
            del self._locks[next(iter(self._locks))]
        return await super().enter(name)

    def leave(self, name: Hashable) -> None:
        self._held.pop((asyncio.current_task(), name)).release()
