"""Checks of ISOLATE: keys on every operation, a server without keys, ids that are paths or forged, and hundreds of new ids."""

import asyncio
import itertools
import json
import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from continuity_conformance.checks.registry import (
    a_key,
    a_server_without_keys,
    check,
    costly,
    on,
    paced,
    second_principal,
)
from continuity_conformance.checks.support.operations import Operation, optional_paths, protected_operations
from continuity_conformance.checks.support.server_without_keys import without_a_key
from continuity_conformance.checks.support.watched_files import OutsideFiles, outside_files
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.messages import NO_UTF8, KeyField, Request, dig
from continuity_conformance.http.reading import read
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.scenario.request_builder import WRONG_KEY, plain_request, turn_request

_REFUSED: Final[Mapping[str, object]] = {
    "status": [400, 401, 403],
    "headers": {"$HEADER": "absent"},
    "hides": ["secret"],
}
_FORBIDDEN: Final[Mapping[str, object]] = {"status": [401, 403], "headers": {"$HEADER": "absent"}}
_MESSAGES: Final = "/v1/sessions/{}/messages"
_HEALTH: Final = "/health"
_MISSING: Final = frozenset({0, 401, 404})
_REFUSALS: Final = (400, 404, 422)
_ANSWERED: Final[Mapping[str, object]] = {"status": ["2xx", "4xx"]}
_IDS: Final = 300
MANY_IDS: Final = ("minted_ids", _IDS)
"""The check that collects ids, and how many it needs for a pass."""
_BITS: Final = 120.0
_TOLERANCE: Final = 1.5
"""How far the estimate from 300 ids may be below 120 bits: its bias (0.2 bits for 64 characters) and eight times its standard deviation. With fewer
ids the tolerance grows."""
_PLACES: Final = 8
_LAST: Final = 3
"""How many characters of an id are changed: so many places all over it, and this many at its end."""
_USELESS_IDS: Final = "a new id can be neither read nor continued, so it protects nothing"
_MINTING: Final = "many turns, each with ids of its own"


@on(a_key)
@check
async def every_operation_wants_a_key(dialogue: Dialogue) -> None:
    """ISOLATE-01: every operation refuses, for any body and for known and unknown ids, and changes nothing."""
    profile = dialogue.context.target.profile
    credentials = _wrong_credentials(profile.key_field, profile.principals["alice"])
    await _store_secret(dialogue)
    operations = await _operations(dialogue)
    for number, operation in enumerate(operations):
        for index, wrong in enumerate(credentials):
            expected = {**_REFUSED, "like": f"$refusal-{number}-{index}"}
            for request in operation.requests(wrong, profile.token):
                await dialogue.do("request", expected, **request)
    for request in itertools.chain.from_iterable(operation.without_token() for operation in operations):
        await dialogue.do("request", {"status": 404}, **request)
    for verb, named in _ways_to_continue(dialogue).items():
        for principal, stream in itertools.product(("nobody", "stranger"), (False, True)):
            turn = {**named, "as": principal, "say": f"{verb} {principal} {stream}", "stream": stream}
            await dialogue.do(verb, _REFUSED, **turn)
        await dialogue.do(verb, {"sees": ["secret", f"{verb} mine"]}, **named, say=f"{verb} mine")
    await _health_needs_no_key(dialogue)


async def _health_needs_no_key(dialogue: Dialogue) -> None:
    """/health, if the target has it, gives the same status with and without a key."""
    status = (await dialogue.do("request", {"status": "any"}, method="GET", path=_HEALTH)).answer.status
    if status not in _MISSING:
        expected = {"status": status, "hides": ["secret"]}
        await dialogue.do("request", expected, method="GET", path=_HEALTH, **{"as": "nobody"})


async def _store_secret(dialogue: Dialogue) -> None:
    """Create a session with a secret in it, and a response, each if the target keeps such conversations."""
    ways = _ways_to_continue(dialogue)
    if "chat" in ways:
        await dialogue.do("chat", {"session": "$hers", "sees": ["secret"]}, session="$hers", say="secret")
    if "respond" in ways:
        await dialogue.do("respond", {"response": "$response", "sees": ["secret"]}, say="secret")


def _ways_to_continue(dialogue: Dialogue) -> Mapping[str, Mapping[str, str]]:
    """The endpoints on which the target keeps conversations, each with how the stored one is named."""
    offers = dialogue.context.target.offers
    ways = {"chat": {"session": "$hers"}, "respond": {"previous_response_id": "$response"}}
    return {verb: ways[verb] for verb, offer in (("chat", "chat"), ("respond", "responses")) if offer in offers}


