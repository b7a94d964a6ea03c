"""The first turns on a server, and what names its sessions: the header of its capabilities, the default one, or what its answers show."""

from dataclasses import replace
from typing import Final

from continuity_conformance.core.errors import UnreachableError, UsageError
from continuity_conformance.doctor.findings import NoTurnError, Topic
from continuity_conformance.doctor.session_names import SessionName, plain_turn, remembering_header, revealed
from continuity_conformance.doctor.state import SurveyState, new_dialogue
from continuity_conformance.http.brief import short_text
from continuity_conformance.run.calibrate import assumed, header_in, opening, remembered
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.target.id_form import IdForm
from continuity_conformance.target.profile import DEFAULT_HEADER, Profile

_NO_ENDPOINT: Final = frozenset({404, 405, 501})
_REFUSED: Final = frozenset({400, 422})
_KEY_REMEDY: Final = (
    "Name the environment variable that contains the key: --key-env NAME. "
    "If the key is not sent in Authorization, add --auth 'X-Api-Key: {key}'."
)


async def first_turns(state: SurveyState, context: Context, declared: object) -> Dialogue:
    """Hold two turns with a session id of the doctor. If the first answer does not name the session, find out what names it.

    `declared`: the body of GET /v1/capabilities, or None.
    """
    named = header_in(declared)
    dialogue = await _opening(state, context, declared)
    if not dialogue.exchanges[0].answer.accepted:
        dialogue = await _in_another_way(state, context, declared, dialogue)
    first = _require_success(state, dialogue)
    header = context.target.header
    if first.answer.fields(header):
        origin = _origin(state, header, named)
        echo = "its answers repeat our session id" if _echoes(first, header) else "its answers have another session id"
        _add_header(state, f"{header}: {origin}; {echo}", origin)
        return dialogue
    if not state.profile.header and not state.profile.body:
        found = await _revealed(state, context, declared)
        if found is not None:
            return found
    missing = (
        f"{header}: named in its capabilities, but no answer has it" if named else "none: no answer names the session"
    )
    _add_header(state, f"{missing}; only what the model saw can show whether the session is kept", "")
    options = {**state.profile.options, "tells": "nothing"}
    return await _repeat(state, context, declared, replace(state.profile, options=options))


async def _in_another_way(state: SurveyState, context: Context, declared: object, refused: Dialogue) -> Dialogue:
    """The first turns over /v1/responses where chat is missing, or with an id as the server makes them where it refuses ours."""
    status = refused.exchanges[0].answer.status
    if status not in _NO_ENDPOINT | _REFUSED:
        return refused
    plain = await plain_turn(context, "hello")
    if plain.answer.accepted:
        return await _revealed(state, context, declared, plain) or refused
    if plain.answer.status not in _NO_ENDPOINT or state.profile.chat == "none":
        return refused
    given = state.profile
    state.profile = replace(given, chat="none")
    context.target = assumed(state.profile)
    dialogue = await _opening(state, context, declared)
    if dialogue.exchanges[0].answer.accepted:
        state.add(Topic.API, "it has no /v1/chat/completions; everything is examined over /v1/responses (chat: none)")
        return dialogue
    state.profile, context.target = given, assumed(given)
    return refused


async def _revealed(
    state: SurveyState, context: Context, declared: object, plain: Exchange | None = None
) -> Dialogue | None:
    """The first turns again, with the session in the header or the field of the body that names it in answers; None if nothing does."""
    first = plain or await plain_turn(context, "hello")
    if not first.answer.accepted:
        return None
    name = await revealed(context, first)
    return await _with_name(state, context, declared, name) if name is not None else None


async def _with_name(state: SurveyState, context: Context, declared: object, name: SessionName) -> Dialogue:
    """Hold the first turns with our own id there; if it is refused, with one of the form that the server's own ids have."""
    what = f"{name.name}{' (a field of the body)' if name.kind == 'body' else ''}: found in its answers"
    given = state.profile
    dialogue = await _tried(state, context, declared, name.applied_to(given))
    accepted = "it accepts our session id there"
    if dialogue.exchanges[0].answer.status in _REFUSED | _NO_ENDPOINT and name.form:
        ids = IdForm.read(name.form)
        dialogue = await _tried(state, context, declared, replace(name.applied_to(given), ids=ids))
        accepted = f"it accepts ids of the form {name.form} only (ids: {name.form})"
        state.findings.ids = name.form
    first = dialogue.exchanges[0]
    if not first.answer.accepted:
        _add_header(
            state, f"{what}; IT REFUSES IDS THAT IT DID NOT MAKE ({first.answer.status})", "found in its answers"
        )
        return await _without_id(state, context, dialogue)
    echoed = _echoes(first, name.name) or name.kind == "body"
    _add_header(
        state, f"{what}; {accepted if echoed else 'it does not accept our session id there'}", "found in its answers"
    )
    return dialogue


