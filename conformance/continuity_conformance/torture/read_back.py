"""Reads a conversation back without a turn, where the target offers that: its stored messages, and its last response."""

from collections.abc import Mapping
from typing import Final

from continuity_conformance.http.messages import Answer, dig
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.scenario.request_builder import plain_request
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.torture.audit.history import OF_THE_MESSAGES, FetchedResponse, Observation
from continuity_conformance.torture.conversation import Conversation
from continuity_conformance.torture.state import CampaignState
from continuity_conformance.torture.views import seen_in_store, summaries_in

_VARIABLES: Final = Variables({}, {})
_OK: Final = 200
_NOT_FOUND: Final = 404


async def read_back(state: CampaignState, conversation: Conversation) -> None:
    """Note what the target itself says about a conversation. An answer that says neither yes nor no is not noted."""
    offers, options = state.context.target.offers, state.context.target.options
    # The client may not know the newest id of a session that rotated, and the other ids have other lists.
    rotated = conversation.compressed and options["compaction"] == "rotate"
    if "sessions" in offers and conversation.session and not rotated:
        await _messages(state, conversation)
    if "stored-responses" in offers:
        for known in filter(None, (conversation.answered_response, conversation.unanswered_response)):
            await _response(state, conversation, *known)
        conversation.answered_response = conversation.unanswered_response = None


async def _messages(state: CampaignState, conversation: Conversation) -> None:
    since = state.journal.now
    answer = await _get(state, conversation, {"path": f"/v1/sessions/{conversation.session}/messages"})
    listed = dig(answer.body, "data")
    if answer.status != _OK or not isinstance(listed, list) or dig(answer.body, "has_more"):
        return
    messages = [each for each in listed if isinstance(each, Mapping)]
    covered: frozenset[str] = frozenset().union(*map(state.probe.covered, summaries_in(messages)))
    seen = seen_in_store(messages)
    state.counts.read_back += 1
    conversation.observations.append(Observation(OF_THE_MESSAGES, since, state.journal.now, seen, summarised=covered))


async def _response(state: CampaignState, conversation: Conversation, mark: str, response: str) -> None:
    answer = await _get(state, conversation, {"response": response})
    finished = answer.status == _OK and dig(answer.body, "status") in {None, "completed"}
    if finished or answer.status == _NOT_FOUND:
        conversation.responses.append(FetchedResponse(mark, state.journal.now, finished))


async def _get(state: CampaignState, conversation: Conversation, params: Mapping[str, object]) -> Answer:
    step = made_step("get", {**params, "as": conversation.principal})
    return await state.context.transport.send(plain_request(state.context, _VARIABLES, step))
