"""Calibration: finds out what the target is before any scenario plays.

One short dialogue shows whether the target answers, accepts the key, and gets its answers from the probe model. What the profile does not state is
taken from the capabilities; what they do not state is tried once.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.failure import Unmet
from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.probe.marks import answer_mark
from continuity_conformance.scenario.context import Context, Declared, Observed, Target
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.request_builder import base_headers
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.target.profile import DEFAULT_HEADER, DEFAULT_OPTIONS, Profile

_REFUSED: Final = frozenset({401, 403})
_NOT_THERE: Final = frozenset({0, 404, 405, 501})
_OK: Final = 200


def assumed(profile: Profile) -> Target:
    """The target as its profile alone describes it."""
    options = {**DEFAULT_OPTIONS, **profile.options}
    header = profile.header or DEFAULT_HEADER
    return Target(
        profile,
        header,
        options,
        profile.offers or frozenset(),
        "nothing",
        has_api=bool(profile.token),
        single_user=profile.single_user,
    )


async def calibrate(context: Context) -> Dialogue:
    """Find out what the target is, store it in the context, and return the dialogue."""
    stated = await capabilities(context)
    dialogue = await opening(context, stated)
    await conclude(dialogue, stated)
    return dialogue


async def capabilities(context: Context) -> object:
    """The body of /v1/capabilities, whatever it is; None if there is none."""
    answer = await ask(context, "GET", "/v1/capabilities")
    return answer.body if answer.status == _OK else None


async def opening(context: Context, stated: object) -> Dialogue:
    """Play the first turns. Raises UsageError if the key is refused."""
    context.target = _informed(context.target, stated)
    dialogue = Dialogue(context, {})
    await _first_turn(dialogue)
    return dialogue


async def conclude(dialogue: Dialogue, stated: object) -> None:
    """Store what the first turns showed, what the target offers, and whether it remembers."""
    context, claims = dialogue.context, claims_in(stated)
    observed = await _observed(dialogue)
    offers = context.target.profile.offers
    if offers is None:
        offers = frozenset(claims["offers"]) if isinstance(claims.get("offers"), list) else await _tried(context)
    if len(context.target.profile.principals) > 1:
        offers |= {"tenants"}
    context.target = replace(
        context.target, observed=observed, offers=offers, declared=_declared(context.target, stated)
    )
    await _remembered(dialogue)


def claims_in(stated: object) -> Mapping[str, Any]:
    """The continuity section of the capabilities."""
    claims = dig(stated, "continuity")
    return claims if isinstance(claims, Mapping) else {}


def header_in(stated: object) -> str:
    """The continuity header in the capabilities, as the contract or as Hermes names it; empty if there is none."""
    named = (dig(stated, "continuity", "header"), dig(stated, "features", "session_continuity_header"))
    return next((name for name in named if isinstance(name, str) and name), "")


def _informed(target: Target, stated: object) -> Target:
    header = target.profile.header or header_in(stated) or target.header
    options = {**DEFAULT_OPTIONS, **_stated(target, stated)}
    single_user = target.profile.single_user or claims_in(stated).get("single_user") is True
    return replace(target, header=header, options=options, single_user=single_user)


def _stated(target: Target, stated: object) -> dict[str, str]:
    """The options that the capabilities or the profile state; the profile wins."""
    claimed = claims_in(stated).get("options")
    known = claimed if isinstance(claimed, Mapping) else {}
    return {name: str(value) for name, value in known.items() if name in DEFAULT_OPTIONS} | dict(target.profile.options)


def _declared(target: Target, stated: object) -> Declared:
    profile, offers = target.profile, claims_in(stated).get("offers")
    return Declared(
        header=bool(profile.header or profile.body or header_in(stated)),
        options=_stated(target, stated),
        offers=profile.offers is not None or isinstance(offers, list),
    )


async def _first_turn(dialogue: Dialogue) -> None:
    """One plain and one streamed turn in one session. Only a refused key stops the run here; requirements report other failures."""
    try:
        await dialogue.do("chat", {"session": "$id"}, session="$id", say="calibration")
        await dialogue.do("chat", {"session": "$id"}, session="$id", say="again", stream=True)
    except Unmet:
        _explain_refusal(dialogue.exchanges[0])
        dialogue.untested.append("the calibration turns did not succeed")


async def _remembered(dialogue: Dialogue) -> None:
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


async def _tried(context: Context) -> frozenset[str]:
    """Try once what the target offers, if it does not say so."""
    responses = await ask(
        context,
        "POST",
        "/v1/responses",
        {"model": context.target.profile.model, "input": "calibration", "store": False},
    )
    preflight = [("Origin", context.target.profile.origin), ("Access-Control-Request-Method", "POST")]
    cors = await ask(context, "OPTIONS", "/v1/chat/completions", headers=preflight)
    offers = {"streaming"}
    offers |= {"responses"} if responses.status not in _NOT_THERE else set()
    offers |= {"cors"} if cors.fields("Access-Control-Allow-Origin") else set()
    offers |= {"compression"} if "compress" in context.controls.available else set()
    return frozenset(offers)


async def ask(
    context: Context, method: str, path: str, body: object = None, headers: list[tuple[str, str]] | None = None
) -> Answer:
    fields = (*base_headers(context, "alice"), *(headers or []))
    return await context.transport.send(
        Request(method, context.server.url + path, fields, Variables({}, {}).fill(body))
    )