async def _without_id(state: SurveyState, context: Context, refused: Dialogue) -> Dialogue:
    """A turn that names no session, for a server that refuses our ids."""
    state.findings.ids = ""
    dialogue = new_dialogue(context)
    await dialogue.do("respond" if state.profile.chat == "none" else "chat", {"status": "any"}, say="calibration")
    dialogue.untested.append("the target refuses session ids that it did not make")
    return dialogue if dialogue.exchanges[0].answer.accepted else refused


async def another_header(state: SurveyState, dialogue: Dialogue, declared: object) -> Dialogue:
    """If no answer names the session and the model forgets it, try headers that servers in use know. Returns the dialogue to go on with."""
    context = dialogue.context
    forgets = context.target.observed != "nothing" and bool(dialogue.untested)
    if state.findings.header_from or state.profile.header or state.profile.chat == "none" or not forgets:
        return dialogue
    header = await remembering_header(context)
    if not header:
        return dialogue
    learned = context.target
    repeated = await _repeat(state, context, declared, replace(state.profile, header=header))
    context.target = replace(
        context.target, observed=learned.observed, offers=learned.offers, declared=learned.declared
    )
    await remembered(repeated)
    _add_header(state, f"{header}: no answer has it, but the model sees the conversation so far by it", "tried")
    return repeated


def _origin(state: SurveyState, header: str, named: str) -> str:
    if state.profile.header:
        return "named in the profile"
    if named:
        return "named in its capabilities"
    return "the default header" if header == DEFAULT_HEADER else "found in its answers"


async def _tried(state: SurveyState, context: Context, declared: object, profile: Profile) -> Dialogue:
    """Hold the first turns with another profile, whether they succeed or not."""
    state.profile = profile
    context.target = assumed(profile)
    return await _opening(state, context, declared)


async def _repeat(state: SurveyState, context: Context, declared: object, profile: Profile) -> Dialogue:
    """Hold the first turns again, with another profile."""
    dialogue = await _tried(state, context, declared, profile)
    _require_success(state, dialogue)
    return dialogue


async def _opening(state: SurveyState, context: Context, declared: object) -> Dialogue:
    try:
        return await opening(context, declared)
    except UsageError as error:
        state.add(Topic.AUTH, _refusal(state))
        raise UsageError(error.what, where=error.where, do=_KEY_REMEDY) from None


def _refusal(state: SurveyState) -> str:
    _, answer = state.transport.exchanges[-1]
    scheme = next(iter(answer.fields("WWW-Authenticate")), "").partition(" ")[0]
    wanted = f" (authentication scheme: {scheme})" if scheme else ""
    problem = "the key is refused" if state.profile.principals else "a key is required"
    return f"{problem}: a chat turn is answered with {answer.status}{wanted}"


def _require_success(state: SurveyState, dialogue: Dialogue) -> Exchange:
    """The first exchange of the dialogue. Raises an error if it is not a successful chat turn."""
    first = dialogue.exchanges[0]
    answer, short = first.answer, short_text(first.answer)
    seconds = [each.answer.seconds for each in dialogue.exchanges]
    state.findings.slowest_seconds = max(state.findings.slowest_seconds, *seconds, 0)
    if answer.accepted and first.reading is not None and not first.reading.flaw:
        return first
    if answer.status in _NO_ENDPOINT or answer.content_type == "text/html":
        raise UnreachableError(
            f"There is no OpenAI-compatible server at this address: POST {first.request.path} returns {short}.",
            where=state.findings.url,
            do="Give the base address: the part before /v1.",
        )
    raise NoTurnError(
        f"A plain chat turn fails: {short}.",
        where=first.request.url,
        do="Fix this first. If the server needs another model name, give it with --model.",
    )


def _add_header(state: SurveyState, sentence: str, origin: str) -> None:
    state.add(Topic.HEADER, sentence)
    state.findings.header_from = origin


def _echoes(exchange: Exchange, header: str) -> bool:
    sent = [value for name, value in exchange.request.headers if name.lower() == header.lower()]
    return bool(sent) and exchange.answer.fields(header) == sent
