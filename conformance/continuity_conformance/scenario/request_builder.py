"""Builds the HTTP request of a step."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from continuity_conformance.core.failure import Untested
from continuity_conformance.http.messages import Request
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.unissued import unissued
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.target.profile import CHAT_PATH, CONVERSATIONS_PATH, DEFAULT_SESSIONS, RESPONSES_PATH
from continuity_spec import Step
from continuity_spec.model import calls_client

CLIENT_TOOL: Final = "kit_lookup"
_FUNCTION: Final = {
    "name": CLIENT_TOOL,
    "description": "Look a word up on the client's side.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
}
_TOOLS: Final[Mapping[str, object]] = {
    "chat": [{"type": "function", "function": _FUNCTION}],
    "respond": [{"type": "function", **_FUNCTION}],
}
_PATHS: Final[Mapping[str, str]] = {"chat": CHAT_PATH, "respond": RESPONSES_PATH}
WRONG_KEY: Final = f"wrong-{secrets.token_hex(16)}"
NOT_SENT: Final = "absent"
"""The value of `store` that leaves the field out."""
_SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "": str,
    "lower": str.lower,
    "upper": str.upper,
    "swapped": str.swapcase,
}
"""How a step wants the name of the continuity header written."""
CONVERSATION_KINDS: Final[Mapping[str, str]] = {"conversation": "slug", "previous_response_id": "response"}


def turn_request(context: Context, variables: Variables, step: Step, content: Mapping[str, object]) -> Request:
    """The request of a chat or respond step; `content` is its messages or input."""
    params: Mapping[str, Any] = step.params
    principal = principal_of(step)
    body: dict[str, object] = {"model": context.target.profile.model, **content, "stream": bool(params.get("stream"))}
    if "conversation" in params:
        body["conversation"] = variables.fill(params["conversation"], "slug", principal)
    if "previous_response_id" in params:
        body["previous_response_id"] = _response_id(variables, params["previous_response_id"], principal)
    if step.verb == "respond" and params.get("store") != NOT_SENT:
        body["store"] = params.get("store", True)
    if calls_client(params.get("model")):
        body["tools"] = _TOOLS[step.verb]
    session = _session_fields(context, variables, step)
    if context.target.profile.body and len(session) > 1:
        raise Untested("the target reads the session from the body, which cannot contain it twice")
    if context.target.profile.body and session:
        body[context.target.profile.body] = session[0][1]
        session = []
    body.update(variables.fill(params.get("with", {})))  # type: ignore[call-overload]
    body = context.target.profile.turn_body(body)
    headers = [*base_headers(context, principal), *session, *_extra(variables, params)]
    if "idempotency_key" in params:
        headers.append(("Idempotency-Key", variables.text(params["idempotency_key"], "key", principal)))
    url = _address(context, step) + _PATHS[step.verb]
    request = Request("POST", url, tuple(headers), body, hang_up=bool(params.get("hang_up")))
    return _announced_as(request, params["content_type"]) if "content_type" in params else request


def _announced_as(request: Request, content_type: str) -> Request:
    """For a Python check: the same bytes with another content type, or with none if it is empty."""
    field = (("Content-Type", content_type),) if content_type else ()
    return replace(request, headers=(*request.headers, *field), body=request.data)


def plain_request(context: Context, variables: Variables, step: Step) -> Request:
    """The request of a get, delete or request step."""
    params: Mapping[str, Any] = step.params
    principal = principal_of(step)
    if "response" in params:
        path = f"/v1/responses/{quote(_response_id(variables, params['response'], principal), safe='')}"
    elif "session" in params:
        path = f"{DEFAULT_SESSIONS}/{quote(variables.text(params['session'], 'session', principal), safe='')}"
    else:
        path = variables.text(params["path"])
    method = params.get("method", step.verb.upper())
    headers = (*base_headers(context, principal), *_extra(variables, params))
    profile = context.target.profile
    body = profile.body_of(method, path, variables.fill(params.get("body")))
    return Request(method, _address(context, step) + profile.path(path), headers, body)


def _response_id(variables: Variables, value: object, principal: str) -> str:
    """The id of a response, or with `{like: $r}` one of the form of `$r` that nobody was given."""
    if isinstance(value, Mapping):
        return unissued(variables.text(value["like"], "response", principal))
    return variables.text(value, "response", principal)


def new_slug_request(context: Context, principal: str) -> Request:
    """The request that creates a slug, for a target that accepts only slugs it created."""
    body = context.target.profile.new_conversation()
    url = f"{context.server.url}{CONVERSATIONS_PATH}"
    return Request("POST", url, tuple(base_headers(context, principal)), body)


def _address(context: Context, step: Step) -> str:
    number: Any = step.params.get("server", 1)
    return context.server.url_of(number)


def principal_of(step: Step) -> str:
    return str(step.params.get("as", "alice"))


def base_headers(context: Context, principal: str) -> list[tuple[str, str]]:
    """The header fields of every request of a principal."""
    profile = context.target.profile
    return profile.request_headers(WRONG_KEY) if principal == "stranger" else profile.headers_of(principal)


def _session_fields(context: Context, variables: Variables, step: Step) -> list[tuple[str, str]]:
    session = step.params.get("session", [])
    values = session if isinstance(session, list | tuple) else [session]
    name = _SPELLINGS[str(step.params.get("spell_header", ""))](context.target.header)
    return [(name, variables.text(value, "session", principal_of(step))) for value in values]


def _extra(variables: Variables, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    filled: Any = variables.fill(params.get("headers", {}))
    return [(str(name), str(value)) for name, value in filled.items()]
