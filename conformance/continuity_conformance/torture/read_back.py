"""Reads a conversation back without a turn, where the target offers that: its stored messages, and its last response."""

from collections.abc import Mapping
from typing import Final

from continuity_conformance.http.messages import Answer, dig
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.scenario.request_builder import plain_request
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.torture.conversation import Conversation
from continuity_conformance.torture.field import Field
from continuity_conformance.torture.history import OF_THE_MESSAGES, Observation, StoredResponse
from continuity_conformance.torture.views import seen_in_store, summaries_in

_VARIABLES: Final = Variables({}, {})
_OK: Final = 200
_NOT_FOUND: Final = 404


async def read_back(field: Field, conversation: Conversation) -> None:
    """Note what the target itself says about a conversation. An answer that says neither yes nor no is not noted."""
    offers, options = field.context.target.offers, field.context.target.options
    # The client may not know the newest id of a session that rotated, and the other ids have other lists.
    rotated = conversation.compressed and options["compaction"] == "rotate"
    if "sessions" in offers and conversation.session and not rotated:
        await _messages(field, conversation)
    if "stored-responses" in offers:
        for known in filter(None, (conversation.answered_response, conversation.unanswered_response)):
            await _response(field, conversation, *known)
        conversation.answered_response = conversation.unanswered_response = None


async def _messages(field: Field, conversation: Conversation) -> None:
    since = field.journal.now
    answer = await _get(field, conversation, {"path": f"/v1/sessions/{conversation.session}/messages"})
    listed = dig(answer.body, "data")
    if answer.status != _OK or not isinstance(listed, list) or dig(answer.body, "has_more"):
        return
    messages = [each for each in listed if isinstance(each, Mapping)]
    covered: frozenset[str] = frozenset().union(*map(field.probe.covered, summaries_in(messages)))
    seen = seen_in_store(messages)
    field.counts.read_back += 1
    conversation.observations.append(Observation(OF_THE_MESSAGES, since, field.journal.now, seen, summarised=covered))


async def _response(field: Field, conversation: Conversation, mark: str, response: str) -> None:
    answer = await _get(field, conversation, {"response": response})
    finished = answer.status == _OK and dig(answer.body, "status") in {None, "completed"}
    if finished or answer.status == _NOT_FOUND:
        conversation.responses.append(StoredResponse(mark, field.journal.now, finished))


async def _get(field: Field, conversation: Conversation, params: Mapping[str, object]) -> Answer:
    step = made_step("get", {**params, "as": conversation.principal})
    return await field.context.transport.send(plain_request(field.context, _VARIABLES, step))
