"""The checks of CONTRACT. Each first shows that the target keeps sessions, then reads its findings of random testing.

The data generators take long to load, so they are imported in the thread, and only when such a check is played.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

from continuity_conformance.checks.registry import CAMPAIGN_CHECKS, Check, a_key, check, keyed, on, seeded
from continuity_conformance.core.failure import Untested
from continuity_conformance.fuzz.findings import Concern, Finding, fail_on_findings
from continuity_conformance.fuzz.generated.session_list import check_session_list
from continuity_conformance.fuzz.shared_state import shared_state
from continuity_conformance.fuzz.sync_client import SyncClient, run_in_thread
from continuity_conformance.scenario.dialogue import Dialogue

if TYPE_CHECKING:
    from continuity_conformance.fuzz.property.all_properties import Properties


async def keeps_sessions(dialogue: Dialogue) -> None:
    """Positive control with different sessions: a server that answers everything identically cannot pass."""
    if "chat" not in dialogue.context.target.offers:
        await dialogue.do("respond", {"response": "$first"}, say="red")
        await dialogue.do("respond", {"response": "$second"}, say="blue")
        return
    await dialogue.do("chat", {"session": "$derived"}, say="red")
    await dialogue.do("chat", {"session": "$id"}, session="$id", say="blue")
    await dialogue.do("chat", {"session": "$other"}, session="$other", say="green")


def after_positive_control(function: Check) -> Check:
    """Register a check with generated data. It runs after `keeps_sessions`."""

    @wraps(function)
    async def played(dialogue: Dialogue) -> None:
        await keeps_sessions(dialogue)
        await function(dialogue)

    return seeded(check(played))


def campaign_check(function: Check) -> Check:
    """Register a check that reads the findings of the campaign."""
    CAMPAIGN_CHECKS.add(function.__name__)
    return after_positive_control(function)


@campaign_check
async def right_data_accepted(dialogue: Dialogue) -> None:
    """CONTRACT-01: data that the document allows is accepted."""
    await _campaign(dialogue, Concern.SUCCESS)


@campaign_check
async def wrong_data_refused(dialogue: Dialogue) -> None:
    """CONTRACT-02: data that the document rules out is refused."""
    await _campaign(dialogue, Concern.REFUSAL)


@campaign_check
async def answers_as_documented(dialogue: Dialogue) -> None:
    """CONTRACT-03: every answer is as documented, and so is the list of sessions."""
    await _documented_session_list(dialogue)
    await _campaign(dialogue, Concern.DOCUMENTED)


@campaign_check
async def no_server_error(dialogue: Dialogue) -> None:
    """CONTRACT-04: no request ends in a 5xx."""
    await _campaign(dialogue, Concern.ALIVE)


@campaign_check
async def other_methods_refused(dialogue: Dialogue) -> None:
    """CONTRACT-05: methods that a path does not document are refused."""
    await _campaign(dialogue, Concern.METHOD)


@after_positive_control
async def broken_json_refused(dialogue: Dialogue) -> None:
    """CONTRACT-06: a body that is not a JSON object in UTF-8 is refused."""
    await _properties(dialogue, lambda properties: properties.bodies.broken_json())


@after_positive_control
async def large_bodies_survived(dialogue: Dialogue) -> None:
    """CONTRACT-07: huge and deep bodies are answered, and the server still works after them."""
    await _properties(dialogue, lambda properties: properties.bodies.huge_or_deep())


@on(a_key)
@keyed
@after_positive_control
async def key_asked_everywhere(dialogue: Dialogue) -> None:
    """CONTRACT-08: every operation requires exactly the key."""
    await _properties(dialogue, lambda properties: properties.unprotected_operations())


@campaign_check
async def told_ids_accepted_back(dialogue: Dialogue) -> None:
    """CONTRACT-09: every id that the server reveals is accepted back."""
    await _campaign(dialogue, Concern.HEADER)
    await _properties(dialogue, lambda properties: properties.ids.ids_accepted_back())


@after_positive_control
async def openings_derive(dialogue: Dialogue) -> None:
    """CONTRACT-10: generated openings derive the id that the rule gives."""
    await _properties(dialogue, lambda properties: properties.ids.derived_ids())


@after_positive_control
async def names_come_back(dialogue: Dialogue) -> None:
    """CONTRACT-11: generated ids and slugs are refused, or come back unchanged."""
    await _properties(dialogue, lambda properties: properties.ids.unchanged_names())


@campaign_check
async def wrong_model_fields_refused(dialogue: Dialogue) -> None:
    """CONTRACT-12: wrong values of fields that only the model reads are refused."""
    await _campaign(dialogue, Concern.FOREIGN)


@after_positive_control
async def other_types_refused(dialogue: Dialogue) -> None:
    """CONTRACT-13: JSON with another content type is refused."""
    await _properties(dialogue, lambda properties: properties.bodies.other_content_types())


async def _documented_session_list(dialogue: Dialogue) -> None:
    """Check the list of sessions where the target has one in the documented form."""
    target = dialogue.context.target
    if {"sessions", "chat"} <= target.offers and target.profile.documented_sessions:
        await check_session_list(dialogue, "$id", "$other")


async def _campaign(dialogue: Dialogue, concern: Concern) -> None:
    """Fail with the findings of one concern. An operation that never succeeded is not tested."""
    campaign = await shared_state(dialogue.context).campaign(dialogue.context)
    fail_on_findings(dialogue, campaign.findings.of(concern))
    if campaign.unreached:
        # SLUG-15 and DELETE report a missing operation. Here it only means that nothing was shown.
        raise Untested(f"no success of {', '.join(campaign.unreached)}, so nothing could be checked there")


async def _properties(dialogue: Dialogue, find: "Callable[[Properties], list[Finding]]") -> None:
    """Look for findings in a thread, when no other random check is running, and fail with them."""
    state = shared_state(dialogue.context)

    def find_in_thread(client: SyncClient) -> list[Finding]:
        from continuity_conformance.fuzz.property import all_properties  # noqa: PLC0415 - hypothesis loads slowly

        return find(all_properties.Properties(client, state.names, state.budget))

    async with state.lock:
        fail_on_findings(dialogue, await run_in_thread(dialogue.context, find_in_thread))
