"""What a server has beside a chat turn: keys, endpoints, a model that can be observed, controls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from continuity_conformance.checks.trials import TRIALS
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.doctor.cleanup import SESSIONS
from continuity_conformance.doctor.findings import Topic
from continuity_conformance.doctor.state import Patient, dialogue_on
from continuity_conformance.probe.marks import answer_mark
from continuity_conformance.run.calibrate import claims_in
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue

_REFUSED: Final = frozenset({401, 403})
_ANY: Final = {"status": "any"}
_ASKED: Final = ("streaming", "responses", "sessions", "cors", "idempotency", "client-tools")
"""What is told to be missing where it is."""
_TRIED: Final = ("idempotency", "client-tools")
"""What the calibration does not try."""


async def auth(patient: Patient, context: Context) -> None:
    """With a key: what happens without it, and with another. What answers all three asks for none."""
    if not patient.profile.principals:
        patient.say(Topic.AUTH, "a turn is answered without a key")
        return
    statuses = {}
    for who in ("nobody", "stranger"):
        done = await dialogue_on(context).do("chat", _ANY, session="$id", say=who, **{"as": who})
        statuses[who] = done.answer.status
    patient.say(Topic.AUTH, _auth_text(statuses["nobody"], statuses["stranger"]))


def _auth_text(nobody: int, stranger: int) -> str:
    if nobody in _REFUSED and stranger in _REFUSED:
        return f"a key is needed: {nobody} without one, {stranger} with a wrong one, and yours is taken"
    if nobody not in _REFUSED and stranger not in _REFUSED:
        return f"NO KEY IS ASKED FOR: turns without one ({nobody}) and with a wrong one ({stranger}) are not refused"
    lax = "without a key" if stranger in _REFUSED else "with a wrong key"
    return (
        f"yours is taken; BUT A TURN {lax.upper()} IS NOT REFUSED ({nobody} without one, {stranger} with a wrong one)"
    )


async def offers(patient: Patient, dialogue: Dialogue, told: object) -> None:
    """As the capabilities or the profile say; what nobody says is tried."""
    context, findings = dialogue.context, patient.findings
    _say_claims(patient, claims_in(told))
    if patient.profile.offers is not None:
        how = "as the profile says"
    elif isinstance(claims_in(told).get("offers"), list):
        findings.declared, how = True, "as its capabilities say"
    else:
        how = "as tried"
        found = await _tried(patient, dialogue)
        context.target = replace(context.target, offers=found)
    has = context.target.offers
    patient.say(Topic.OFFERS, f"{', '.join(['chat', *sorted(has)])} ({how})")
    if lacking := [offer for offer in _ASKED if offer not in has]:
        patient.say(Topic.OFFERS, f"not: {', '.join(lacking)}")


def _say_claims(patient: Patient, claims: Mapping[str, object]) -> None:
    if not claims:
        patient.say(Topic.SAYS, "GET /v1/capabilities says nothing about continuity; options count as the usual ones")
        return
    options = claims.get("options")
    told = ", ".join(f"{name} {value}" for name, value in options.items()) if isinstance(options, Mapping) else ""
    alone = "; for a single user" if claims.get("single_user") is True else ""
    patient.say(
        Topic.SAYS, f"GET /v1/capabilities: release {claims.get('release')}{alone}; {told or 'nothing about options'}"
    )


async def _tried(patient: Patient, dialogue: Dialogue) -> frozenset[str]:
    context = dialogue.context
    found = set(context.target.offers)
    if not any(each.answer.streamed for each in dialogue.exchanges):
        found.discard("streaming")
    found |= {offer for offer in _TRIED if await _has(context, offer)}
    return frozenset(found | ({"sessions"} if await _has_sessions(patient, context) else set()))


async def _has(context: Context, offer: str) -> bool:
    """What would show that a claim not to have it is untrue. What cannot be tried here is taken as not there."""
    try:
        return await TRIALS[f"no {offer}"](dialogue_on(context))
    except (Unmet, Untested):
        return False


async def _has_sessions(patient: Patient, context: Context) -> bool:
    own = (patient.profile.sessions, patient.profile.session_field)
    for path, field in dict.fromkeys((own, *SESSIONS.items())):
        profile = replace(patient.profile, sessions=path, session_field=field)
        context.target = replace(context.target, profile=profile)
        if await _has(context, "sessions"):
            patient.profile = profile
            return True
    context.target = replace(context.target, profile=patient.profile)
    return False


def model(patient: Patient, dialogue: Dialogue) -> None:
    observed, first = dialogue.context.target.observed, dialogue.exchanges[0]
    text = first.reading.text if first.reading is not None else ""
    if observed == "probe":
        patient.say(Topic.MODEL, "its answers come from the probe model: what the model saw can be tested")
    elif observed == "answers":
        patient.say(Topic.MODEL, "its model says itself what it saw, so that can be tested in part")
    elif answer_mark(text, first.mark) is not None:
        patient.say(Topic.MODEL, "its answers come from a probe model: say which with --probe URL")
    else:
        patient.say(
            Topic.MODEL,
            "what it saw cannot be observed: run `continuity model --port 9100`, make http://127.0.0.1:9100/v1 "
            "the server's model, and add --probe http://127.0.0.1:9100/v1",
        )
    if observed != "nothing":
        forgets = any("does not see the first" in reason for reason in dialogue.untested)
        kept = "did NOT see the first: the server keeps no conversation" if forgets else "saw the first"
        patient.say(Topic.MODEL, f"in the second turn it {kept}")


def controls(patient: Patient, context: Context, told: object) -> None:
    found = sorted(context.controls.available)
    patient.say(Topic.CONTROLS, ", ".join(found) or "none: see `process:` and `controls:` of a profile")
    if claims_in(told).get("controls") is True and not patient.profile.token:
        patient.say(Topic.CONTROLS, "it says that it has the control API: give its token, controls: {token: $TOKEN}")
