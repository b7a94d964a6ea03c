"""Requests: how a step of a scenario becomes HTTP."""

import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from continuity_conformance.credentials import standing_fields
from continuity_conformance.failure import Untested
from continuity_conformance.names import Names
from continuity_conformance.profile import DEFAULT_SESSIONS
from continuity_conformance.stage import Stage
from continuity_conformance.transport import Request
from continuity_spec import Step
from continuity_spec.needs import calls_client

CLIENT_TOOL: Final = "kit_lookup"
_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": CLIENT_TOOL,
            "description": "Look a word up on the client's side.",
            "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
        },
    }
]
_PATHS: Final[Mapping[str, str]] = {"chat": "/v1/chat/completions", "respond": "/v1/responses"}
WRONG_KEY: Final = f"wrong-{secrets.token_hex(16)}"
CONVERSATION_KINDS: Final[Mapping[str, str]] = {"conversation": "slug", "previous_response_id": "response"}


def turn_request(stage: Stage, names: Names, step: Step, content: Mapping[str, object]) -> Request:
    """The request of a chat or respond step; `content` is its messages or input."""
    params: Mapping[str, Any] = step.params
    principal = principal_of(step)
    body: dict[str, object] = {"model": stage.target.profile.model, **content, "stream": bool(params.get("stream"))}
    for field, kind in CONVERSATION_KINDS.items():
        if field in params:
            body[field] = names.fill(params[field], kind, principal)
    if step.verb == "respond":
        body["store"] = params.get("store", True)
    if calls_client(params.get("model")):
        body["tools"] = _TOOLS
    session = _session_fields(stage, names, step)
    if stage.target.profile.body and len(session) > 1:
        raise Untested("the target takes the session from the body, where it cannot stand twice")
    if stage.target.profile.body and session:
        body[stage.target.profile.body] = session[0][1]
        session = []
    body.update(names.fill(params.get("with", {})))  # type: ignore[call-overload]
    headers = [*base_headers(stage, principal), *session, *_extra(names, params)]
    if "idempotency_key" in params:
        headers.append(("Idempotency-Key", names.text(params["idempotency_key"], "key", principal)))
    url = _address(stage, step) + _PATHS[step.verb]
    return Request("POST", url, tuple(headers), body, hang_up=bool(params.get("hang_up")))


def plain_request(stage: Stage, names: Names, step: Step) -> Request:
    """The request of a get, delete or request step."""
    params: Mapping[str, Any] = step.params
    principal = principal_of(step)
    if "response" in params:
        path = f"/v1/responses/{quote(names.text(params['response'], 'response', principal), safe='')}"
    elif "session" in params:
        path = f"{DEFAULT_SESSIONS}/{quote(names.text(params['session'], 'session', principal), safe='')}"
    else:
        path = names.text(params["path"])
    method = params.get("method", step.verb.upper())
    headers = (*base_headers(stage, principal), *_extra(names, params))
    path = stage.target.profile.path(path)
    return Request(method, _address(stage, step) + path, headers, names.fill(params.get("body")))


def new_slug_request(stage: Stage, principal: str) -> Request:
    """What makes a slug, for a target that takes only those that were made."""
    return Request("POST", f"{stage.server.url}/v1/conversations", tuple(base_headers(stage, principal)), {})


def _address(stage: Stage, step: Step) -> str:
    number: Any = step.params.get("server", 1)
    return stage.server.url_of(number)


def principal_of(step: Step) -> str:
    return str(step.params.get("as", "alice"))


def base_headers(stage: Stage, principal: str) -> list[tuple[str, str]]:
    """What every request of a principal carries."""
    profile = stage.target.profile
    key = WRONG_KEY if principal == "stranger" else profile.principals.get(principal, "")
    return standing_fields(profile, key)


def _session_fields(stage: Stage, names: Names, step: Step) -> list[tuple[str, str]]:
    session = step.params.get("session", [])
    values = session if isinstance(session, list | tuple) else [session]
    return [(stage.target.header, names.text(value, "session", principal_of(step))) for value in values]


def _extra(names: Names, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    filled: Any = names.fill(params.get("headers", {}))
    return [(str(name), str(value)) for name, value in filled.items()]
