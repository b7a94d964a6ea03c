"""Request bodies: bytes in, checked JSON out. It knows the shapes that both endpoints share, and refuses what cannot be meant."""

import hashlib
import json
from typing import Any, Final, NoReturn

from continuity_server.derivation import TEXT_PARTS, Message
from continuity_server.errors import Case, Refusal, invalid

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
LONGEST_NAME: Final = 256
SAMPLING: Final = (
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "presence_penalty", "frequency_penalty",
    "response_format", "tool_choice", "parallel_tool_calls", "reasoning_effort", "logit_bias",
)  # fmt: skip


def parsed(raw: bytes) -> dict[str, Any]:
    """Read the JSON object that a body is. ERROR-01: bad JSON and lone surrogates are `invalid_json`."""
    try:
        body = json.loads(raw, parse_constant=_no_number)
        if b"\\u" in raw:
            json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise Refusal(Case.INVALID_JSON, "The body is no valid JSON in UTF-8. Send a JSON object.") from None
    if not isinstance(body, dict):
        raise invalid("The body is no JSON object. Send one.")
    return body


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def fingerprint(body: dict[str, Any]) -> str:
    """Tell one body from another, for Idempotency-Key."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def expect(body: dict[str, Any], name: str, kind: type, default: object = None) -> Any:
    """Take a field of a body, of that type or absent (null counts as absent)."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise invalid(f"{name} has the wrong type. Leave it out, or send what the API describes.", name)
    return value


def name_of(body: dict[str, Any], name: str, default: str | None = None) -> str | None:
    """Take a field that names something: a text of 1 to 256 characters."""
    value: str | None = expect(body, name, str, default)
    if value is not None and not 0 < len(value) <= LONGEST_NAME:
        raise invalid(f"{name} is no text of 1 to {LONGEST_NAME} characters.", name)
    return value


def sampling(body: dict[str, Any]) -> dict[str, Any]:
    """Pick what is passed on to the model as it is."""
    return {name: body[name] for name in SAMPLING if body.get(name) is not None}


def check_message(message: object, where: str) -> Message:
    """One message of a chat, with everything that the rules rely on."""
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        raise invalid(f"{where} is no message with a known role.", where)
    check_content(message.get("content"), where)
    calls = message.get("tool_calls")
    if calls is not None and (not isinstance(calls, list) or not all(_is_call(call) for call in calls)):
        raise invalid(f"{where}.tool_calls is no list of function calls.", where)
    if message["role"] == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise invalid(f"{where} is a tool result without tool_call_id.", where)
    if message["role"] in {"user", "system", "developer", "tool"} and message.get("content") is None:
        raise invalid(f"{where} has no content.", where)
    return message


def check_content(content: object, where: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list) or not all(_is_part(part) for part in content):
        raise invalid(f"{where}.content is neither a text nor a list of parts.", where)


def _is_part(part: object) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return False
    return part["type"] not in TEXT_PARTS or isinstance(part.get("text"), str)


def _is_call(call: object) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str):
        return False
    function = call.get("function")
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def check_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = expect(body, "tools", list, [])
    if not all(isinstance(tool, dict) for tool in tools):
        raise invalid("tools is no list of objects.", "tools")
    return tools
