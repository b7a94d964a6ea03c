"""Python checks of ISOLATE: every operation of the OpenAPI document, a server without keys, files, and a thousand ids."""

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Final

from continuity_conformance.checks.operations import Operation, locked, optional_paths
from continuity_conformance.checks.random_bits import random_bits
from continuity_conformance.checks.registry import check, costly
from continuity_conformance.checks.server_without_keys import without_a_key
from continuity_conformance.checks.watched_files import OutsideFiles, outside_files
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.auth import KeyField
from continuity_conformance.http.messages import NO_UTF8, Request, dig
from continuity_conformance.http.reading import read
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.scenario.request_builder import WRONG_KEY, turn_request

_REFUSED: Final[Mapping[str, object]] = {"status": 401, "headers": {"$HEADER": "absent"}, "hides": ["secret"]}
_FORBIDDEN: Final[Mapping[str, object]] = {"status": 403, "headers": {"$HEADER": "absent"}}
_KEYLESS: Final = (("GET", "/health"), ("OPTIONS", "/v1/chat/completions"))
_NOT_THERE: Final = frozenset({0, 401, 404})
_ANSWERED: Final[Mapping[str, object]] = {"status": ["2xx", "4xx"]}
_IDS: Final = 1000
_BITS: Final = 120.0
_ESTIMATED: Final = 0.5
"""So far the estimate from a thousand ids may lie below 120 bits: twenty times its standard deviation. Fewer ids tell less."""
_NAMELESS: Final = (
    "an id that was just minted names nothing that can be read or gone on with, so that nothing is guarded by it"
)
_MINTING: Final = "many turns, each with ids of its own"


@check
async def every_operation_wants_a_key(dialogue: Dialogue) -> None:
    """ISOLATE-01: 401 on every operation, whatever the body is and whether or not the id is known; and nothing was done."""
    profile = dialogue.context.target.profile
    credentials = _wrong_credentials(profile.key_field, _key(dialogue))
    await _belongings(dialogue)
    operations = await _operations(dialogue)
    for number, operation in enumerate(operations):
        for who, wrong in enumerate(credentials):
            expected = {**_refused(wrong), "like": f"$refusal-{number}-{who}"}
            for request in operation.requests(wrong, profile.token):
                await dialogue.do("request", expected, **request)
    for request in itertools.chain.from_iterable(operation.without_token() for operation in operations):
        await dialogue.do("request", {"status": 404}, **request)
    for principal, stream in itertools.product(("nobody", "stranger"), (False, True)):
        turn = {"as": principal, "session": "$hers", "say": f"{principal} {stream}", "stream": stream}
        await dialogue.do("chat", _REFUSED, **turn)
    await dialogue.do("chat", {"session": "$hers", "sees": ["secret", "mine"]}, session="$hers", say="mine")
    await _still_there(dialogue)
    await _others_want_none(dialogue)


async def _others_want_none(dialogue: Dialogue) -> None:
    """/health and OPTIONS, where they are there, answer whoever has no key as they answer anybody."""
    for method, path in _KEYLESS:
        status = (await dialogue.do("request", {"status": "any"}, method=method, path=path)).answer.status
        if status not in _NOT_THERE:
            expected = {"status": status, "hides": ["secret"]}
            await dialogue.do("request", expected, method=method, path=path, **{"as": "nobody"})


async def _belongings(dialogue: Dialogue) -> None:
    """A session with a secret in it, and a response where the target has responses."""
    await dialogue.do("chat", {"session": "$hers", "sees": ["secret"]}, session="$hers", say="secret")
    if "responses" in dialogue.context.target.offers:
        await dialogue.do("respond", {"response": "$response"}, say="a response")


async def _still_there(dialogue: Dialogue) -> None:
    if await _readable(dialogue):
        await dialogue.do("get", {"body": {"id": "$response"}}, response="$response")


async def _readable(dialogue: Dialogue) -> bool:
    """Whether a stored response can be read at all: where its owner gets nothing, there is no such operation that could want a key."""
    if "responses" not in dialogue.context.target.offers:
        return False
    return (await dialogue.do("get", {"status": "any"}, response="$response")).answer.accepted


