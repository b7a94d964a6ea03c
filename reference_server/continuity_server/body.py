"""Request bodies: bytes in, checked JSON out. It knows the shapes that both endpoints share, and refuses what cannot be meant."""

import hashlib
import json
from collections.abc import Collection
from typing import Any, Final, NoReturn

from continuity_server.borders import DEEPEST, MODEL_FIELDS, Borders
from continuity_server.derivation import TEXT_PARTS, Message
from continuity_server.errors import Case, Refusal, invalid

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
LONGEST_NAME: Final = 256
SAMPLING: Final = (
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "presence_penalty", "frequency_penalty",
    "response_format", "tool_choice", "parallel_tool_calls", "reasoning_effort", "logit_bias",
)  # fmt: skip


def parsed(raw: bytes, content_type: str, rules: Borders) -> dict[str, Any]:
    """Read the JSON object that a body is. ERROR-07: bad JSON and lone surrogates are `invalid_json`."""
    if not rules.is_json(content_type):
        raise Refusal(Case.NOT_JSON, f"The body is announced as {content_type}. Send JSON.", param="Content-Type")
    try:
        text = rules.decoded(raw)
        body = json.loads(text, parse_constant=_no_number)
        if rules.is_too_deep(body):
            raise Refusal(Case.INVALID_JSON, f"The body is nested more than {DEEPEST} levels deep. Send a flatter one.")
        if "\\u" in text:
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


def sampling(body: dict[str, Any], rules: Borders) -> dict[str, Any]:
    """Pick what is passed on to the model as it is."""
    for name in MODEL_FIELDS.keys() & body.keys():
        if not rules.is_absent(body[name]) and not rules.model_takes(name, body[name]):
            raise invalid(f"{name} has the wrong type or is out of its bounds.", name)
    return {name: body[name] for name in SAMPLING if body.get(name) is not None}


def check_message(message: object, where: str) -> Message:
    """One message of a chat, with everything that the rules rely on."""
    if not isinstance(message, dict) or not is_one_of(message.get("role"), ROLES):
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


def is_one_of(value: object, words: Collection[str]) -> bool:
    """Whether a value is one of these words. It may be of any type, a list or an object too, which no set can be asked for."""
    return isinstance(value, str) and value in words


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
    if not all(isinstance(tool, dict) and isinstance(tool.get("type"), str) and tool["type"] for tool in tools):
        raise invalid("tools is no list of objects with a type.", "tools")
    return tools