async def _responses_readable(dialogue: Dialogue) -> bool:
    """Whether the owner can read a stored response. If not, the target lacks the operation, and no key can protect it."""
    if "responses" not in dialogue.context.target.offers:
        return False
    return (await dialogue.do("get", {"status": "any"}, response="$response")).answer.accepted


async def _operations(dialogue: Dialogue) -> Sequence[Operation]:
    exchanges = [await dialogue.do("get", {"status": "any"}, path=path) for path in optional_paths()]
    available = [exchange.request.path for exchange in exchanges if exchange.answer.accepted]
    document_paths = frozenset(map(dialogue.context.server.document_path, available))
    operations = protected_operations(dialogue.context.target, document_paths)
    absent = tuple(
        path
        for path, there in (
            ("/v1/responses/", await _responses_readable(dialogue)),
            ("/v1/chat/", "chat" in dialogue.context.target.offers),
            (_MESSAGES.format("{session_id}"), await _messages_readable(dialogue)),
        )
        if not there
    )
    return [each for each in operations if not each.template.startswith(absent)]


async def _messages_readable(dialogue: Dialogue) -> bool:
    """Whether the owner of a session can read its messages: sessions at a path of the target's own may have none."""
    if "sessions" not in dialogue.context.target.offers or "chat" not in _ways_to_continue(dialogue):
        return True
    path = _MESSAGES.format("${hers}")
    return (await dialogue.do("get", {"status": "any"}, path=path)).answer.status not in _MISSING


def _wrong_credentials(field: KeyField, key: str) -> Sequence[Mapping[str, str]]:
    """Return no key, an unknown key, and keys that are almost right, one of them not UTF-8."""
    name, right = field.filled(key)
    wrong_keys = (WRONG_KEY, key[:-1], f"{key}x", f"{key}{NO_UTF8}", key.swapcase(), "")
    wrong = {field.filled(wrong_key)[1] for wrong_key in wrong_keys} - {right}
    return [{}, *({name: value.strip()} for value in [*sorted(wrong), f"Basic {key}"])]


@on(a_server_without_keys)
@costly
@check
async def without_keys(dialogue: Dialogue) -> None:
    """ISOLATE-02: a server without keys answers turns, but continues none by header, slug or response id."""
    async with without_a_key(dialogue):
        await _no_chat_continues(dialogue)
        await _no_response_continues(dialogue)


async def _no_chat_continues(dialogue: Dialogue) -> None:
    if "chat" not in dialogue.context.target.offers:
        return
    nobody = {"as": "nobody"}
    await dialogue.do("chat", {"session": "$told"}, **nobody, say="red")
    told = ("$told",) if dialogue.context.target.options["tells"] == "header" else ()
    for number, session in enumerate((*told, "$named")):
        await dialogue.do("chat", _FORBIDDEN, **nobody, session=session, say=f"blue {number}")
        await dialogue.do("chat", _FORBIDDEN, **nobody, session=session, say=f"green {number}", stream=True)
    await dialogue.do("chat", {"sees": ["brown"]}, **nobody, say="brown")


async def _no_response_continues(dialogue: Dialogue) -> None:
    if "responses" not in dialogue.context.target.offers:
        return
    nobody = {"as": "nobody"}
    await dialogue.do("respond", {"response": "$r", "sees": ["yellow"]}, **nobody, say="yellow")
    await dialogue.do("respond", _FORBIDDEN, **nobody, previous_response_id="$r", say="white")
    await dialogue.do("respond", _FORBIDDEN, **nobody, previous_response_id="$r", say="grey", stream=True)
    await dialogue.do("respond", _FORBIDDEN, **nobody, conversation="$slug", say="black")
    refused_or_ignored = {"either": [_FORBIDDEN, {"sees": ["pink"]}]}
    await dialogue.do("respond", refused_or_ignored, **nobody, session="$named", say="pink")


@check
async def ids_that_are_paths(dialogue: Dialogue) -> None:
    """ISOLATE-05: an id that is a path is refused or is an ordinary session; no file outside the store is touched."""
    with outside_files(dialogue) as files:
        for number, path in enumerate(files.ids()):
            for exchange in [
                *await _as_session(dialogue, path, (f"red {number}", f"blue {number}")),
                *await _read_and_delete(dialogue, path, f"green {number}"),
            ]:
                await _must_not_show(dialogue, files, exchange)
        files.must_be_untouched()
        await _as_session(dialogue, "$plain", ("white", "black"), allowed=("2xx",))


