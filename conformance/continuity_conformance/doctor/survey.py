"""The survey: one look at a server, from its address to what a run could decide about it.

Each step adds to the findings. What makes the next one pointless ends it, as an error that is told with what was found until then.
"""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from continuity_conformance.core.errors import ContinuityError, UnreachableError
from continuity_conformance.doctor import address, inventory
from continuity_conformance.doctor.cleanup import clean_up, places
from continuity_conformance.doctor.dry_run import Rehearsal
from continuity_conformance.doctor.findings import Findings, Topic
from continuity_conformance.doctor.first_turns import first_turns
from continuity_conformance.doctor.recorder import Recorder
from continuity_conformance.doctor.state import Patient
from continuity_conformance.http.connect import must_answer, other_than_http
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.http.tls import trust
from continuity_conformance.probe.client import RemoteProbe
from continuity_conformance.probe.server import Probe
from continuity_conformance.run.applicability import forecast
from continuity_conformance.run.calibrate import ask, assumed, capabilities, conclude
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.server import Server
from continuity_spec import Requirement

_CONNECT_SECONDS: Final = 5.0
_FIRST_SECONDS: Final = 5.0
_GREETING_SECONDS: Final = 1.0


async def rehearse(url: str, profile: Profile, requirements: Sequence[Requirement]) -> list[Sequence[Request]]:
    """What a visit would send at most: one visit for each place where the target may have its sessions."""
    visits = [await survey(url, profile, requirements, rehearsed_at=place) for place in places(profile)]
    return [[request for request, _ in patient.transport.exchanges] for patient in visits]


async def survey(url: str, profile: Profile, requirements: Sequence[Requirement], *, rehearsed_at: str = "") -> Patient:
    """Find out all that can be found out. `rehearsed_at`: nothing is sent, and the server of the rehearsal has its sessions there."""
    began, seconds, trusted = time.monotonic(), profile.limits.turn_seconds, trust(profile.ca)

    def sender(within: float) -> Recorder:
        return Rehearsal(profile, rehearsed_at) if rehearsed_at else Recorder(within, trusted)

    async with AsyncExitStack() as stack:
        patient = Patient(
            Findings(url), profile, await stack.enter_async_context(sender(seconds)), rehearses=bool(rehearsed_at)
        )
        # The first questions cost a server nothing: it is not waited for as a turn is.
        quick = await stack.enter_async_context(sender(min(seconds, _FIRST_SECONDS)))
        try:
            await _reach(patient)
            await _api(patient, quick)
            await _look(patient, await _observer(patient, stack), requirements)
        except ContinuityError as error:
            patient.findings.error = error
        patient.transport.exchanges[:0] = quick.exchanges
        patient.findings.requests = patient.transport.sent + quick.sent
    patient.findings.seconds = time.monotonic() - began
    return patient


async def _look(patient: Patient, observer: Observer | None, requirements: Sequence[Requirement]) -> None:
    context = patient.context(observer)
    try:
        told = await capabilities(context)
        dialogue = await first_turns(patient, context, told)
        await inventory.auth(patient, context)
        await conclude(dialogue, told)
        await inventory.offers(patient, dialogue, told)
        inventory.model(patient, dialogue)
        inventory.controls(patient, context, told)
        patient.findings.target = context.target
        patient.findings.prospects = [(each, *forecast(context, each)) for each in requirements]
    finally:
        await _clean(patient, context)


async def _reach(patient: Patient) -> None:
    if patient.rehearses:
        return
    reached = await must_answer(patient.findings.url, patient.profile.ca, _CONNECT_SECONDS)
    tls = f", {reached.tls} with a certificate that is trusted" if reached.tls else ""
    named = f" ({reached.address})" if reached.address != reached.host else ""
    patient.say(
        Topic.REACH, f"{reached.host}{named} port {reached.port} answers in {reached.seconds * 1000:.0f} ms{tls}"
    )


async def _api(patient: Patient, quick: Recorder) -> None:
    """GET /v1/models: no turn, no cost, and nearly every server of this kind has it; else it may be somewhere else on this host."""
    context = replace(patient.context(), transport=quick)
    listed = await ask(context, "GET", address.MODELS)
    await _must_speak_http(patient, listed)
    if not address.may_be_it(listed):
        listed = await _elsewhere(patient, context, listed)
    names = address.model_names(listed)
    if names and patient.profile.model not in names:
        more = f", and {len(names) - 1} more" if names[1:] else ""
        patient.profile = replace(patient.profile, model=names[0])
        patient.say(Topic.API, f"OpenAI-compatible; it lists the model {names[0]}{more}, which is asked for")
    elif names:
        patient.say(Topic.API, f"OpenAI-compatible; it has the model {patient.profile.model}")
    elif address.may_be_it(listed):
        patient.say(Topic.API, f"it may well be: GET {address.MODELS} is refused for want of a key ({listed.status})")
    else:
        patient.say(Topic.API, f"GET {address.MODELS} gives no list of models: {address.shown(listed)}")


async def _must_speak_http(patient: Patient, answer: Answer) -> None:
    if answer.status or patient.rehearses:
        return
    where = patient.findings.url
    if answer.timed_out:
        raise UnreachableError(
            f"It takes the connection, and gives {answer.error}.",
            where=where,
            do="See whether the server hangs, or whether this is its port.",
        )
    what = await other_than_http(where, _GREETING_SECONDS)
    raise UnreachableError(f"Something listens there, but {what}.", where=where, do="Check the address.")


async def _elsewhere(patient: Patient, context: Context, listed: Answer) -> Answer:
    """Another address of this host may be another application's: nothing goes there that is a secret, and with a secret nobody goes on there unasked."""
    nobody = replace(patient.profile, principals={}, headers={})
    for url in address.elsewhere(patient.findings.url):
        elsewhere = replace(context, server=Server(url, nobody), target=assumed(nobody))
        found = await ask(elsewhere, "GET", address.MODELS)
        if address.may_be_it(found):
            was, patient.findings.url = patient.findings.url, _only_with_nothing_to_lose(patient, url)
            patient.say(Topic.API, f"not under {was}/v1 ({address.shown(listed)}), but under {url}/v1")
            return found
    return listed


def _only_with_nothing_to_lose(patient: Patient, url: str) -> str:
    if not patient.profile.secrets:
        return url
    raise UnreachableError(
        f"No OpenAI-compatible server is under this address, but one may be under {url}, which was asked without your key.",
        where=patient.findings.url,
        do=f"Give that address if your key is meant for it: continuity doctor {url}",
    )


async def _observer(patient: Patient, stack: AsyncExitStack) -> Observer | None:
    if not patient.profile.probe:
        return None
    if patient.rehearses:
        return Probe()
    return await stack.enter_async_context(RemoteProbe(patient.profile.probe))


async def _clean(patient: Patient, context: Context) -> None:
    cleaned = await clean_up(context, list(patient.transport.exchanges))
    patient.findings.left = [f"{each.kind} {each.id}" for each in cleaned.left]
    if cleaned.removed:
        patient.say(Topic.CLEANED, f"deleted again: {_counted([each.kind for each in cleaned.removed])}")
    if cleaned.left:
        kinds = _counted([each.kind for each in cleaned.left])
        patient.say(Topic.CLEANED, f"LEFT BEHIND, since the server has no way to delete them: {kinds}")


def _counted(kinds: Sequence[str]) -> str:
    return ", ".join(
        f"{kinds.count(kind)} {kind}{'s' if kinds.count(kind) > 1 else ''}" for kind in dict.fromkeys(kinds)
    )
