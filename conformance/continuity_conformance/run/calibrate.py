"""Calibration: finds out what the target is before any scenario plays.

One short dialogue shows whether the target answers, accepts the key, and gets its answers from the probe model. It is held over chat, or over
/v1/responses where the target keeps no conversations on chat. What the profile does not state is taken from the capabilities; what they do not state
is tried once.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.probe.marks import answer_mark
from continuity_conformance.run.first_answer import CAPABILITIES, first_answer, is_no_api, no_turn
from continuity_conformance.scenario.context import Context, Declared, Observed, Target
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.request_builder import base_headers
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.target.profile import CONVERSATIONS_PATH, DEFAULT_HEADER, DEFAULT_OPTIONS, Profile

_REFUSED: Final = frozenset({401, 403})
_NO_ENDPOINT: Final = frozenset({404, 405, 501})
_NOT_THERE: Final = _NO_ENDPOINT | {0}
_OK: Final = 200
_CHAT: Final = frozenset({"chat"})


def _default_options(profile: Profile) -> Mapping[str, str]:
    """What holds for a target that declares nothing. One for which no tools are named is taken to have no environment for them."""
    has_tools = profile.writes is not None or profile.reads is not None
    return DEFAULT_OPTIONS if has_tools else {**DEFAULT_OPTIONS, "environment": "none"}


def assumed(profile: Profile) -> Target:
    """The target as its profile alone describes it."""
    options = {**_default_options(profile), **profile.options}
    header = profile.header or DEFAULT_HEADER
    offers = profile.offers or frozenset()
    return Target(
        profile,
        header,
        options,
        offers - _CHAT if profile.chat == "none" else offers | _CHAT,
        "nothing",
        has_api=bool(profile.token),
        single_user=profile.single_user,
        other_headers=profile.other_headers,
    )


async def calibrate(context: Context) -> Dialogue:
    """Find out what the target is, store it in the context, and return the dialogue. Raises UnreachableError if the target answers nothing."""
    stated = _stated_by(await first_answer(lambda path: ask(context, "GET", path), context.server.url))
    dialogue = await opening(context, stated)
    if _is_over_chat(dialogue) and await _has_no_chat(dialogue):
        responses = await _over_responses(context)
        dialogue = responses if responses.exchanges[0].answer.accepted else dialogue
    await _require_turn(dialogue)
    await conclude(dialogue, stated)
    return dialogue


async def capabilities(context: Context) -> object:
    """The body of /v1/capabilities, whatever it is; None if there is none."""
    return _stated_by(await ask(context, "GET", CAPABILITIES))


def _stated_by(answer: Answer) -> object:
    return answer.body if answer.status == _OK else None


async def opening(context: Context, stated: object) -> Dialogue:
    """Play the first turns, over chat unless the profile says that it keeps no conversations. Raises UsageError if the key is refused."""
    context.target = _informed(context.target, stated)
    if context.target.profile.chat == "none":
        return await _over_responses(context)
    return await _first_turns(context, _by_header)


async def _has_no_chat(dialogue: Dialogue) -> bool:
    """Whether chat is missing. A target that only refuses to start a session under our id answers a turn that names none."""
    if dialogue.exchanges[0].answer.status not in _NO_ENDPOINT:
        return False
    path, turn = dialogue.context.target.profile.first_turn("calibration")
    return (await ask(dialogue.context, "POST", path, turn)).status in _NO_ENDPOINT


async def _require_turn(dialogue: Dialogue) -> None:
    """Raise an error if no turn succeeds, not even one that names no session. A target that hangs is not asked again."""
    first, context = dialogue.exchanges[0], dialogue.context
    profile = context.target.profile if _is_over_chat(dialogue) else replace(context.target.profile, chat="none")
    path, turn = profile.first_turn("calibration")
    answer = first.answer
    if answer.status and not answer.accepted and not is_no_api(answer):
        answer = await ask(context, "POST", path, turn)
    elif answer.status in _NO_ENDPOINT and not await _has_no_chat(dialogue):
        return
    if not answer.accepted or is_no_api(answer):
        raise no_turn(context.server.url, path, answer)


async def _over_responses(context: Context) -> Dialogue:
    """The first turns, continued by response id; if that fails, by slug."""
    by_response = await _first_turns(context, _by_response)
    if not by_response.untested or context.target.profile.slugs == "none":
        return by_response
    by_slug = await _first_turns(context, _by_slug)
    return by_response if by_slug.untested else by_slug


async def conclude(dialogue: Dialogue, stated: object) -> None:
    """Store what the first turns showed, what the target offers, and whether it remembers."""
    context, claims = dialogue.context, claims_in(stated)
    observed = await _observed(dialogue)
    offers = context.target.profile.offers
    if offers is None:
        offers = frozenset(claims["offers"]) if isinstance(claims.get("offers"), list) else await _tried(dialogue)
    if len(context.target.profile.everyone) > 1:
        offers |= {"tenants"}
    offers = offers | _CHAT if _is_over_chat(dialogue) else offers - _CHAT
    context.target = replace(
        context.target, observed=observed, offers=offers, declared=_declared(context.target, stated)
    )
    context.target = replace(context.target, refuses_header_on_responses=await _refuses_header(dialogue))
    await remembered(dialogue)


def claims_in(stated: object) -> Mapping[str, Any]:
    """The continuity section of the capabilities."""
    claims = dig(stated, "continuity")
    return claims if isinstance(claims, Mapping) else {}


def header_in(stated: object) -> str:
    """The continuity header in the capabilities, as the contract or as Hermes names it; empty if there is none."""
    named = (dig(stated, "continuity", "header"), dig(stated, "features", "session_continuity_header"))
    return next((name for name in named if isinstance(name, str) and name), "")


def other_headers_in(stated: object) -> tuple[str, ...]:
    """The further continuity headers of the capabilities, in their order of precedence."""
    named = claims_in(stated).get("headers")
    names = [name for name in named if isinstance(name, str) and name] if isinstance(named, list) else []
    return tuple(name for name in names if name.lower() != header_in(stated).lower())


def _informed(target: Target, stated: object) -> Target:
    header = target.profile.header or header_in(stated) or target.header
    others = target.profile.other_headers if target.profile.header else other_headers_in(stated)
    options = {**_default_options(target.profile), **_stated(target, stated)}
    single_user = target.profile.single_user or claims_in(stated).get("single_user") is True
    return replace(target, header=header, other_headers=others, options=options, single_user=single_user)


def _stated(target: Target, stated: object) -> dict[str, str]:
    """The options that the capabilities or the profile state; the profile wins."""
    return _claimed_options(stated) | dict(target.profile.options)


def _claimed_options(stated: object) -> dict[str, str]:
    claimed = claims_in(stated).get("options")
    known = claimed if isinstance(claimed, Mapping) else {}
    return {name: str(value) for name, value in known.items() if name in DEFAULT_OPTIONS}


def _declared(target: Target, stated: object) -> Declared:
    """What the capabilities claim. Where the profile says otherwise, the run follows the profile and examines no claim."""
    offers, options = claims_in(stated).get("offers"), _claimed_options(stated)
    header = header_in(stated)
    return Declared(
        header=bool(header) and header.lower() == target.header.lower(),
        options={name: value for name, value in options.items() if target.options[name] == value},
        offers=frozenset(map(str, offers)) if isinstance(offers, list) else None,
        single_user=claims_in(stated).get("single_user") is True,
    )


Turns = Callable[[Dialogue, bool], Awaitable[None]]


async def _first_turns(context: Context, turns: Turns) -> Dialogue:
    """One plain and one streamed turn in one session. Only a refused key stops the run here; requirements report other failures."""
    dialogue, offers = Dialogue(context, {}), context.target.profile.offers
    try:
        await turns(dialogue, offers is None or "streaming" in offers)
    except Unmet:
        _explain_refusal(dialogue.exchanges[0])
        dialogue.untested.append("the calibration turns did not succeed")
    except Untested as reason:
        dialogue.untested.append(str(reason))
    return dialogue


async def _by_header(dialogue: Dialogue, stream: bool) -> None:
    await dialogue.do("chat", {"session": "$id"}, session="$id", say="calibration")
    await dialogue.do("chat", {"session": "$id"}, session="$id", say="again", stream=stream)


async def _by_response(dialogue: Dialogue, stream: bool) -> None:
    await dialogue.do("respond", {"response": "$first"}, say="calibration")
    await dialogue.do("respond", {}, previous_response_id="$first", say="again", stream=stream)


async def _by_slug(dialogue: Dialogue, stream: bool) -> None:
    await dialogue.do("respond", {}, conversation="$slug", say="calibration")
    await dialogue.do("respond", {}, conversation="$slug", say="again", stream=stream)


def _is_over_chat(dialogue: Dialogue) -> bool:
    return dialogue.exchanges[0].verb == "chat"


async def remembered(dialogue: Dialogue) -> None:
    """The calibration turns prove something only if the second sees the first: a server that echoes every header reveals the right id too."""
    last = dialogue.exchanges[-1]
    step = replace(last.step, expect={"sees": ["calibration", "again"]})
    try:
        await dialogue.judge(step, last.number, [last])
    except Unmet:
        dialogue.untested.append("the second calibration turn does not see the first")


def _explain_refusal(exchange: Exchange) -> None:
    if exchange.answer.status in _REFUSED:
        raise UsageError(
            f"The target refuses the key ({exchange.answer.status}).",
            where=exchange.request.url,
            do="Give it in a profile: principals: {alice: $MY_KEY}, and name the file with --continuity-profile (continuity check: --profile).",
        )


async def _observed(dialogue: Dialogue) -> Observed:
    """Whether the answers come from the probe, from a model that reports what it saw, or from neither."""
    first = dialogue.exchanges[0]
    mark = answer_mark(first.reading.text, first.mark) if first.reading is not None else None
    if mark is None or mark.mark != first.mark:
        return "nothing"
    observer = dialogue.context.observer
    call = await observer.call(mark.call) if observer is not None else None
    if call is not None and call.newest == first.mark:
        return "probe"
    return "nothing" if mark.saw is None else "answers"


async def _refuses_header(dialogue: Dialogue) -> bool:
    """Whether /v1/responses refuses a new session id in the header, which chat takes, and takes the same turn without it."""
    target = dialogue.context.target
    if not (_is_over_chat(dialogue) and dialogue.exchanges[0].answer.accepted) or "responses" not in target.offers:
        return False
    path, turn = replace(target.profile, chat="none").first_turn("calibration")
    ident = dialogue.variables.text("$on-responses", "session")
    named = await ask(dialogue.context, "POST", path, turn, [(target.header, ident)])
    return named.refused and (await ask(dialogue.context, "POST", path, turn)).accepted


async def _tried(dialogue: Dialogue) -> frozenset[str]:
    """Try once what the target offers, if it does not say so."""
    context = dialogue.context
    path, turn = replace(context.target.profile, chat="none").first_turn("calibration")
    responses = await ask(context, "POST", path, turn)
    preflight = [("Origin", context.target.profile.origin), ("Access-Control-Request-Method", "POST")]
    cors = await ask(
        context, "OPTIONS", "/v1/chat/completions" if _is_over_chat(dialogue) else "/v1/responses", headers=preflight
    )
    offers = {"streaming"}
    offers |= {"responses"} if responses.status not in _NOT_THERE else set()
    offers |= {"cors"} if cors.fields("Access-Control-Allow-Origin") else set()
    offers |= {"compression"} if "compress" in context.controls.available else set()
    offers |= await _tried_beside_responses(context) if "responses" in offers else set()
    return frozenset(offers)


async def _tried_beside_responses(context: Context) -> set[str]:
    """Try what a target with responses may lack: reading and deleting a stored response, and objects for conversations."""
    path, turn = replace(context.target.profile, chat="none").first_turn("calibration", store=True)
    stored = dig((await ask(context, "POST", path, turn)).body, "id")
    path = f"{path}/{stored}"
    kept = isinstance(stored, str) and (await ask(context, "GET", path)).accepted
    deletes = kept and (await ask(context, "DELETE", path)).accepted
    made = dig((await ask(context, "POST", CONVERSATIONS_PATH, context.target.profile.new_conversation())).body, "id")
    objects = isinstance(made, str) and (await ask(context, "DELETE", f"/v1/conversations/{made}")).accepted
    return ({"stored-responses"} if deletes else set()) | ({"conversations"} if objects else set())


async def ask(
    context: Context, method: str, path: str, body: object = None, headers: list[tuple[str, str]] | None = None
) -> Answer:
    fields = (*base_headers(context, "alice"), *(headers or []))
    return await context.transport.send(
        Request(method, context.server.url + path, fields, Variables({}, {}).fill(body))
    )