async def _as_session(
    dialogue: Dialogue, path: str, says: tuple[str, str], allowed: Sequence[object] = ("2xx", *_REFUSALS)
) -> list[Exchange]:
    """Use the path as the id of a session in two turns, where the target keeps conversations on chat."""
    if "chat" not in dialogue.context.target.offers:
        return []
    views = (says[:1], says)
    return [
        await dialogue.do(
            "chat", {"status": list(allowed), "session": path, "sees": list(seen)}, session=path, say=seen[-1]
        )
        for seen in views
    ]


async def _read_and_delete(dialogue: Dialogue, path: str, say: str) -> list[Exchange]:
    """Use the path as the id of a response and of a session, and read and delete both, where the target offers that."""
    offers, exchanges = dialogue.context.target.offers, []
    if "responses" in offers:
        exchanges += [await dialogue.do("respond", _ANSWERED, previous_response_id=path, say=say)]
        exchanges += [await dialogue.do(verb, _ANSWERED, response=path) for verb in ("get", "delete")]
    if "sessions" in offers:
        exchanges += [await dialogue.do(verb, _ANSWERED, session=path) for verb in ("get", "delete")]
    return exchanges


async def _must_not_show(dialogue: Dialogue, files: OutsideFiles, exchange: Exchange) -> None:
    """The content of the files is neither in the answer nor in what the model saw."""
    files.must_not_appear_in(exchange.answer.text)
    if exchange.answer.accepted and exchange.mark and dialogue.context.target.observed == "probe":
        files.must_not_appear_in(json.dumps((await dialogue.record.view(exchange)).messages))


@costly
@paced
@check
async def minted_ids(dialogue: Dialogue) -> None:
    """ISOLATE-08: hundreds of new ids that can be used are all different, and each has at least 120 random bits."""
    count = min(dialogue.context.target.profile.limits.ids, _IDS)
    for kind, ids in (await _new_ids(dialogue, count)).items():
        bits, different = random_bits(ids), len(set(ids))
        _must_hold(f"{len(ids)} different ids of a {kind}", f"{different} different ones", holds=different == len(ids))
        _must_hold(
            f"{_BITS:g} random bits in the id of a {kind}",
            f"{bits:.1f} of them, as in {ids[0]}",
            holds=bits > _BITS - _TOLERANCE * _IDS / len(ids),
        )
    dialogue.untested.extend([f"only {count} ids were asked for: limits.ids of the profile"] * (count < _IDS))
    dialogue.untested.extend([_USELESS_IDS] * (not await _id_is_usable(dialogue)))


async def _id_is_usable(dialogue: Dialogue) -> bool:
    """Whether a new id leads back to its response or session. A server that stores nothing makes random ids too."""
    if _verb_with_new_ids(dialogue) == "respond":
        created = await dialogue.do("respond", {"response": "$minted"}, say="red")
        stored = await dialogue.do("get", {"status": "any"}, response="$minted")
        return created.reading is not None and dig(stored.answer.body, "id") == created.reading.id
    await dialogue.do("chat", {"session": "$minted"}, say="red")
    continued = await dialogue.do("chat", {"status": "any"}, session="$minted", say="blue")
    await dialogue.record.view(continued)
    return "red" in (continued.seen or ())


async def _new_ids(dialogue: Dialogue, count: int) -> dict[str, list[str]]:
    """Return the new ids of this many turns, for each kind of id."""
    limits, verb = dialogue.context.target.profile.limits, _verb_with_new_ids(dialogue)
    request = _stored_turn(dialogue, verb)
    answers = [await _ids(dialogue, verb, request)]
    while len(answers) < count:
        turns = min(limits.at_once, count - len(answers))
        answers += await asyncio.gather(*(_ids(dialogue, verb, request) for _ in range(turns)))
    kinds = {"session": [session for _, sessions in answers for session in sessions]}
    if verb == "respond":
        kinds["response"] = [ident for ident, _ in answers]
    return {kind: ids for kind, ids in kinds.items() if ids}


def _verb_with_new_ids(dialogue: Dialogue) -> str:
    target = dialogue.context.target
    if "responses" in target.offers:
        return "respond"
    if "chat" not in target.offers:
        raise Inapplicable("the target keeps no conversations")
    if target.options["derivation"] != "none":
        raise Untested("the target mints no id that a client sees: it has no responses, and derives its sessions")
    if target.options["tells"] == "nothing":
        raise Inapplicable(
            "the target mints no id that a client sees: it has no responses, and does not reveal the session id"
        )
    return "chat"


