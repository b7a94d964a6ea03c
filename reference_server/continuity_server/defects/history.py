"""Defects of HISTORY: a model that sees too much, too little or the wrong thing, and turns that get lost or are left behind."""

import json
import sqlite3
import unicodedata
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any, ClassVar, Final

from aiohttp import web

from continuity_server.defects.durable import RenamedHistories
from continuity_server.defects.registry import defect
from continuity_server.defects.support.leaving import LeavingAgent
from continuity_server.defects.support.locked import LockingAgent
from continuity_server.http.chat import ChatHandler
from continuity_server.http.request import json_body
from continuity_server.http.responses import ResponsesHandler
from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.echo import Fields, SessionInfo, Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.store.histories import LAST, Histories
from continuity_server.store.records import HistoryWrite, Write
from continuity_server.store.store import Store
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.summarise import Compression
from continuity_server.turn.types import Destination, NoSink, Outcome, Turn, TurnInput, TurnOutput, TurnRequest

_LONGEST_PAGE: Final = 100
_SHORT_COLUMN: Final = 65_535


def _earlier(rules: Rules, request: TurnRequest) -> Messages:
    """Return the earlier messages in the body of a chat completion."""
    return request.messages[: rules.turn_start(request.messages)] if request.surface is Surface.CHAT else []


