"""The checks of CONTRACT. Each first shows that the target keeps sessions at all, then asks what random testing found of its own kind.

Light on purpose: what makes up data is loaded in the thread, and only where such a check is played.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

from continuity_conformance.checks.registry import SHARING, Check, check, seeded
from continuity_conformance.core.failure import Untested
from continuity_conformance.fuzz.findings import Concern, Finding, tell
from continuity_conformance.fuzz.generated.session_list import lists_sessions
from continuity_conformance.fuzz.shared_state import Shared, shared_of
from continuity_conformance.fuzz.sync_client import Wire, in_thread
from continuity_conformance.scenario.dialogue import Dialogue

if TYPE_CHECKING:
    from continuity_conformance.fuzz.property.malformed import Malformed
    from continuity_conformance.fuzz.property.properties import Properties


async def keeps_sessions(dialogue: Dialogue) -> None:
    """The twin of everything that is refused: three sessions that are told apart. Who answers everything alike shows nothing."""
    await dialogue.do("chat", {"session": "$derived"}, say="red")
    await dialogue.do("chat", {"session": "$id"}, session="$id", say="blue")
    await dialogue.do("chat", {"session": "$other"}, session="$other", say="green")


def after_sessions(ask: Check) -> Check:
    """Register a check that makes up its data, and that asks only whoever keeps sessions."""

    @wraps(ask)
    async def played(dialogue: Dialogue) -> None:
        await keeps_sessions(dialogue)
        await ask(dialogue)

    return seeded(check(played))


def of_campaign(ask: Check) -> Check:
    """Register a check that asks what the campaign found."""
    SHARING.add(ask.__name__)
    return after_sessions(ask)


@of_campaign
async def right_data_accepted(dialogue: Dialogue) -> None:
    """CONTRACT-01: what the document allows is accepted."""
    await _campaign(dialogue, Concern.SUCCESS)


@of_campaign
async def wrong_data_refused(dialogue: Dialogue) -> None:
    """CONTRACT-02: what it rules out is refused."""
    await _campaign(dialogue, Concern.REFUSAL)


@of_campaign
async def answers_as_documented(dialogue: Dialogue) -> None:
    """CONTRACT-03: every answer is as documented, and so is the list of sessions."""
    target = dialogue.context.target
    if "sessions" in target.offers and target.profile.documented_sessions:
        await lists_sessions(dialogue, "$id", "$other")
    await _campaign(dialogue, Concern.DOCUMENTED)


@of_campaign
async def no_server_error(dialogue: Dialogue) -> None:
    """CONTRACT-04: nothing ends in a 5xx."""
    await _campaign(dialogue, Concern.ALIVE)


@of_campaign
async def other_methods_refused(dialogue: Dialogue) -> None:
    """CONTRACT-05: methods that a path does not take are refused."""
    await _campaign(dialogue, Concern.METHOD)


@after_sessions
async def broken_json_refused(dialogue: Dialogue) -> None:
    """CONTRACT-06: what is no JSON object in UTF-8 is refused."""
    await _malformed(dialogue, lambda malformed: malformed.broken())


@after_sessions
async def large_bodies_survived(dialogue: Dialogue) -> None:
    """CONTRACT-07: huge and deep bodies are answered, and the server lives on."""
    await _malformed(dialogue, lambda malformed: malformed.too_much())


@after_sessions
async def key_asked_everywhere(dialogue: Dialogue) -> None:
    """CONTRACT-08: nothing but the key opens any operation."""
    _needs_key(dialogue)

    def play(wire: Wire, shared: Shared) -> list[Finding]:
        from continuity_conformance.fuzz.property.keys import unguarded  # noqa: PLC0415 - in the thread

        return unguarded(wire, shared.names, shared.budget)

    await _explore(dialogue, play)


@of_campaign
async def told_ids_accepted_back(dialogue: Dialogue) -> None:
    """CONTRACT-09: every id that is told is accepted back."""
    await _campaign(dialogue, Concern.HEADER)
    await _properties(dialogue, lambda properties: properties.accepted_back())


@after_sessions
async def openings_derive(dialogue: Dialogue) -> None:
    """CONTRACT-10: generated openings derive the id that the rule says."""
    await _properties(dialogue, lambda properties: properties.same_opening())


@after_sessions
async def names_come_back(dialogue: Dialogue) -> None:
    """CONTRACT-11: generated ids and slugs are refused, or come back as they were."""
    await _properties(dialogue, lambda properties: properties.names_come_back())


@of_campaign
async def wrong_model_fields_refused(dialogue: Dialogue) -> None:
    """CONTRACT-12: wrong values of fields that only the model reads are refused."""
    await _campaign(dialogue, Concern.FOREIGN)


@after_sessions
async def other_types_refused(dialogue: Dialogue) -> None:
    """CONTRACT-13: JSON that is announced as something else is refused."""
    await _malformed(dialogue, lambda malformed: malformed.other_types())


async def _campaign(dialogue: Dialogue, concern: Concern) -> None:
    campaign = await shared_of(dialogue.context).campaign()
    tell(dialogue, campaign.findings.of(concern))
    if campaign.unreached:
        # That an operation is missing is for SLUG-15 and DELETE to tell; of one that never succeeded nothing was shown.
        raise Untested(f"no success of {', '.join(campaign.unreached)}, so that nothing was shown of it")


async def _properties(dialogue: Dialogue, play: "Callable[[Properties], list[Finding]]") -> None:
    def played(wire: Wire, shared: Shared) -> list[Finding]:
        from continuity_conformance.fuzz.property.properties import Properties  # noqa: PLC0415 - in the thread

        return play(Properties(wire, shared.names, shared.budget))

    await _explore(dialogue, played)


async def _malformed(dialogue: Dialogue, play: "Callable[[Malformed], list[Finding]]") -> None:
    def played(wire: Wire, shared: Shared) -> list[Finding]:
        from continuity_conformance.fuzz.property.malformed import Malformed  # noqa: PLC0415 - in the thread

        return play(Malformed(wire, shared.names, shared.budget))

    await _explore(dialogue, played)


async def _explore(dialogue: Dialogue, play: Callable[[Wire, Shared], list[Finding]]) -> None:
    """Play in a thread, when it is this check's turn, and tell what was found."""
    shared = shared_of(dialogue.context)
    async with shared.turn:
        tell(dialogue, await in_thread(dialogue.context, lambda wire: play(wire, shared)))


def _needs_key(dialogue: Dialogue) -> None:
    if not dialogue.context.target.profile.principals.get("alice"):
        raise Untested("no key to compare with: give one in the profile (`principals: {alice: $MY_KEY}`)")