async def _operations(dialogue: Dialogue) -> Sequence[Operation]:
    tried = [await dialogue.do("get", {"status": "any"}, path=path) for path in optional_paths()]
    there = [one.request.path for one in tried if one.answer.accepted]
    all_of_them = locked(dialogue.context.target, frozenset(map(dialogue.context.server.document_path, there)))
    readable = await _readable(dialogue)
    return [one for one in all_of_them if readable or not one.template.startswith("/v1/responses/")]


def _key(dialogue: Dialogue) -> str:
    key = dialogue.context.target.profile.principals.get("alice")
    if not key:
        raise Untested("the profile names no key, so there is none that could be missing or wrong")
    return key


def _refused(credentials: Mapping[str, str]) -> Mapping[str, object]:
    """What is no UTF-8 may be refused by the HTTP parser too, before anybody looks for a key."""
    no_text = any(NO_UTF8 in value for value in credentials.values())
    return {**_REFUSED, "status": [400, 401]} if no_text else _REFUSED


def _wrong_credentials(field: KeyField, key: str) -> Sequence[Mapping[str, str]]:
    """No key at all, an unknown one, and what is nearly the right one, also one that is no UTF-8."""
    name, right = field.filled(key)
    nearly = (WRONG_KEY, key[:-1], f"{key}x", f"{key}{NO_UTF8}", key.swapcase(), "")
    near = {field.filled(one)[1] for one in nearly} - {right}
    return [{}, *({name: said.strip()} for said in [*sorted(near), f"Basic {key}"])]


@costly
@check
async def without_keys(dialogue: Dialogue) -> None:
    """ISOLATE-02: without a key a turn is answered, and none is continued: by header, by slug or by response id."""
    async with without_a_key(dialogue):
        nobody = {"as": "nobody"}
        await dialogue.do("chat", {"session": "$told"}, **nobody, say="red")
        for number, session in enumerate(("$told", "$named")):
            await dialogue.do("chat", _FORBIDDEN, **nobody, session=session, say=f"blue {number}")
            await dialogue.do("chat", _FORBIDDEN, **nobody, session=session, say=f"green {number}", stream=True)
        await _no_response_continues(dialogue)
        await dialogue.do("chat", {"sees": ["brown"]}, **nobody, say="brown")


async def _no_response_continues(dialogue: Dialogue) -> None:
    if "responses" not in dialogue.context.target.offers:
        return
    nobody = {"as": "nobody"}
    await dialogue.do("respond", {"response": "$r", "sees": ["yellow"]}, **nobody, say="yellow")
    await dialogue.do("respond", _FORBIDDEN, **nobody, previous_response_id="$r", say="white")
    await dialogue.do("respond", _FORBIDDEN, **nobody, previous_response_id="$r", say="grey", stream=True)
    await dialogue.do("respond", _FORBIDDEN, **nobody, conversation="$slug", say="black")
    await dialogue.do("respond", _FORBIDDEN, **nobody, session="$told", say="pink")


@check
async def ids_that_are_paths(dialogue: Dialogue) -> None:
    """ISOLATE-05: refused with 400, or sessions like any other; and no file outside the store was touched."""
    with outside_files(dialogue) as files:
        for number, path in enumerate(files.ids()):
            red, blue = f"red {number}", f"blue {number}"
            first = {"either": [{"status": 400}, {"session": path, "sees": [red]}]}
            second = {"either": [{"status": 400}, {"session": path, "sees": [red, blue]}]}
            await _unread(dialogue, files, await dialogue.do("chat", first, session=path, say=red))
            await _unread(dialogue, files, await dialogue.do("chat", second, session=path, say=blue))
            for exchange in await _read_and_deleted(dialogue, path, f"green {number}"):
                await _unread(dialogue, files, exchange)
        files.must_be_untouched()
        await dialogue.do("chat", {"session": "$plain", "sees": ["white"]}, session="$plain", say="white")


async def _read_and_deleted(dialogue: Dialogue, path: str, say: str) -> list[Exchange]:
    """The same text as the id of a response, and of a session that is read and deleted. Which of them there are is for SLUG-07 and others to ask."""
    offers, done = dialogue.context.target.offers, []
    if "responses" in offers:
        done += [await dialogue.do("respond", _ANSWERED, previous_response_id=path, say=say)]
        done += [await dialogue.do(verb, _ANSWERED, response=path) for verb in ("get", "delete")]
    if "sessions" in offers:
        done += [await dialogue.do(verb, _ANSWERED, session=path) for verb in ("get", "delete")]
    return done