@defect(
    "body-history-merged",
    "Earlier messages of the body reach the model, after the stored history.",
    "openclaw 2026.9.6",
)
class BodyHistoryMerged(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        own = super()._named(request, destination, stored, degraded=degraded)
        return replace(own, before=[*stored, *_earlier(self._rules, request)])


@defect(
    "body-history-flattened",
    "Earlier messages of the body are written into the new user message, on top of the stored history.",
    "openclaw 2026.9.6",
)
class BodyHistoryFlattened(Rules):
    def new_input(self, messages: Sequence[Message]) -> Messages:
        new = super().new_input(messages)
        earlier = [f"{message['role']}: {message['content']}" for message in messages if message not in new]
        return [{**message, "content": "\n".join([*earlier, str(message["content"])])} for message in new]


@defect("last-messages-all-new", "All user messages at the end of the body are new, and not only the last one.")
class LastMessagesAllNew(Rules):
    def new_input(self, messages: Sequence[Message]) -> Messages:
        new = super().new_input(messages)
        users = list(takewhile(lambda message: message["role"] == "user", reversed(messages)))
        return users[::-1] or new


@defect("body-history-wins", "Where the body has earlier messages, they replace the stored history.")
class BodyHistoryWins(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        own = super()._named(request, destination, stored, degraded=degraded)
        return replace(own, before=_earlier(self._rules, request) or stored)


@defect(
    "tool-results-ignored",
    "Tool results that the body ends with are ignored; its last user message is taken once more.",
)
class ToolResultsIgnored(Rules):
    def new_input(self, messages: Sequence[Message]) -> Messages:
        return [message for message in messages if message["role"] == "user"][-1:]


@defect("history-doubles", "Every stored turn reaches the model twice.", "hermes-agent PR 41700")
class HistoryDoubles(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        return replace(super()._named(request, destination, stored, degraded=degraded), before=[*stored, *stored])


@defect("history-reversed", "The stored turns reach the model newest first.")
class HistoryReversed(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        return replace(super()._named(request, destination, stored, degraded=degraded), before=stored[::-1])


@defect("answers-not-stored", "Only the user's messages are stored.")
class AnswersNotStored(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:  # noqa: ARG002 - that is the defect
        return turn_input.new


@defect("questions-not-stored", "Only the answers are stored.")
class QuestionsNotStored(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:  # noqa: ARG002 - that is the defect
        return list(output.messages)


@defect("oldest-turn-dropped", "From the third turn on the first one is forgotten.")
class OldestTurnDropped(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        users = [index for index, message in enumerate(stored) if message["role"] == "user"]
        newer = stored[users[1] :] if len(users) > 1 else stored
        return replace(super()._named(request, destination, stored, degraded=degraded), before=newer)


@defect("roles-flattened", "Answers are stored as if the user had said them.")
class RolesFlattened(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        answers = [{"role": "user", "content": message["content"]} for message in output.messages]
        return [*turn_input.new, *answers]


@defect(
    "write-behind",
    "A turn is stored only when the next one of its session ends: the store lags behind the answers.",
    "litellm#12364",
)
class WriteBehind(Committer):
    def __init__(self, store: Store, rules: Rules, max_responses: int) -> None:
        super().__init__(store, rules, max_responses)
        self._held: dict[tuple[str, str], Write] = {}

    async def commit(self, write: Write) -> None:
        session = (write.owner, write.history.session)
        earlier = self._held.pop(session, None)
        self._held[session] = write
        if earlier is not None:
            await super().commit(earlier)


@defect(
    "write-behind-of-responses",
    "A response is stored only when the next one of its session ends.",
    "litellm#28587",
)
class WriteBehindOfResponses(WriteBehind):
    async def commit(self, write: Write) -> None:
        await (super().commit(write) if write.response is not None else Committer.commit(self, write))


@defect("new-slug-is-404", "A slug that is not known yet is refused with 404.")
class NewSlugIs404(Resolver):
    def _new_slug(self, request: TurnRequest, slug: str) -> Destination:  # noqa: ARG002 - that is the defect
        raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, "There is no such conversation.", param="conversation")


@defect("new-responses-share-a-session", "Responses that continue no other are all in one session of their principal.")
class NewResponsesShareASession(Resolver):
    def _fresh(self, principal: str) -> Destination:
        return replace(self._named(principal, "sess_of_new_responses"), sent=None)


@defect("unknown-id-is-404", "An unknown id is refused with 404.")
class UnknownIdIs404(Resolver):
    def _started(self, owner: str, session: str, *, derived: bool) -> Destination:
        if not derived:
            raise Refusal(Case.SESSION_NOT_FOUND, "There is no session with this id.")
        return super()._started(owner, session, derived=derived)


@defect("unknown-id-renamed", "An unknown id starts a session under another id.")
class UnknownIdRenamed(Resolver):
    def _started(self, owner: str, session: str, *, derived: bool) -> Destination:
        new = session if derived else self._rules.minted("sess_")
        return super()._started(owner, new, derived=derived)


@defect("store-failure-is-500", "A store that cannot be read makes every turn a 500.")
class StoreFailureIs500(Rules):
    def check_may_degrade(self) -> None:
        raise Refusal(Case.INTERNAL, "The server has a defect.")


@defect("store-failure-new-id", "A store that cannot be read makes a turn start a session under another id.")
class StoreFailureNewId(Agent):
    async def _answer_degraded(self, turn: Turn) -> Outcome:
        other = SessionInfo(self._rules.minted("sess_"))
        return await super()._answer_degraded(replace(turn, session_info=other))


@defect(
    "first-use-failure-is-500",
    "A store that cannot be used at its first use makes the turn a 500; later failures are handled.",
)
class FirstUseFailureIs500(HistoryReader):
    _used = False

    def read(self, request: TurnRequest, destination: Destination) -> TurnInput:
        turn_input = super().read(request, destination)
        if turn_input.degraded and not self._used:
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        self._used = True
        return turn_input


@defect(
    "first-use-failure-is-final",
    "A store that cannot be used at its first use counts as unusable until the next start.",
)
class FirstUseFailureIsFinal(HistoryReader):
    _usable: bool | None = None

    def read(self, request: TurnRequest, destination: Destination) -> TurnInput:
        turn_input = super().read(request, destination)
        if self._usable is None:
            self._usable = not turn_input.degraded
        return turn_input if self._usable else super().read(request, replace(destination, lost=True))


@defect(
    "refused-turn-stored",
    "A turn that was refused because the history could not be read is stored all the same.",
    under={"degraded": "refuse"},
)
class RefusedTurnStored(LeavingAgent):
    async def _answer_degraded(self, turn: Turn) -> Outcome:
        try:
            return await super()._answer_degraded(turn)
        except Refusal:
            await self._leave(turn.destination, turn.input.new)
            raise


@defect("degraded-silently", "An answer without the history does not say so.")
class DegradedSilently(Rules):
    def degraded_fields(self, session_info: SessionInfo) -> Fields:  # noqa: ARG002 - that is the defect
        return []

    def session_object(self, session_info: SessionInfo) -> dict[str, Any]:
        return {**super().session_object(session_info), "degraded": False}


@defect("degraded-turn-overwrites-history", "A turn that could not read the history replaces it.")
class DegradedTurnOverwritesHistory(LeavingAgent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        if turn.input.degraded:
            await self._leave(turn.destination, [*turn.input.new, *output.messages], replaces=True)
        return output


@defect(
    "failed-turn-leaves-user-message",
    "The user message of a turn whose model call failed stays in the history.",
    "openclaw 2026.9.6",
)
class FailedTurnLeavesUserMessage(LeavingAgent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        try:
            return await super()._ask_model(turn)
        except Refusal:
            await self._leave(turn.destination, turn.input.new)
            raise


@defect(
    "broken-stream-stored",
    "A streamed turn whose model breaks off leaves its question and as much of the answer as there was.",
)
class BrokenStreamStored(LeavingAgent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        try:
            return await super()._ask_model(turn)
        except Refusal:
            if turn.request.stream:
                cut = {"role": "assistant", "content": "The answer broke off."}
                await self._leave(turn.destination, [*turn.input.new, cut])
            raise


@defect(
    "error-text-as-answer",
    "A failed model call is answered as if it had succeeded, such as 200 with the error as the text.",
    "hermes-agent 0.19.0",
)
class ErrorTextAsAnswer(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        try:
            return await super()._ask_model(turn)
        except Refusal as refusal:
            return TurnOutput(({"role": "assistant", "content": str(refusal)},), str(refusal))


@defect("unstored-turn-acknowledged", "A turn that could not be stored is answered 200.", "hermes-agent 0.19.0")
class UnstoredTurnAcknowledged(Committer):
    async def check(self) -> None:
        pass

    async def commit(self, write: Write) -> None:
        with suppress(Refusal):
            await super().commit(write)


@defect(
    "system-prompt-dropped",
    "A system prompt sent with the header does not reach the model, on the first turn or a later one.",
)
class SystemPromptDropped(Rules):
    def turn_prompts(self, messages: Sequence[Message]) -> Messages:  # noqa: ARG002 - that is the defect
        return []


@defect("developer-message-dropped", "A developer message does not reach the model.", "hermes-agent 0.19.0")
class DeveloperMessageDropped(Rules):
    def turn_prompts(self, messages: Sequence[Message]) -> Messages:
        return [message for message in super().turn_prompts(messages) if message["role"] != "developer"]


@defect("system-prompt-twice", "A system prompt sent with the header reaches the model twice.")
class SystemPromptTwice(Rules):
    def turn_prompts(self, messages: Sequence[Message]) -> Messages:
        return super().turn_prompts(messages) * 2


@defect("derived-id-starts-empty", "A derived turn is not stored: its id, sent back as header, finds nothing.")
class DerivedIdStartsEmpty(Committer):
    def _conversation(self, turn_input: TurnInput, output: TurnOutput) -> Messages:  # noqa: ARG002 - that is the defect
        return []


@defect(
    "derived-turn-stores-last-message-only",
    "Of a derived turn only the last message and the answer are stored, however much the body said before.",
)
class DerivedTurnStoresLastMessageOnly(Committer):
    def _conversation(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        return [*[*turn_input.before, *turn_input.new][-1:], *output.messages]


@defect(
    "edited-conversation-appended",
    "A derived turn whose body differs from what is stored is added to it, instead of replacing it.",
)
class EditedConversationAppended(Committer):
    def _derived(self, destination: Destination, turn_input: TurnInput, whole: Messages) -> HistoryWrite:
        own = super()._derived(destination, turn_input, whole)
        start = len(turn_input.before)
        return replace(own, messages=tuple(whole[start:]), replace=False) if own.replace else own


@defect(
    "edit-hidden-by-summary",
    "After a compression, a derived turn with an edited message still shows the model the summary of what was there before.",
)
class EditHiddenBySummary(Rules):
    def without_covered(
        self, body: Sequence[Message], stored: Sequence[Message], covered: Covered | None
    ) -> Messages | None:
        if covered is not None:
            covered = Covered().and_also(self.user_texts(body)[: covered.count])
        return super().without_covered(body, stored, covered)


@defect(
    "store-connection-per-turn",
    "Every turn opens a connection to the store, and leaves it open.",
    "hermes-agent@558971f44d",
)
class StoreConnectionPerTurn(Store):
    _open: ClassVar[list[sqlite3.Connection]] = []

    def _apply(self, write: Write) -> None:
        super()._apply(write)
        [(_, _, file), *_] = self._connection.execute("PRAGMA database_list").fetchall()
        connection = sqlite3.connect(file)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        self._open.append(connection)


@defect(
    "session-entry-per-turn",
    "Every turn leaves an entry of its own in the list of sessions.",
    "hermes-agent@61c1fd08cc",
)
class SessionEntryPerTurn(Committer):
    async def commit(self, write: Write) -> None:
        await super().commit(write)
        extra = self._rules.minted("sess_")
        await super().commit(Write(write.owner, HistoryWrite(extra, extra, write.history.messages)))


class _PlainSink(NoSink):
    """The sink of a plain request, which knows whether the client has hung up."""

    def __init__(self, request: web.Request) -> None:
        self._request = request

    @property
    def gone(self) -> bool:  # type: ignore[override] # a plain attribute in NoSink
        return self._request.transport is None or self._request.transport.is_closing()


class _WatchedChat(ChatHandler):
    async def post(self, request: web.Request) -> web.StreamResponse:
        turn = self._turn_request(request, await json_body(request, self._rules))
        return (
            await super().post(request)
            if turn.stream
            else self._answered(await self._agent.turn(turn, _PlainSink(request)))
        )


class _WatchedResponses(ResponsesHandler):
    async def post(self, request: web.Request) -> web.StreamResponse:
        turn = self._turn_request(request, await json_body(request, self._rules))
        return (
            await super().post(request)
            if turn.stream
            else self._answered(await self._agent.turn(turn, _PlainSink(request)))
        )


@defect(
    "abandoned-request-leaves-half-turn",
    "A client that hangs up on a plain request leaves its question without an answer.",
    also=(_WatchedChat, _WatchedResponses),
)
class AbandonedRequestLeavesHalfTurn(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        return replace(output, messages=()) if turn.sink.gone and not turn.request.stream else output


@defect(
    "abandoned-request-locks-session",
    "A session whose client hung up on a plain request is busy for good.",
    also=(_WatchedChat, _WatchedResponses),
)
class AbandonedRequestLocksSession(LockingAgent):
    def _keeps_session(self, turn: Turn) -> bool:
        return turn.sink.gone and not turn.request.stream


@defect("tool-result-dropped", "Results of tool calls do not reach the model again; their calls do.", "agno#9372")
class ToolResultDropped(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        return [message for message in messages if message["role"] != "tool"]


@defect("tool-call-dropped", "Tool calls do not reach the model again; their results do.", "nanobot#4006")
class ToolCallDropped(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        return [message for message in super().paired(messages) if not message.get("tool_calls")]


@defect("tool-pairs-reordered", "A tool's result reaches the model before its call.")
class ToolPairsReordered(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        whole = super().paired(messages)
        for index in range(1, len(whole)):
            if whole[index]["role"] == "tool" and whole[index - 1].get("tool_calls"):
                whole[index - 1], whole[index] = whole[index], whole[index - 1]
        return whole


@defect("abandoned-call-kept", "A call that the client abandoned reaches the model without a result.", "mastra#20610")
class AbandonedCallKept(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        return list(messages)


class _Endpoint:
    """Whether the history of /v1/responses is wanted. Every use sets it, and reads or writes in the same step of the event loop."""

    responses: ClassVar[bool] = False


class _HistoriesApart(RenamedHistories):
    def name(self, session: str) -> str:
        return f"{session}\x1fresponses" if _Endpoint.responses else session


class _ReaderApart(HistoryReader):
    def read(self, request: TurnRequest, destination: Destination) -> TurnInput:
        _Endpoint.responses = request.surface is Surface.RESPONSES
        return super().read(request, destination)


class _ResolverApart(Resolver):
    def destination(self, request: TurnRequest) -> Destination:
        _Endpoint.responses = request.surface is Surface.RESPONSES
        return super().destination(request)

    def find(self, principal: str, session: str) -> Session | None:
        _Endpoint.responses = False
        return super().find(principal, session)


@defect(
    "slug-history-apart",
    "Chat and responses keep separate histories of one session.",
    "openclaw 2026.9.6",
    also=(_HistoriesApart, _ReaderApart, _ResolverApart),
)
class SlugHistoryApart(Store):
    def _apply(self, write: Write) -> None:
        _Endpoint.responses = write.response is not None
        super()._apply(write)


@defect("failed-turn-uses-up-calls", "Tool results whose model call failed count as sent: they cannot be sent again.")
class FailedTurnUsesUpCalls(Agent):
    _used: ClassVar[set[str]] = set()

    async def _ask_model(self, turn: Turn) -> TurnOutput:
        calls = {f"{turn.destination.tip} {each['tool_call_id']}" for each in turn.input.new if each["role"] == "tool"}
        if calls & self._used:
            raise Refusal(Case.TOOL_CALL_NOT_FOUND, "The tool results answer no open tool call of this session.")
        self._used.update(calls)
        output = await super()._ask_model(turn)
        self._used.difference_update(calls)
        return output


@defect(
    "repeated-words-hide-a-turn",
    "A turn with the words of the turn before it is taken for another try, and does not see it.",
)
class RepeatedWordsHideATurn(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        own = super()._named(request, destination, stored, degraded=degraded)
        users = [index for index, message in enumerate(stored) if message["role"] == "user"]
        again = len(users) > 1 and [stored[users[-1]]] == own.new
        return replace(own, before=stored[: users[-1]]) if again else own


@defect("tool-results-found-by-id", "The result of a tool call is the newest one with its id, of whichever turn.")
class ToolResultsFoundById(Rules):
    def paired(self, messages: Sequence[Message]) -> Messages:
        newest = {message["tool_call_id"]: message for message in messages if message["role"] == "tool"}
        return [
            newest.get(each["tool_call_id"], each) if each["role"] == "tool" else each
            for each in super().paired(messages)
        ]


@defect("history-window", "Only the last 50 messages of a history are read.")
class HistoryWindow(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        return super()._stored(destination)[-50:]


@defect("images-not-stored", "Of a message with an image only the text is stored.")
class ImagesNotStored(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        return [_text_of(message) for message in super()._messages(turn_input, output)]


def _text_of(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": "\n".join(str(part["text"]) for part in content if "text" in part)}


@defect("pages-by-second", "The next page of the list of sessions begins with those of an earlier second.")
class PagesBySecond(Store):
    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:
        last = self.session(owner, after) if after is not None else None
        page = super().page_of_sessions(owner, after, limit if last is None else -1)
        return page if last is None else [each for each in page if each.created < last.created][:limit]


@defect(
    "pages-by-activity",
    "The list of sessions is ordered by their last turns, so that a session moves while somebody reads it.",
)
class PagesByActivity(Store):
    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:
        query = "SELECT session FROM messages WHERE owner=? GROUP BY session ORDER BY max(seq) DESC"
        active = [row[0] for row in self._read(query, owner)]
        listed = {each.id: each for each in super().page_of_sessions(owner, None, -1)}
        begin = active.index(after) + 1 if after in active else 0
        return [listed[each] for each in active[begin:] if each in listed][:limit]


@defect("longest-page-is-the-last", "The longest page of the list of sessions never says that there are more.")
class LongestPageIsTheLast(Store):
    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:
        return super().page_of_sessions(owner, after, min(limit, _LONGEST_PAGE))


@defect("empty-answer-not-stored", "A turn with an empty answer is not stored.")
class EmptyAnswerNotStored(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        return super()._messages(turn_input, output) if output.text or output.client_calls else []


@defect("last-item-stored-alone", "Only the last item of an input is stored.")
class LastItemStoredAlone(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        alone = turn_input.new[-1]["role"] == "user"
        return super()._messages(replace(turn_input, new=turn_input.new[-1:]) if alone else turn_input, output)


class _RewritingCommitter(Committer):
    """A committer that changes the messages of a turn before it stores them."""

    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        return [self._rewritten(message) for message in super()._messages(turn_input, output)]

    def _rewritten(self, message: Message) -> Message:
        content = message.get("content")
        return {**message, "content": self._text(message["role"], content)} if isinstance(content, str) else message

    @abstractmethod
    def _text(self, role: str, text: str) -> str:
        """What is stored in place of this text."""


@defect("long-text-cut", "Texts are cut after 65,535 bytes, as by a column of the type TEXT in some databases.")
class LongTextCut(_RewritingCommitter):
    def _text(self, role: str, text: str) -> str:  # noqa: ARG002 - any role
        return text.encode()[:_SHORT_COLUMN].decode(errors="ignore")


@defect("stored-texts-normalised", "Texts are stored in Unicode's composed form.")
class StoredTextsNormalised(_RewritingCommitter):
    def _text(self, role: str, text: str) -> str:  # noqa: ARG002 - any role
        return unicodedata.normalize("NFC", text)


@defect("tool-result-trimmed", "Blanks and line ends around the result of a tool are not stored.")
class ToolResultTrimmed(_RewritingCommitter):
    def _text(self, role: str, text: str) -> str:
        return text.strip() if role == "tool" else text


@defect(
    "texts-normalised-on-restart", "After a restart, the texts of before reach the model in Unicode's composed form."
)
class TextsNormalisedOnRestart(Histories):
    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._written: set[tuple[str, str]] = set()

    def append(self, owner: str, session: str, epoch: int, messages: Iterable[Message]) -> list[int]:
        self._written.add((owner, session))
        return super().append(owner, session, epoch, messages)

    def read(self, owner: str, session: str, epoch: int, upto: int = LAST) -> list[Message]:
        messages = super().read(owner, session, epoch, upto)
        known = (owner, session) in self._written
        return messages if known else [{**each, "content": self._composed(each["content"])} for each in messages]

    def _composed(self, content: Any) -> Any:
        return unicodedata.normalize("NFC", content) if isinstance(content, str) else content


@defect("tool-result-written-anew", "A tool's result that is JSON is parsed, and written anew for the store.")
class ToolResultWrittenAnew(_RewritingCommitter):
    def _text(self, role: str, text: str) -> str:
        with suppress(ValueError):
            return json.dumps(json.loads(text)) if role == "tool" else text
        return text


@defect(
    "answer-closes-open-calls",
    "An answer closes the calls before it.",
)
class AnswerClosesOpenCalls(Rules):
    def _open_calls(self, before: Sequence[Message]) -> set[str]:
        answered = bool(before) and before[-1]["role"] == "assistant" and not before[-1].get("tool_calls")
        return set() if answered else super()._open_calls(before)


_CALLS: set[str] = set()
"""The tool calls of clients that this process has answered with."""


class _NotingCommitter(Committer):
    def write(self, turn: Turn, output: TurnOutput, compression: Compression | None) -> Write:
        _CALLS.update(str(call["id"]) for call in output.client_calls)
        return super().write(turn, output, compression)


@defect(
    "open-calls-forgotten-on-restart",
    "A restart forgets open tool calls.",
    also=(_NotingCommitter,),
)
class OpenCallsForgottenOnRestart(Rules):
    def _open_calls(self, before: Sequence[Message]) -> set[str]:
        return super()._open_calls(before) & _CALLS


@defect("refused-turn-stored-later", "A turn that could not be stored is refused, and stored before the next one.")
class RefusedTurnStoredLater(Committer):
    _refused: ClassVar[list[Write]] = []

    async def check(self) -> None:
        """The turn is not refused yet: it must be made, to be stored later."""

    async def commit(self, write: Write) -> None:
        try:
            while self._refused:
                await super().commit(self._refused[0])
                self._refused.pop(0)
            await super().commit(write)
        except Refusal:
            self._refused.append(write)
            raise


@defect(
    "abandoned-waiter-locks-session",
    "A session is busy for good if a client hung up while its turn waited for another one.",
    also=(_WatchedChat, _WatchedResponses),
)
class AbandonedWaiterLocksSession(LockingAgent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        if turn.sink.gone and not turn.request.stream:
            self._locked_for_good.add(turn.destination.tip)
        return await super()._ask_model(turn)

    def _keeps_session(self, turn: Turn) -> bool:  # noqa: ARG002 - it is kept before the model is asked
        return False


@defect("empty-answer-left-out", "Of a turn with an empty answer only the question is stored.")
class EmptyAnswerLeftOut(Committer):
    def _messages(self, turn_input: TurnInput, output: TurnOutput) -> Messages:
        empty = not output.text and not output.client_calls
        return turn_input.new if empty else super()._messages(turn_input, output)


@defect("history-ends-at-a-hundred", "Only the last 100 messages of a history are read.")
class HistoryEndsAtAHundred(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        return super()._stored(destination)[-100:]
