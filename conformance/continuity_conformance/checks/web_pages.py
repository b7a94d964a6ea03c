"""Checks of ISOLATE about web pages: on a server for one person that wants no key, a page of another site runs no turn and reads nothing.

Every request is one that a browser sends. A fault is a call of the model, or the conversation in an answer; no status is one.
"""

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from continuity_conformance.checks.registry import a_server_for_one_person, check, costly, on
from continuity_conformance.checks.support.server_without_keys import without_a_key
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.messages import Answer
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.target.profile import CHAT_PATH, DEFAULT_SESSIONS, RESPONSES_PATH

_SITE: Final = "web-page.example"
_ENDPOINTS: Final[Mapping[str, tuple[str, str]]] = {
    "chat": ("chat", CHAT_PATH),
    "respond": ("responses", RESPONSES_PATH),
}
"""The verbs of turns, each with the offer that it needs and its path."""
_TYPES: Final = (
    "text/plain;charset=UTF-8",
    "",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=page",
)
"""The content types that a page may send anywhere without a preflight. A `Blob` without a type is sent without one."""
_WITHOUT_PREFLIGHT: Final = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}
_AFTER_PREFLIGHT: Final = {**_WITHOUT_PREFLIGHT, "Sec-Fetch-Mode": "cors"}
_SAME_ORIGIN: Final = {**_AFTER_PREFLIGHT, "Sec-Fetch-Site": "same-origin"}
_SESSION: Final = "$hers"
_NOBODY: Final = {"as": "nobody"}
_SHOWN: Final = 160
_PROGRAM: Final = "a turn of another program than a browser"


@on(a_server_for_one_person)
@costly
@check
async def pages_of_other_sites(dialogue: Dialogue) -> None:
    """ISOLATE-17: a page runs no turn by a request without a preflight, nor by one that a preflight allows."""
    async with without_a_key(dialogue, single_user=True):
        for verb in _verbs(dialogue):
            await _must_be_accepted(dialogue, verb, "red", _PROGRAM)
            await _allowed_page_must_be_accepted(dialogue, verb)
            for number, (site, content_type) in enumerate(itertools.product(_sites(dialogue), _TYPES)):
                headers = {"Origin": f"http://{site}", **_WITHOUT_PREFLIGHT}
                await _must_not_run(dialogue, verb, f"blue {number}", headers=headers, content_type=content_type)
            async for number, allowed in _allowed_by_preflight(dialogue, verb):
                await _must_not_run(dialogue, verb, f"green {number}", headers=allowed)
            await _must_be_accepted(dialogue, verb, "white", _PROGRAM)


@on(a_server_for_one_person)
@costly
@check
async def foreign_host_names(dialogue: Dialogue) -> None:
    """ISOLATE-18: under a foreign name for the target a page neither runs a turn nor reads what was said under its own name."""
    _must_be_without_certificate(dialogue)
    async with without_a_key(dialogue, single_user=True):
        for verb in _verbs(dialogue):
            secret = await _must_be_accepted(dialogue, verb, "secret", _PROGRAM, **_naming_session(verb))
            for number, host in enumerate(_sites(dialogue)):
                name = _with_port(dialogue, host)
                headers = {"Host": name, "Origin": f"http://{name}", **_SAME_ORIGIN}
                await _must_not_run(dialogue, verb, f"blue {number}", **_naming_session(verb), headers=headers)
                await _must_not_be_readable(dialogue, secret, {"Host": name, **_SAME_ORIGIN})
            await _must_be_accepted(dialogue, verb, "white", _PROGRAM, **_naming_session(verb))


def _verbs(dialogue: Dialogue) -> Sequence[str]:
    """The endpoints on which the target keeps conversations."""
    return [verb for verb, (offer, _) in _ENDPOINTS.items() if offer in dialogue.context.target.offers]


def _sites(dialogue: Dialogue) -> Sequence[str]:
    """The name of a foreign site, and one that begins like the name of the target: whoever compares only the beginning is deceived."""
    own = urlsplit(dialogue.context.server.url).hostname or ""
    return [_SITE, *([f"{own}.{_SITE}"] if ":" not in own else [])]


def _with_port(dialogue: Dialogue, host: str) -> str:
    port = urlsplit(dialogue.context.server.url).port
    return f"{host}:{port}" if port else host


def _naming_session(verb: str) -> Mapping[str, str]:
    return {"session": _SESSION} if verb == "chat" else {}


