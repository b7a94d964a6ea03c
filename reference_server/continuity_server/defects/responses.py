"""Defects of SLUG: responses, their instructions and their ids, and conversation objects."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from aiohttp import web

from continuity_server.defects.registry import defect
from continuity_server.http.conversations import ConversationsHandler
from continuity_server.http.request import PRINCIPAL, answer
from continuity_server.http.responses import ResponsesHandler
from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.store.histories import Histories
from continuity_server.store.records import SlugWrite, StoredConversation, StoredResponse, Write
from continuity_server.store.store import Store
from continuity_server.store.write import ensure_session
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, Outcome, Sink, Turn, TurnInput, TurnRequest

_LATE_SECONDS: Final = 0.3


@defect("store-false-ignored-with-header", "`store: false` counts for nothing in a session that the header names.")
class StoreFalseIgnoredWithHeader(Agent):
    async def _answer_unstored(self, turn: Turn) -> Outcome:
        return await (self._answer(turn) if turn.request.header is not None else super()._answer_unstored(turn))


@defect("branch-takes-the-slug", "A slug goes on in the branch that was made from one of its older responses.")
class BranchTakesTheSlug(Committer):
    def _slug(self, destination: Destination, session: str) -> SlugWrite | None:
        if destination.branch_from is None:
            return super()._slug(destination, session)
        slug = self._store.slug_of(destination.owner, destination.branch_from[0].root)
        return SlugWrite(slug, session) if slug is not None else None


@defect(
    "instructions-carried-over",
    "The instructions of a response are part of its history: the turns after it get them too.",
)
class InstructionsCarriedOver(Rules):
    def response_input(self, messages: Sequence[Message]) -> Messages:
        return list(messages)


@defect("instructions-sent-twice", "The model gets the instructions of a response twice.")
class InstructionsSentTwice(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        turn_input = super()._named(request, destination, stored, degraded=degraded)
        twice = request.surface is Surface.RESPONSES
        return replace(turn_input, prompts=turn_input.prompts * 2) if twice else turn_input


@defect("instructions-lost-on-chain", "Instructions beside a previous_response_id never reach the model.")
class InstructionsLostOnChain(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        turn_input = super()._named(request, destination, stored, degraded=degraded)
        return replace(turn_input, prompts=[]) if request.previous is not None else turn_input


class _LateResponses(Committer):
    """Stores responses a moment after they were answered."""

    def __init__(self, store: Store, rules: Rules, max_responses: int) -> None:
        super().__init__(store, rules, max_responses)
        self._tasks: set[asyncio.Task[None]] = set()
        self._late: set[str] = set()

    def recorded(self, turn: Turn, write: Write, header: str, body: dict[str, Any]) -> Write:
        if self._is_late(turn.request):
            self._late.add(turn.request.answer_id)
        return super().recorded(turn, write, header, body)

    async def commit(self, write: Write) -> None:
        if write.response is None or write.response[0] not in self._late:
            await super().commit(write)
            return
        task = asyncio.create_task(self._later(write))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _later(self, write: Write) -> None:
        await asyncio.sleep(_LATE_SECONDS)
        await super().commit(write)

    def _is_late(self, request: TurnRequest) -> bool:
        return request.surface is Surface.RESPONSES


@defect("chain-stored-late", "A response is stored a moment after it was answered.", "litellm#12364")
class ChainStoredLate(_LateResponses):
    """Plain or streamed."""


@defect("streamed-chain-stored-late", "A streamed response is stored a moment after it was answered.", "litellm#28587")
class StreamedChainStoredLate(_LateResponses):
    def _is_late(self, request: TurnRequest) -> bool:
        return super()._is_late(request) and request.stream


@defect("store-off-by-default", "A request without `store` is not stored.", "Mastra")
class StoreOffByDefault(ResponsesHandler):
    def _turn_request(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        return super()._turn_request(request, {"store": False, **body})


@defect("deleted-conversation-still-there", "DELETE of a conversation answers that it is gone, and leaves it there.")
class DeletedConversationStillThere(Store):
    async def delete_conversation(self, owner: str, conversation: str, sessions: Sequence[str]) -> None:
        pass


@defect(
    "deleted-conversation-remembers", "A deleted conversation is unknown until a turn names it, and then remembers."
)
class DeletedConversationRemembers(Store):
    async def delete_conversation(self, owner: str, conversation: str, sessions: Sequence[str]) -> None:  # noqa: ARG002 - left there
        query = "DELETE FROM conversation_objects WHERE owner=? AND id=?"
        await self._execute(query, owner, conversation)


@defect("conversation-created-twice", "Every conversation that is created has the same id.")
class ConversationCreatedTwice(ConversationsHandler):
    _one_at_a_time: Final = asyncio.Lock()

    async def post(self, request: web.Request) -> web.Response:
        made = StoredConversation("conv_default", 0, {})
        async with self._one_at_a_time:
            if self._store.conversation(request[PRINCIPAL], made.id) is None:
                await self._store.add_conversation(request[PRINCIPAL], made)
        return answer({"id": made.id, "object": "conversation", "created_at": made.created, "metadata": made.metadata})


@defect("unknown-conversation-is-200", "GET of a conversation that never existed shows an empty one.")
class UnknownConversationIs200(ConversationsHandler):
    def _conversation(self, request: web.Request) -> StoredConversation:
        try:
            return super()._conversation(request)
        except Refusal:
            return StoredConversation(request.match_info["id"], 0, {})


@defect("conversations-shared-by-principals", "Every principal can read every conversation.")
class ConversationsSharedByPrincipals(Store):
    def conversation(self, owner: str, ident: str) -> StoredConversation | None:  # noqa: ARG002 - that is the defect
        rows = self._read("SELECT owner FROM conversation_objects WHERE id=?", ident)
        return super().conversation(rows[0][0], ident) if rows else None


@defect(
    "wellformed-unknown-response-accepted",
    "A previous_response_id is refused for its form only: an unknown one of the right form is accepted.",
    "azure-ai-agentserver",
)
class WellformedUnknownResponseAccepted(Resolver):
    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        wellformed = re.fullmatch("resp_[0-9a-f]{32}", previous) is not None
        unknown = self._store.response(request.principal, previous) is None
        return self._fresh(request.principal) if wellformed and unknown else super()._previous(request, previous)


@defect(
    "header-rebound-by-previous-response",
    "A header beside the response of another session names that session from then on.",
    "Letta",
)
class HeaderReboundByPreviousResponse(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._rebound: dict[tuple[str, str], str] = {}

    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        destination = super()._previous(replace(request, header=None), previous)
        if request.header is not None:
            self._rebound[request.principal, request.header] = destination.tip
        return destination

    def _named(self, owner: str, session: str, *, derived: bool = False) -> Destination:
        return super()._named(owner, self._rebound.get((owner, session), session), derived=derived)


class _ReplacesResponses(Store):
    """Stores a response in place of one that has its id."""

    def _apply(self, write: Write) -> None:
        if write.response is not None:
            place = (write.owner, write.response[0])
            self._connection.execute("DELETE FROM responses WHERE owner=? AND response_id=?", place)
        super()._apply(write)


@defect(
    "client-chosen-id-replaces-response",
    "A client chooses the id of a response, and one that is used twice replaces the first.",
    "azure-ai-agentserver",
    also=(_ReplacesResponses,),
)
class ClientChosenIdReplacesResponse(ResponsesHandler):
    def _turn_request(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        turn = super()._turn_request(request, body)
        chosen = body.get("id") or request.headers.get("X-Agent-Response-Id") or turn.answer_id
        return replace(turn, answer_id=chosen, shape=lambda output, info: {**turn.shape(output, info), "id": chosen})


@defect("session-row-for-each-turn", "Each turn of a slug leaves an empty session of its own in the list.")
class SessionRowForEachTurn(Store):
    def _apply(self, write: Write) -> None:
        super()._apply(write)
        if write.slug is not None:
            ident = self._rules.minted("sess_")
            ensure_session(self._connection, write.owner, Session(ident, ident))


@defect("replaced-history-forgotten", "A history that is replaced is gone, also for responses that end in it.")
class ReplacedHistoryForgotten(Histories):
    def forget(self, owner: str, session: str) -> None:
        self._connection.execute("DELETE FROM messages WHERE owner=? AND session=?", (owner, session))


@defect("instructions-kept-with-results", "The instructions that come with the results of a tool stay in the history.")
class InstructionsKeptWithResults(Rules):
    def response_input(self, messages: Sequence[Message]) -> Messages:
        results = any(message["role"] == "tool" for message in messages)
        return list(messages) if results else super().response_input(messages)


@defect("null-is-store-false", "`store: null` counts as `store: false`.")
class NullIsStoreFalse(Agent):
    async def turn(self, request: TurnRequest, sink: Sink) -> Outcome:
        null = "store" in request.body and request.body["store"] is None
        return await super().turn(replace(request, store=False) if null else request, sink)


@defect("response-ids-are-patterns", "A response id that was changed, such as by a % in it, still finds the response.")
class ResponseIdsArePatterns(Store):
    def response(self, owner: str, response: str) -> StoredResponse | None:
        rows = self._read("SELECT response_id FROM responses WHERE owner=? AND response_id LIKE ?", owner, response)
        return super().response(owner, rows[0][0]) if rows else None


@defect(
    "instructions-kept-for-results",
    "The results of a tool, sent without instructions, get those of the response with the call.",
)
class InstructionsKeptForResults(HistoryReader):
    def _named(self, request: TurnRequest, destination: Destination, stored: Messages, *, degraded: bool) -> TurnInput:
        own = super()._named(request, destination, stored, degraded=degraded)
        before = self._store.response(request.principal, request.previous) if request.previous is not None else None
        instructions = before.body.get("instructions") if before is not None and before.body is not None else None
        if not instructions or own.prompts or own.new[0]["role"] != "tool":
            return own
        return replace(own, prompts=[{"role": "system", "content": instructions}])


@defect("cut-response-not-stored", "A response that the model cut off (`finish_reason: length`) is not stored.")
class CutResponseNotStored(Agent):
    async def _keep(self, write: Write, outcome: Outcome) -> None:
        if outcome.body.get("status") != "incomplete":
            await super()._keep(write, outcome)
