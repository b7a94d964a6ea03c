"""The first turns on a server, and the header that carries their session: the one that it names, the usual one, or one that it answers with."""

from dataclasses import replace
from typing import Final

from continuity_conformance.core.errors import UnreachableError, UsageError
from continuity_conformance.doctor import address
from continuity_conformance.doctor.findings import NoTurnError, Topic
from continuity_conformance.doctor.state import Patient
from continuity_conformance.run.calibrate import assumed, header_in, opening
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.target.profile import DEFAULT_HEADER, Profile

_NOT_THERE: Final = frozenset({404, 405, 501})
_KEY_REMEDY: Final = "Give the key by the name of its environment variable: --key-env NAME; another field for it: --auth 'X-Api-Key: {key}'."


async def first_turns(patient: Patient, context: Context, told: object) -> Dialogue:
    """Two turns under an id of ours. Where the first does not tell the session, once more with what may carry it."""
    claimed = header_in(told)
    dialogue = await _opening(patient, context, told)
    first = _must_succeed(patient, dialogue)
    header = context.target.header
    if first.answer.fields(header):
        how = _origin(patient, header, claimed)
        echoed = "and it tells our id back" if _echoes(first, header) else "but it tells another id than ours"
        _found(patient, f"{header}: {how}, {echoed}", how)
        return dialogue
    others = _session_fields(first)
    if others and not patient.profile.header:
        return await _with_header(patient, context, told, others[0])
    said = f"{header} is named by its capabilities, and" if claimed else "none:"
    _found(patient, f"{said} no answer tells the session, so only the model can show whether it is kept", "")
    options = {**patient.profile.options, "tells": "nothing"}
    return await _again(patient, context, told, replace(patient.profile, options=options))


def _origin(patient: Patient, header: str, claimed: str) -> str:
    if patient.profile.header:
        return "as the profile says"
    if claimed:
        return "named by its capabilities"
    return "the usual one" if header == DEFAULT_HEADER else "seen in its answers"


async def _with_header(patient: Patient, context: Context, told: object, header: str) -> Dialogue:
    dialogue = await _again(patient, context, told, replace(patient.profile, header=header))
    taken = _echoes(_must_succeed(patient, dialogue), header)
    said = "and it takes our id by it" if taken else "and an id of ours that is sent by it is not taken"
    _found(patient, f"{header}: its answers have it, {said}", "seen in its answers")
    return dialogue


async def _again(patient: Patient, context: Context, told: object, profile: Profile) -> Dialogue:
    patient.profile = profile
    context.target = assumed(profile)
    dialogue = await _opening(patient, context, told)
    _must_succeed(patient, dialogue)
    return dialogue


async def _opening(patient: Patient, context: Context, told: object) -> Dialogue:
    try:
        return await opening(context, told)
    except UsageError as error:
        patient.say(Topic.AUTH, _refusal(patient))
        raise UsageError(error.what, where=error.where, do=_KEY_REMEDY) from None


def _refusal(patient: Patient) -> str:
    _, answer = patient.transport.exchanges[-1]
    scheme = next(iter(answer.fields("WWW-Authenticate")), "").partition(" ")[0]
    wants = f", and asks for {scheme}" if scheme else ""
    sent = "the key is refused" if patient.profile.principals else "a key is needed"
    return f"{sent}: a chat turn is answered with {answer.status}{wants}"


def _must_succeed(patient: Patient, dialogue: Dialogue) -> Exchange:
    first = dialogue.exchanges[0]
    answer, seen = first.answer, address.shown(first.answer)
    patient.findings.slowest = max(patient.findings.slowest, *(each.answer.seconds for each in dialogue.exchanges), 0)
    if answer.accepted and first.reading is not None and not first.reading.flaw:
        return first
    if answer.status in _NOT_THERE or answer.content_type == "text/html":
        raise UnreachableError(
            f"There is no OpenAI-compatible server under this address: POST /v1/chat/completions gives {seen}.",
            where=patient.findings.url,
            do="Give its base address, which stands before /v1.",
        )
    raise NoTurnError(
        f"A plain chat turn does not succeed: {seen}.",
        where=first.request.url,
        do="Mend that first; a model that it has is named with --model.",
    )


def _found(patient: Patient, text: str, how: str) -> None:
    patient.say(Topic.HEADER, text)
    patient.findings.header_from = how


def _echoes(exchange: Exchange, header: str) -> bool:
    sent = [value for name, value in exchange.request.headers if name.lower() == header.lower()]
    return bool(sent) and exchange.answer.fields(header) == sent


def _session_fields(exchange: Exchange) -> list[str]:
    """Fields of an answer that may well carry a session."""
    names = [name for name, _ in exchange.answer.headers]
    return [name for name in names if "session" in name.lower() and not name.lower().startswith("access-control-")]
