"""Checks of ERROR: bodies that YAML steps cannot express, and a server without keys."""

from collections.abc import Mapping
from typing import Final

from continuity_conformance.checks.registry import a_known_limit, a_server_without_keys, check, costly, on
from continuity_conformance.checks.support.server_without_keys import without_a_key
from continuity_conformance.core.failure import Inapplicable
from continuity_conformance.scenario.dialogue import Dialogue

_JSON: Final[Mapping[str, str]] = {"Content-Type": "application/json"}
_NOBODY: Final[Mapping[str, str]] = {"as": "nobody"}


@check
async def bad_json(dialogue: Dialogue) -> None:
    """ERROR-06: a body that is not JSON, or has lone surrogates in it, is refused."""
    path = await _first_turn(dialogue)
    refused = _error([400, 422], "invalid_request_error", "invalid_json")
    for body in (b'{"messages": [', b"", b'{"messages": "\xff"}', b'{"model": "\\ud800", "messages": []}'):
        await dialogue.do("request", refused, method="POST", path=path, headers=_JSON, body=body)
    await _second_turn(dialogue)


@on(a_known_limit)
@check
async def body_too_large(dialogue: Dialogue) -> None:
    """ERROR-10: a body that is one byte over the limit in the profile is refused."""
    largest = dialogue.context.target.profile.limits.body
    body = b'{"messages": "' + b" " * (largest - 15) + b'"}'
    path = await _first_turn(dialogue)
    refused = _error(413, "invalid_request_error", "request_too_large")
    await dialogue.do("request", refused, method="POST", path=path, headers=_JSON, body=body)
    await _second_turn(dialogue)


async def _first_turn(dialogue: Dialogue) -> str:
    """Begin a conversation on an endpoint that keeps them, and return its path."""
    if "chat" in dialogue.context.target.offers:
        await dialogue.do("chat", {"session": "$id", "sees": ["red"]}, session="$id", say="red")
        return "/v1/chat/completions"
    await dialogue.do("respond", {"response": "$first", "sees": ["red"]}, say="red")
    return "/v1/responses"


async def _second_turn(dialogue: Dialogue) -> None:
    """Continue the conversation: nothing between the two turns is part of it."""
    if "chat" in dialogue.context.target.offers:
        await dialogue.do("chat", {"session": "$id", "sees": ["red", "blue"]}, session="$id", say="blue")
    else:
        await dialogue.do("respond", {"sees": ["red", "blue"]}, previous_response_id="$first", say="blue")


@on(a_server_without_keys)
@costly
@check
async def forbidden_without_keys(dialogue: Dialogue) -> None:
    """ERROR-14: a server without keys answers that a key is needed to continue a session."""
    async with without_a_key(dialogue):
        verb, continued = await _begun_without_key(dialogue)
        refused = _error(403, "permission_error", "session_requires_key")
        await dialogue.do(verb, refused, **_NOBODY, **continued, say="blue")
        await dialogue.do(verb, {"sees": ["green"]}, **_NOBODY, say="green")


async def _begun_without_key(dialogue: Dialogue) -> tuple[str, dict[str, object]]:
    """Begin a conversation; return the verb, and what continues it: the session id, or the response id where the target reveals no session."""
    target = dialogue.context.target
    if target.options["tells"] != "nothing":
        await dialogue.do("chat", {"session": "$told", "sees": ["red"]}, **_NOBODY, say="red")
        return "chat", {"session": "$told"}
    if "responses" not in target.offers:
        raise Inapplicable("the target does not reveal the session that the client would continue")
    await dialogue.do("respond", {"response": "$first", "sees": ["red"]}, **_NOBODY, say="red")
    return "respond", {"previous_response_id": "$first"}


def _error(status: int | list[int], kind: str, code: str) -> dict[str, object]:
    return {"status": status, "body": {"error": {"type": kind, "code": code}}}