def _stored_turn(dialogue: Dialogue, verb: str) -> Request:
    """Return a turn that names no session. It is stored: the id of one that is not stored protects nothing."""
    step = made_step(verb, {"say": "many"})
    content: dict[str, dict[str, object]] = {
        "respond": {"input": dialogue.wording.user_text("many")},
        "chat": {"messages": dialogue.wording.messages({}, "many")},
    }
    return turn_request(dialogue.context, dialogue.variables, step, content[verb])


async def _ids(dialogue: Dialogue, verb: str, request: Request) -> tuple[str, list[str]]:
    """Return the id of the answer and of its session. The exchange is not recorded: hundreds would fill the report."""
    async with dialogue.context.cache.lease(1 if verb == "respond" else 0):
        answer = await dialogue.context.transport.send_repeatable(request)
        ident = read(verb, answer).id if answer.accepted else None
        _must_hold("an answer with an id", answer.error or f"{answer.status} {answer.text[:160]}", holds=bool(ident))
        sessions = answer.fields(dialogue.context.target.header)
        await _delete(dialogue, verb, str(ident), sessions)
    return str(ident), sessions


async def _delete(dialogue: Dialogue, verb: str, ident: str, sessions: Sequence[str]) -> None:
    """Delete what a turn left behind, where the target can. A server that the kit started keeps it: nobody uses that server later."""
    if not dialogue.context.server.may_hold_sessions:
        return
    responses = [{"response": ident}] if verb == "respond" else []
    rows = [{"session": session} for session in sessions if "sessions" in dialogue.context.target.offers]
    for resource in [*responses, *rows]:
        await dialogue.context.transport.send_repeatable(
            plain_request(dialogue.context, dialogue.variables, made_step("delete", resource))
        )


def _must_hold(expected: str, actual: str, *, holds: bool) -> None:
    if not holds:
        raise Unmet(expected, actual, expectation="ids", step=_MINTING)


def random_bits(ids: Sequence[str]) -> float:
    """Sum the entropy of all positions. A constant position has none, and equal positions count once.

    This is an upper bound: it does not see positions that depend on others in a more complex way.
    """
    return sum(_bits(column) for column in set(zip_longest(*ids, fillvalue="")))


def _bits(column: Sequence[str]) -> float:
    """Shannon entropy of one position, with the Miller-Madow correction for a small sample."""
    counts, total = Counter(column), len(column)
    entropy = -sum(count / total * math.log2(count / total) for count in counts.values())
    return entropy + (len(counts) - 1) / (2 * total * math.log(2))


@on(second_principal)
@check
async def changed_response_ids(dialogue: Dialogue) -> None:
    """ISOLATE-13: bob gets nothing of alice's conversation by an id that is almost hers."""
    bob = {"as": "bob"}
    hers = await dialogue.do("respond", {"response": "$hers", "sees": ["secret"]}, say="secret")
    await dialogue.do("respond", {"response": "$his", "sees": ["red"]}, **bob, say="red")
    refused = {"either": [{"status": "4xx"}, {"forgets": ["secret"]}], "hides": ["secret"]}
    for number, changed in enumerate(changed_ids(str(hers.reading and hers.reading.id))):
        await dialogue.do("respond", refused, **bob, previous_response_id=changed, say=f"blue {number}")
        await dialogue.do("get", {"status": "any", "hides": ["secret"]}, **bob, response=changed)
    await dialogue.do("respond", {"sees": ["secret", "mine"]}, previous_response_id="$hers", say="mine")
    await dialogue.do("respond", {"sees": ["red", "green"]}, **bob, previous_response_id="$his", say="green")


def changed_ids(ident: str) -> list[str]:
    """Ids that differ from this one in a few characters, in every part of it, and are of the same alphabet."""
    places = [place for place, character in enumerate(ident) if character.isascii() and character.isalnum()]
    chosen = sorted({*places[:: max(1, len(places) // _PLACES)], *places[-_LAST:]})
    single = [ident[:place] + _another(ident[place]) + ident[place + 1 :] for place in chosen]
    ending = "".join(map(_another, ident[-_LAST:]))
    return list(dict.fromkeys([*single, ident[:-_LAST] + ending, ident[:-1], f"{ident}0"]))


def _another(character: str) -> str:
    """Another character of the same kind: a digit, a hex digit, or a letter of the same case."""
    kinds = ("0123456789", "abcdef", "ABCDEF", string.ascii_lowercase, string.ascii_uppercase)
    kind = next((kind for kind in kinds if character in kind), character)
    return kind[(kind.index(character) + 1) % len(kind)]
