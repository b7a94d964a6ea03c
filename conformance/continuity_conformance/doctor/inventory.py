"""What a server has besides chat turns: keys, endpoints, a model that can be observed, controls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from continuity_conformance.checks.support.trials import TRIALS
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.doctor.cleanup import SESSION_PATHS
from continuity_conformance.doctor.findings import Topic
from continuity_conformance.doctor.session_names import KNOWN_HEADERS
from continuity_conformance.doctor.state import SurveyState, new_dialogue
from continuity_conformance.probe.marks import answer_mark
from continuity_conformance.run.calibrate import claims_in
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.target.profile import Slugs

_REFUSED: Final = frozenset({401, 403})
_CLIENT_ERROR: Final = 400
_SERVER_ERROR: Final = 500
_ANY: Final = {"status": "any"}
_MENTIONED: Final = (
    *("streaming", "responses", "stored-responses", "conversations"),
    *("sessions", "cors", "idempotency", "client-tools"),
)
"""The offers that the doctor mentions if the server does not have them."""
_TRIED: Final = ("idempotency", "client-tools")
"""The offers that the doctor tries itself, because the calibration does not."""


async def auth(state: SurveyState, context: Context) -> None:
    """If there is a key: send a turn without a key and one with a wrong key."""
    if not state.profile.principals:
        who = "; headers say who it is" if state.profile.identities else ""
        state.add(Topic.AUTH, f"a turn is answered without a key{who}")
        return
    verb, statuses = "respond" if state.profile.chat == "none" else "chat", {}
    for principal in ("nobody", "stranger"):
        exchange = await new_dialogue(context).do(verb, _ANY, say=principal, **{"as": principal})
        statuses[principal] = exchange.answer.status
    state.add(Topic.AUTH, _auth_text(statuses["nobody"], statuses["stranger"]))


def _auth_text(nobody: int, stranger: int) -> str:
    refused = [_CLIENT_ERROR <= status < _SERVER_ERROR for status in (nobody, stranger)]
    if all(refused):
        unusual = "" if {nobody, stranger} <= _REFUSED else " (401 is usual for both)"
        return f"a key is required: {nobody} without a key, {stranger} with a wrong key{unusual}, and yours is accepted"
    if not any(refused):
        return f"NO KEY IS REQUIRED: turns without a key ({nobody}) and with a wrong key ({stranger}) are not refused"
    accepted = "with a wrong key" if refused[0] else "without a key"
    return (
        f"your key is accepted, BUT A TURN {accepted.upper()} IS NOT REFUSED "
        f"({nobody} without a key, {stranger} with a wrong key)"
    )


async def offers(state: SurveyState, dialogue: Dialogue, declared: object) -> None:
    """Take the offers from the profile or from the capabilities, else try them.

    `declared`: the body of GET /v1/capabilities, or None.
    """
    context, findings = dialogue.context, state.findings
    _add_claims(state, claims_in(declared))
    if state.profile.offers is not None:
        source = "from the profile"
    elif isinstance(claims_in(declared).get("offers"), list):
        findings.declared, source = True, "from its capabilities"
    else:
        source = "tried"
        tried = await _try_offers(state, dialogue)
        context.target = replace(context.target, offers=tried)
    present = context.target.offers
    state.add(Topic.OFFERS, f"{', '.join(sorted(present))} ({source})")
    if missing := [offer for offer in _MENTIONED if offer not in present]:
        state.add(Topic.OFFERS, f"not: {', '.join(missing)}")


def _add_claims(state: SurveyState, claims: Mapping[str, object]) -> None:
    if not claims:
        state.add(Topic.SAYS, "GET /v1/capabilities says nothing about continuity; the default options apply")
        return
    options = claims.get("options")
    values = ", ".join(f"{name} {value}" for name, value in options.items()) if isinstance(options, Mapping) else ""
    single_user = "; for a single user" if claims.get("single_user") is True else ""
    release = claims.get("release")
    state.add(Topic.SAYS, f"GET /v1/capabilities: release {release}{single_user}; {values or 'no options'}")


async def _try_offers(state: SurveyState, dialogue: Dialogue) -> frozenset[str]:
    context = dialogue.context
    present = set(context.target.offers)
    if not any(each.answer.streamed for each in dialogue.exchanges):
        present.discard("streaming")
    if state.profile.chat == "none":
        return frozenset(present)  # what is tried here needs chat
    present |= {offer for offer in _TRIED if await _has(context, offer)}
    return frozenset(present | ({"sessions"} if await _has_sessions(state, context) else set()))


async def _has(context: Context, offer: str) -> bool:
    """Try an offer as DISCOVER-02 does. An offer that cannot be tried here counts as missing."""
    try:
        return await TRIALS[f"no {offer}"](new_dialogue(context))
    except (Unmet, Untested):
        return False


async def _has_sessions(state: SurveyState, context: Context) -> bool:
    """Look for sessions at the path of the profile and at the other known paths. Keeps the path that works in the profile."""
    own = (state.profile.sessions, state.profile.session_field)
    for path, field in dict.fromkeys((own, *SESSION_PATHS.items())):
        profile = replace(state.profile, sessions=path, session_field=field)
        context.target = replace(context.target, profile=profile)
        if await _has(context, "sessions"):
            state.profile = profile
            return True
    context.target = replace(context.target, profile=state.profile)
    return False


async def slugs(state: SurveyState, context: Context) -> None:
    """Find out how the server takes `conversation`: any text, only what POST /v1/conversations made, or not at all."""
    tried = state.profile.offers is None and not state.findings.declared
    if not tried or "responses" not in context.target.offers or state.profile.slugs != "named":
        return
    kind, sentence = await _kind_of_slugs(context)
    if kind != "named":
        state.profile = replace(state.profile, slugs=kind)
        context.target = replace(context.target, profile=state.profile)
    if sentence:
        state.add(Topic.OFFERS, sentence)


async def _kind_of_slugs(context: Context) -> tuple[Slugs, str]:
    dialogue = new_dialogue(context)
    first = await dialogue.do("respond", _ANY, say="red", conversation="$slug")
    if not first.answer.accepted and "conversations" in context.target.offers:
        return "made", f"it takes only conversations that it made itself ({first.answer.status} for ours; slugs: made)"
    if not first.answer.accepted:
        return "none", f"it refuses `conversation` ({first.answer.status}; slugs: none)"
    second = await dialogue.do("respond", _ANY, say="blue", conversation="$slug")
    if context.target.observed == "nothing" or not second.answer.accepted:
        return "named", ""
    await dialogue.record.view(second)
    if "red" in (second.seen or ()):
        return "named", ""
    return "none", "IT IGNORES `conversation`: it answers, but the second turn does not see the first (slugs: none)"


def model(state: SurveyState, dialogue: Dialogue) -> None:
    observed, first = dialogue.context.target.observed, dialogue.exchanges[0]
    text = first.reading.text if first.reading is not None else ""
    if observed == "probe":
        state.add(Topic.MODEL, "its answers come from the probe model, so what the model saw can be tested")
    elif observed == "answers":
        state.add(Topic.MODEL, "its model reports what it saw, so this can be tested in part")
    elif answer_mark(text, first.mark) is not None:
        state.add(Topic.MODEL, "its answers come from a probe model: give its address with --probe URL")
    elif state.process is not None:
        state.add(
            Topic.MODEL,
            "what the model saw cannot be observed: the server does not use the probe model. Pass {probe} to it, in "
            "process.start or in process.env",
        )
    else:
        state.add(
            Topic.MODEL,
            "what the model saw cannot be observed: run `continuity model --port 9100`, make http://127.0.0.1:9100/v1 "
            "the server's model, and add --probe http://127.0.0.1:9100/v1",
        )
    if observed != "nothing":
        forgets = any("does not see the first" in reason for reason in dialogue.untested)
        second = f"did NOT see the first{_how_it_was_named(state, dialogue)}" if forgets else "saw the first"
        state.add(Topic.MODEL, f"in the second turn it {second}")


def _how_it_was_named(state: SurveyState, dialogue: Dialogue) -> str:
    """What was tried, where the model did not see the conversation so far: the server may know another name."""
    if state.profile.chat == "none":
        return ": the server keeps no conversation by previous_response_id, nor by conversation"
    name = state.profile.body or dialogue.context.target.header
    others = "" if state.findings.header_from else f", nor by {len(KNOWN_HEADERS)} other headers in use"
    return f": no conversation is kept by {name}{others}; if the server has another name for it, write `header:` or `body:` in a profile"
