"""The first turns on a server, and the header that carries the session: the one that its capabilities name, the default, or one in its answers."""

from dataclasses import replace
from typing import Final

from continuity_conformance.core.errors import UnreachableError, UsageError
from continuity_conformance.doctor.findings import NoTurnError, Topic
from continuity_conformance.doctor.state import SurveyState
from continuity_conformance.http.brief import short_text
from continuity_conformance.run.calibrate import assumed, header_in, opening
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.target.profile import DEFAULT_HEADER, Profile

_NO_ENDPOINT: Final = frozenset({404, 405, 501})
_KEY_REMEDY: Final = (
    "Name the environment variable that contains the key: --key-env NAME. "
    "If the key is not sent in Authorization, add --auth 'X-Api-Key: {key}'."
)


async def first_turns(state: SurveyState, context: Context, declared: object) -> Dialogue:
    """Hold two turns with a session id of the doctor. If the first answer does not name the session, try another header or none.

    `declared`: the body of GET /v1/capabilities, or None.
    """
    named = header_in(declared)
    dialogue = await _opening(state, context, declared)
    first = _require_success(state, dialogue)
    header = context.target.header
    if first.answer.fields(header):
        origin = _origin(state, header, named)
        echo = "its answers repeat our session id" if _echoes(first, header) else "its answers have another session id"
        _add_header(state, f"{header}: {origin}; {echo}", origin)
        return dialogue
    others = _session_fields(first)
    if others and not state.profile.header:
        return await _with_header(state, context, declared, others[0])
    missing = (
        f"{header}: named in its capabilities, but no answer has it" if named else "none: no answer names the session"
    )
    _add_header(state, f"{missing}; only what the model saw can show whether the session is kept", "")
    options = {**state.profile.options, "tells": "nothing"}
    return await _repeat(state, context, declared, replace(state.profile, options=options))


def _origin(state: SurveyState, header: str, named: str) -> str:
    if state.profile.header:
        return "named in the profile"
    if named:
        return "named in its capabilities"
    return "the default header" if header == DEFAULT_HEADER else "found in its answers"


async def _with_header(state: SurveyState, context: Context, declared: object, header: str) -> Dialogue:
    dialogue = await _repeat(state, context, declared, replace(state.profile, header=header))
    accepts = "accepts" if _echoes(_require_success(state, dialogue), header) else "does not accept"
    _add_header(state, f"{header}: found in its answers; it {accepts} our session id there", "found in its answers")
    return dialogue


async def _repeat(state: SurveyState, context: Context, declared: object, profile: Profile) -> Dialogue:
    """Hold the first turns again, with another profile."""
    state.profile = profile
    context.target = assumed(profile)
    dialogue = await _opening(state, context, declared)
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
            f"There is no OpenAI-compatible server at this address: POST /v1/chat/completions returns {short}.",
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


def _session_fields(exchange: Exchange) -> list[str]:
    """The header fields of an answer that may carry a session: those with "session" in their name."""
    names = [name for name, _ in exchange.answer.headers]
    return [name for name in names if "session" in name.lower() and not name.lower().startswith("access-control-")]
