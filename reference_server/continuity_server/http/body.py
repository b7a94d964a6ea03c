"""Request bodies: bytes in, checked JSON out. What both endpoints share."""

import hashlib
import json
from typing import Any, Final

from continuity_server import fast_json
from continuity_server.rules.contract import DEEPEST, MODEL_FIELDS, ContractRules
from continuity_server.rules.error import Case, Refusal, invalid

SAMPLING: Final = (
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "presence_penalty", "frequency_penalty",
    "response_format", "tool_choice", "parallel_tool_calls", "reasoning_effort", "logit_bias",
)  # fmt: skip


def parsed(raw: bytes, content_type: str, rules: ContractRules) -> dict[str, Any]:
    """Parse the body as a JSON object. ERROR-07: bad JSON and lone surrogates are `invalid_json`."""
    if not rules.is_json(content_type):
        raise Refusal(Case.NOT_JSON, f"The body is announced as {content_type}. Send JSON.", param="Content-Type")
    try:
        body = fast_json.parsed(rules.decoded(raw))
        if rules.is_too_deep(body):
            raise Refusal(Case.INVALID_JSON, f"The body is nested more than {DEEPEST} levels deep. Send a flatter one.")
    except (ValueError, RecursionError):
        raise Refusal(Case.INVALID_JSON, "The body is no valid JSON in UTF-8. Send a JSON object.") from None
    if not isinstance(body, dict):
        raise invalid("The body is no JSON object. Send one.")
    return body


def fingerprint(body: dict[str, Any], key: str | None) -> str:
    """Return a digest of the body: an Idempotency-Key belongs to one body. Without a key nobody asks for it."""
    if key is None:
        return ""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def expect(body: dict[str, Any], name: str, kind: type, default: object = None) -> Any:
    """Take a field of a body, of that type or absent (null counts as absent)."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise invalid(f"{name} has the wrong type. Leave it out, or send what the API describes.", name)
    return value


def name_of(body: dict[str, Any], name: str) -> str | None:
    """Take a field that names something: a text that is not empty, or nothing."""
    value: str | None = expect(body, name, str)
    if value == "":
        raise invalid(f"{name} is empty. Send a name, or leave it out.", name)
    return value


def model_of(body: dict[str, Any]) -> str:
    """Take the name of the model. A turn must name one, as in OpenAI's API (CONTRACT-02)."""
    model = name_of(body, "model")
    if model is None:
        raise invalid("model is missing. Send the name of a model.", "model")
    return model


def sampling(body: dict[str, Any], rules: ContractRules) -> dict[str, Any]:
    """Return the fields that are passed on to the model as they are."""
    for name in MODEL_FIELDS.keys() & body.keys():
        if not rules.model_takes(name, body[name]):
            raise invalid(f"{name} has the wrong type or is out of its bounds.", name)
    return {name: body[name] for name in SAMPLING if body.get(name) is not None}


def check_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = expect(body, "tools", list, [])
    if not all(isinstance(tool, dict) and isinstance(tool.get("type"), str) and tool["type"] for tool in tools):
        raise invalid("tools is no list of objects with a type.", "tools")
    return tools