async def _unread(dialogue: Dialogue, files: OutsideFiles, exchange: Exchange) -> None:
    """Nothing of the files is in the answer, nor in what the model saw."""
    files.must_be_unread(exchange.answer.text)
    if exchange.answer.accepted and exchange.mark and dialogue.context.target.observed == "probe":
        files.must_be_unread(json.dumps((await dialogue.record.view(exchange)).messages))


@costly
@check
async def minted_ids(dialogue: Dialogue) -> None:
    """ISOLATE-08: of a thousand minted ids no two are alike, and 120 bits or more of each are random."""
    asked = min(dialogue.context.target.profile.limits.ids, _IDS)
    for kind, ids in (await _minted(dialogue, asked)).items():
        bits, different = random_bits(ids), len(set(ids))
        _must_hold(f"{len(ids)} different ids of a {kind}", f"{different} different ones", holds=different == len(ids))
        _must_hold(
            f"{_BITS:g} random bits in the id of a {kind}",
            f"{bits:.1f} of them, as in {ids[0]}",
            holds=bits > _BITS - _ESTIMATED * _IDS / len(ids),
        )
    dialogue.untested.extend([f"only {asked} ids were asked for: limits.ids of the profile"] * (asked < _IDS))
    dialogue.untested.extend([_NAMELESS] * (not await _names_something(dialogue)))


async def _names_something(dialogue: Dialogue) -> bool:
    """Whether a minted id names what it was minted for. A server that keeps nothing mints ids as well as any."""
    if _minting_verb(dialogue) == "respond":
        told = await dialogue.do("respond", {"response": "$minted"}, say="red")
        read_back = await dialogue.do("get", {"status": "any"}, response="$minted")
        return told.reading is not None and dig(read_back.answer.body, "id") == told.reading.id
    await dialogue.do("chat", {"session": "$minted"}, say="red")
    again = await dialogue.do("chat", {"status": "any"}, session="$minted", say="blue")
    await dialogue.record.view(again)
    return "red" in (again.seen or ())


async def _minted(dialogue: Dialogue, asked: int) -> dict[str, list[str]]:
    """The ids that so many turns mint, by what they name."""
    limits, verb = dialogue.context.target.profile.limits, _minting_verb(dialogue)
    request = _unstored_turn(dialogue, verb)
    found = [await _ids(dialogue, verb, request)]
    while len(found) < asked:
        turns = min(limits.at_once, asked - len(found))
        found += await asyncio.gather(*(_ids(dialogue, verb, request) for _ in range(turns)))
    kinds = {"session": [session for _, told in found for session in told]}
    if verb == "respond":
        kinds["response"] = [ident for ident, _ in found]
    return {kind: ids for kind, ids in kinds.items() if ids}


def _minting_verb(dialogue: Dialogue) -> str:
    target = dialogue.context.target
    if "responses" in target.offers:
        return "respond"
    if target.options["derivation"] != "none":
        raise Untested("the target mints no id that a client sees: it has no responses, and derives its sessions")
    if target.options["tells"] == "nothing":
        raise Inapplicable("the target mints no id that a client sees: it has no responses, and tells no session")
    return "chat"


def _unstored_turn(dialogue: Dialogue, verb: str) -> Request:
    """A turn that names no session. Of a response nothing is stored, so that a thousand cost little and leave nothing."""
    step = made_step(verb, {"say": "many", "store": False})
    content: dict[str, dict[str, object]] = {
        "respond": {"input": dialogue.wording.user_text("many")},
        "chat": {"messages": dialogue.wording.messages({}, "many")},
    }
    return turn_request(dialogue.context, dialogue.variables, step, content[verb])


async def _ids(dialogue: Dialogue, verb: str, request: Request) -> tuple[str, list[str]]:
    """The id of the answer and of its session. The exchange is not kept: nobody reads a thousand of them."""
    answer = await dialogue.context.transport.send(request)
    ident = read(verb, answer).id if answer.accepted else None
    _must_hold("an answer with an id", answer.error or f"{answer.status} {answer.text[:160]}", holds=bool(ident))
    return str(ident), answer.fields(dialogue.context.target.header)


def _must_hold(expected: str, actual: str, *, holds: bool) -> None:
    if not holds:
        raise Unmet(expected, actual, expectation="ids", step=_MINTING)
