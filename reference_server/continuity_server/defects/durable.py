"""Defects of DURABLE: what was answered and is gone, and turns that a kill leaves half or runs again."""

import asyncio
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import fields, replace

from continuity_server.defects.registry import defect
from continuity_server.defects.support.idle import IdleForgettingStore
from continuity_server.defects.support.leaving import LeavingAgent
from continuity_server.rules import Rules
from continuity_server.rules.echo import SessionInfo
from continuity_server.rules.messages import Message, Messages
from continuity_server.store.histories import LAST, Histories
from continuity_server.store.records import HistoryWrite, Write
from continuity_server.store.store import Store
from continuity_server.store.writer import Writer
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, Outcome, Sink, Turn, TurnInput, TurnOutput, TurnRequest


class RenamedHistories(Histories):
    """Histories that are stored under another name than that of their session."""

    def name(self, session: str) -> str:
        raise NotImplementedError

    def read(self, owner: str, session: str, epoch: int, upto: int = LAST) -> list[Message]:
        return super().read(owner, self.name(session), epoch, upto)

    def last(self, owner: str, session: str, epoch: int) -> int:
        return super().last(owner, self.name(session), epoch)

    def append(self, owner: str, session: str, epoch: int, messages: Iterable[Message]) -> list[int]:
        return super().append(owner, self.name(session), epoch, messages)

    def forget(self, owner: str, session: str) -> None:
        super().forget(owner, self.name(session))


@defect(
    "history-lost-on-restart",
    "Histories are known to the process that wrote them: after a restart sessions go on, and have forgotten everything.",
    "vllm#22137",
)
class HistoryLostOnRestart(RenamedHistories):
    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._process = secrets.token_hex(8)

    def name(self, session: str) -> str:
        return f"{session}\x1f{self._process}"


