"""Calibration: what the target is, found out before any scenario plays.

One short dialogue at the start tells whether the target answers at all, takes our key, and whether its answers come from the probe model. What
nobody states is taken from its capabilities, and what they do not tell is tried once.
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
    """Find out what the context's target is and put it there; gives the dialogue that was held for it."""
    told = await capabilities(context)
    dialogue = await opening(context, told)
    await conclude(dialogue, told)
    return dialogue


async def capabilities(context: Context) -> object:
    """What the target tells of itself, whatever that is; None where it tells nothing."""
    answer = await ask(context, "GET", "/v1/capabilities")
    return answer.body if answer.status == _OK else None


async def opening(context: Context, told: object) -> Dialogue:
    """The first turns, with what the target tells of itself. Raises UsageError where our key is refused."""
    context.target = _informed(context.target, told)
    dialogue = Dialogue(context, {})
    await _first_turn(dialogue)
    return dialogue


async def conclude(dialogue: Dialogue, told: object) -> None:
    """What the first turns show, what the target offers, and whether it remembers."""
    context, claims = dialogue.context, claims_in(told)
    observed = await _observed(dialogue)
    offers = context.target.profile.offers
    if offers is None:
        offers = frozenset(claims["offers"]) if isinstance(claims.get("offers"), list) else await _tried(context)
    if len(context.target.profile.principals) > 1:
        offers |= {"tenants"}
    context.target = replace(context.target, observed=observed, offers=offers, declared=_declared(context.target, told))
    await _remembered(dialogue)


def claims_in(told: object) -> Mapping[str, Any]:
    """What the capabilities say about continuity."""
    claims = dig(told, "continuity")
    return claims if isinstance(claims, Mapping) else {}


def header_in(told: object) -> str:
    """The continuity header that the capabilities name: by the contract, or as Hermes does; empty where they name none."""
    named = (dig(told, "continuity", "header"), dig(told, "features", "session_continuity_header"))
    return next((name for name in named if isinstance(name, str) and name), "")


def _informed(target: Target, told: object) -> Target:
    header = target.profile.header or header_in(told) or target.header
    options = {**DEFAULT_OPTIONS, **_stated(target, told)}
    single_user = target.profile.single_user or claims_in(told).get("single_user") is True
    return replace(target, header=header, options=options, single_user=single_user)


def _stated(target: Target, told: object) -> dict[str, str]:
    """The options that the capabilities or the profile state; where both do, the profile counts."""
    claimed = claims_in(told).get("options")
    known = claimed if isinstance(claimed, Mapping) else {}
    return {name: str(value) for name, value in known.items() if name in DEFAULT_OPTIONS} | dict(target.profile.options)


def _declared(target: Target, told: object) -> Declared:
    profile, offers = target.profile, claims_in(told).get("offers")
    return Declared(
        header=bool(profile.header or profile.body or header_in(told)),
        options=_stated(target, told),
        offers=profile.offers is not None or isinstance(offers, list),
    )


async def _first_turn(dialogue: Dialogue) -> None:
    """A plain turn and a streamed one under one id. What is wrong with them the requirements will say; a refused key stops here."""
    try:
        await dialogue.do("chat", {"session": "$id"}, session="$id", say="calibration")
        await dialogue.do("chat", {"session": "$id"}, session="$id", say="again", stream=True)
    except Unmet:
        _explain_refusal(dialogue.exchanges[0])
        dialogue.untested.append("the calibration turns did not succeed")


async def _remembered(dialogue: Dialogue) -> None:
    """The calibration turns prove something about single answers only where they are a conversation: an id can be told back by anybody."""
    last = dialogue.exchanges[-1]
    step = replace(last.step, expect={"sees": ["calibration", "again"]})
    try:
        await dialogue.judge(step, last.number, [last])
    except Unmet:
        dialogue.untested.append("the second calibration turn does not see the first")


def _explain_refusal(exchange: Exchange) -> None:
    if exchange.answer.status in _REFUSED:
        raise UsageError(
            f"The target refuses our key ({exchange.answer.status}).",
            where=exchange.request.url,
            do="Give it in a profile: principals: {alice: $MY_KEY}, and name the file with --continuity-profile (continuity check: --profile).",
        )


async def _observed(dialogue: Dialogue) -> Observed:
    """Whether the answers come from the probe, or from a model that says itself what it saw, or from neither."""
    first = dialogue.exchanges[0]
    said = answer_mark(first.reading.text, first.mark) if first.reading is not None else None
    if said is None or said.mark != first.mark:
        return "nothing"
    observer = dialogue.context.observer
    call = await observer.call(said.call) if observer is not None else None
    if call is not None and call.newest == first.mark:
        return "probe"
    return "nothing" if said.saw is None else "answers"


async def _tried(context: Context) -> frozenset[str]:
    """What a target offers that does not say so: tried once, cheaply."""
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