def _must_be_without_certificate(dialogue: Dialogue) -> None:
    if urlsplit(dialogue.context.server.url).scheme == "https":
        raise Inapplicable("the target has a certificate, so browsers call it by its own names only")


async def _must_be_accepted(dialogue: Dialogue, verb: str, say: str, what: str, **params: object) -> Exchange:
    """The positive control: where this turn is not accepted, a refusal of a page shows nothing."""
    exchange = await _turn(dialogue, verb, say, params)
    if not exchange.answer.accepted:
        raise Untested(f"{what} is not accepted: {_brief(exchange.answer)}")
    return exchange


async def _allowed_page_must_be_accepted(dialogue: Dialogue, verb: str) -> None:
    """The same for a page of the site that the target allows, where it allows one."""
    origin = dialogue.context.target.profile.origin
    if await _preflight_allows(dialogue, verb, origin):
        headers = {"Origin": origin, **_AFTER_PREFLIGHT}
        await _must_be_accepted(dialogue, verb, "brown", "a page of the site that the target allows", headers=headers)


async def _allowed_by_preflight(dialogue: Dialogue, verb: str) -> AsyncIterator[tuple[int, Mapping[str, str]]]:
    """The headers with which pages of foreign sites may send JSON, because a preflight allows it."""
    for number, site in enumerate(_sites(dialogue)):
        if await _preflight_allows(dialogue, verb, f"http://{site}"):
            yield number, {"Origin": f"http://{site}", **_AFTER_PREFLIGHT}


async def _preflight_allows(dialogue: Dialogue, verb: str, origin: str) -> bool:
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    _, path = _ENDPOINTS[verb]
    preflight = {"method": "OPTIONS", "path": path, "headers": {"Origin": origin, **asks}, **_NOBODY}
    answer = (await dialogue.do("request", {"status": "any"}, **preflight)).answer
    allowed = {
        name.strip().lower() for each in answer.fields("Access-Control-Allow-Headers") for name in each.split(",")
    }
    is_allowed = answer.fields("Access-Control-Allow-Origin") in ([origin], ["*"])
    return answer.accepted and is_allowed and bool(allowed & {"content-type", "*"})


async def _must_not_run(dialogue: Dialogue, verb: str, say: str, **params: object) -> None:
    exchange = await _turn(dialogue, verb, say, params)
    if await _has_run(dialogue, exchange):
        expected, actual = "no turn for a web page of another site", f"a turn ran; {_brief(exchange.answer)}"
        raise Unmet(expected, actual, expectation="ran", step=exchange.step.text, number=exchange.number)


async def _has_run(dialogue: Dialogue, exchange: Exchange) -> bool:
    """Whether the model was called for a turn. Where nobody sees that, whether the turn was answered."""
    if dialogue.context.target.observed == "probe":
        return bool(await dialogue.record.times_asked(exchange.label))
    return exchange.answer.accepted and exchange.reading is not None and not exchange.reading.flaw


async def _turn(dialogue: Dialogue, verb: str, say: str, params: Mapping[str, object]) -> Exchange:
    return await dialogue.do(verb, {"status": "any"}, **_NOBODY, say=f"{verb} {say}", **params)


async def _must_not_be_readable(dialogue: Dialogue, secret: Exchange, headers: Mapping[str, str]) -> None:
    """What GET shows of the conversation under the name of the target, it does not show under a foreign one."""
    for read, words in _reads(secret):
        own = await dialogue.do("get", {"status": "any"}, **read, **_NOBODY)
        shown = [word for word in words if own.answer.accepted and _text_of(dialogue, word) in own.answer.text]
        if shown:
            await dialogue.do("get", {"status": "any", "hides": shown}, **read, **_NOBODY, headers=headers)


def _reads(secret: Exchange) -> Sequence[tuple[Mapping[str, str], Sequence[str]]]:
    """The requests that may show the conversation of a turn, each with what would show it. An error may repeat the id in its path."""
    said = [secret.label]
    if secret.verb == "respond":
        return [({"response": secret.reading.id}, said)] if secret.reading and secret.reading.id else []
    return [
        ({"session": _SESSION}, said),
        ({"path": f"{DEFAULT_SESSIONS}/${{hers}}/messages"}, said),
        ({"path": DEFAULT_SESSIONS}, [*said, _SESSION]),
    ]


def _text_of(dialogue: Dialogue, word: str) -> str:
    return dialogue.variables.text(word, "session") if word.startswith("$") else dialogue.wording.mark(word)


def _brief(answer: Answer) -> str:
    return answer.error or f"{answer.status} {answer.text[:_SHOWN]}"