@defect(
    "responses-lost-on-restart",
    "Response ids are known to the process that made them: after a restart they start a new session without a word.",
    "openclaw 2026.9.6",
)
class ResponsesLostOnRestart(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._own: set[str] = set()

    def destination(self, request: TurnRequest) -> Destination:
        self._own.add(request.answer_id)
        return super().destination(request)

    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        self._response_and_session(request.principal, previous)
        return super()._previous(request, previous) if previous in self._own else self._fresh(request.principal)


@defect(
    "acknowledged-before-stored",
    "Turns are answered before they are on disk: a clean stop writes them, a kill loses them.",
    "hermes-agent#80921",
)
class AcknowledgedBeforeStored(Writer):
    def close(self) -> None:
        if self._connection.in_transaction:
            super()._commit()
        super().close()

    async def check(self) -> None:
        if not self._connection.in_transaction:
            await super().check()

    def _sync(self) -> None:
        batch, self._committed = self._committed, []
        self._settle(batch, None)

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            super()._begin()

    def _commit(self) -> None:
        pass


_ANSWERED: ContextVar[asyncio.Future[Outcome]] = ContextVar("answered")
_LATE_SECONDS = 0.03


class _AnswersBeforeCommit(Agent):
    """Answers, and stores the turn 30 ms later. The next turn of the session waits for that, so only a kill shows it."""

    streamed = False

    async def turn(self, request: TurnRequest, sink: Sink) -> Outcome:
        if request.stream is not self.streamed:
            return await super().turn(request, sink)
        answered = asyncio.get_running_loop().create_future()
        _ANSWERED.set(answered)
        running = asyncio.create_task(super().turn(request, sink))
        await asyncio.wait({running, answered}, return_when=asyncio.FIRST_COMPLETED)
        return answered.result() if answered.done() else await running

    async def _keep(self, write: Write, outcome: Outcome) -> None:
        answered = _ANSWERED.get(None)
        if answered is not None:
            answered.set_result(outcome)
            await asyncio.sleep(_LATE_SECONDS)
        await super()._keep(write, outcome)


@defect("answers-before-commit-plain", "A plain answer leaves 30 ms before its turn is stored.")
class AnswersBeforeCommitPlain(_AnswersBeforeCommit):
    """Plain turns only."""


@defect("answers-before-commit-streamed", "A stream ends 30 ms before its turn is stored.")
class AnswersBeforeCommitStreamed(_AnswersBeforeCommit):
    streamed = True


class _StoredInTwoSteps(_AnswersBeforeCommit):
    """Stores a part of a turn, answers, and stores the rest 30 ms later. Plain turns only."""

    async def _keep(self, write: Write, outcome: Outcome) -> None:
        first, rest = self._parts(write)
        if rest is None or _ANSWERED.get(None) is None:
            await self._committer.commit(write)
            return
        await self._committer.commit(first)
        await super()._keep(rest, outcome)

    def _parts(self, write: Write) -> tuple[Write, Write | None]:
        raise NotImplementedError


@defect(
    "slug-stored-after-response", "A plain response and its session are stored, and 30 ms after the answer its slug."
)
class SlugStoredAfterResponse(_StoredInTwoSteps):
    def _parts(self, write: Write) -> tuple[Write, Write | None]:
        if write.slug is None:
            return write, None
        bare = HistoryWrite(write.history.session, write.history.root, ())
        return replace(write, slug=None), Write(write.owner, bare, slug=write.slug)


@defect(
    "rotation-not-atomic",
    "A plain turn that rotates ends its session and leads to the new one, and 30 ms after the answer the new one gets its messages.",
)
class RotationNotAtomic(_StoredInTwoSteps):
    def _parts(self, write: Write) -> tuple[Write, Write | None]:
        if write.ended is None:
            return write, None
        whole = replace(write.history, messages=())
        ended = replace(write, history=whole, response=None, slug=None, replay=None)
        messages = HistoryWrite(write.history.session, write.history.root, write.history.messages)
        return ended, replace(write, history=messages, ended=None, compressed_on_request=None)


class AnswerOnly(Committer):
    """What the user said is stored already."""

    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:  # noqa: ARG002 - that is the defect
        return list(output.messages)


@defect(
    "kill-leaves-half-turn",
    "The question is stored before the model is asked: a turn that is killed or fails leaves it there without an answer.",
    "hermes-agent 0.19.0",
    also=(AnswerOnly,),
)
class KillLeavesHalfTurn(LeavingAgent):
    async def _answer(self, turn: Turn) -> Outcome:
        if not turn.destination.derived:
            await self._leave(turn.destination, turn.input.new)
        return await super()._answer(turn)


class _UsersMerged(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        merged: Messages = []
        for message in super().paired(messages):
            if merged and message["role"] == merged[-1]["role"] == "user":
                merged[-1] = {**message, "content": f"{merged[-1]['content']}\n{message['content']}"}
            else:
                merged.append(message)
        return merged


@defect(
    "killed-turn-merged-into-next",
    "A message that a kill left without an answer is put before the next one, as if the user had said both at once.",
    "hermes-agent 0.19.0",
    also=(AnswerOnly, _UsersMerged),
)
class KilledTurnMergedIntoNext(KillLeavesHalfTurn):
    """The next turn merges what was left."""


class _UnansweredForgotten(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        following = [*(message["role"] for message in stored[1:]), "user"]
        answered = [
            message
            for message, then in zip(stored, following, strict=False)
            if (message["role"], then) != ("user", "user")
        ]
        return replace(super()._named(request, destination, stored, degraded=degraded), before=answered)


@defect(
    "kill-reruns-turn",
    "A turn that a kill cut short is run again, unasked, when its session goes on.",
    "openclaw 2026.9.6",
    also=(AnswerOnly, _UnansweredForgotten),
)
class KillRerunsTurn(KillLeavesHalfTurn):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        stored = turn.input.stored
        if stored and stored[-1]["role"] == "user":
            await self._tool_loop.run(replace(turn, request=replace(turn.request, stream=False)), stored)
        return await super()._ask_model(turn)


@defect(
    "idle-history-lost-on-restart", "A start forgets the history of sessions that nobody used since the start before."
)
class IdleHistoryLostOnRestart(IdleForgettingStore):
    forget = "DELETE FROM messages WHERE (owner, session) NOT IN (SELECT owner, name FROM used)"

    def used(self, write: Write) -> str | None:
        return write.history.session


class _StreamedAnswerOnly(Committer):
    """What the user said in a streamed turn is stored already."""

    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        whole = super()._messages(turn_input, output)
        return list(output.messages) if isinstance(turn_input, _Drafted) else whole


class _Drafted(TurnInput):
    """The input of a turn whose question is stored."""


class _DraftingSink:
    """A sink that stores the question when the first piece of the answer comes."""

    def __init__(self, sink: Sink, draft: Callable[[], Awaitable[None]]) -> None:
        self._sink = sink
        self._draft: Callable[[], Awaitable[None]] | None = draft

    @property
    def gone(self) -> bool:
        return self._sink.gone

    async def text(self, session_info: SessionInfo, delta: str) -> None:
        draft, self._draft = self._draft, None
        if draft is not None:
            await draft()
        await self._sink.text(session_info, delta)


@defect(
    "killed-stream-leaves-question",
    "The question of a streamed turn is stored with the first piece of the answer: a kill after it leaves it there alone.",
    also=(_StreamedAnswerOnly,),
)
class KilledStreamLeavesQuestion(LeavingAgent):
    async def _answer(self, turn: Turn) -> Outcome:
        if not turn.request.stream or turn.destination.derived or turn.destination.branch_from is not None:
            return await super()._answer(turn)
        values = {field.name: getattr(turn.input, field.name) for field in fields(turn.input)}
        sink = _DraftingSink(turn.sink, lambda: self._leave(turn.destination, turn.input.new))
        return await super()._answer(replace(turn, input=_Drafted(**values), sink=sink))
