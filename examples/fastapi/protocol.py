"""What a request says: is it well formed, which session does it name, and what does it add? No I/O here."""
import json
import secrets
from dataclasses import dataclass, field

SYSTEM_ROLES = ("system", "developer")
TEXT_TYPES = ("text", "input_text", "output_text")
MESSAGE_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
SAMPLING_FIELDS = ("temperature", "top_p", "seed", "stop", "max_tokens", "max_completion_tokens", "max_output_tokens")
# The types of the fields that this server reads itself. The model judges its own.
FIELD_TYPES = {"model": str, "messages": list, "input": (str, list), "instructions": str, "stream": bool,
               "store": bool, "tools": list, "metadata": dict, "conversation": (str, dict), "previous_response_id": str}


class ApiError(Exception):
    """A refusal or failure that the client sees as an OpenAI error object (section 4.13)."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None):
        kinds = {401: "authentication_error", 404: "not_found_error"}
        kind = kinds.get(status, "server_error" if status >= 429 else "invalid_request_error")
        self.status = status
        self.error = {"message": message, "type": kind, "param": param, "code": code}


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(16)  # 128 random bits (ISOLATE-08)


@dataclass
class Turn:
    """One request: which session it names, and what it adds to the history."""
    principal: str
    body: dict
    header: str | None             # the session id that the client sent
    system: list[dict]             # the system prompt of this turn, which is not stored
    new: list[dict]                # what this turn adds to the history, besides the answer
    slug: str | None = None
    previous: str | None = None
    store: bool = True             # on /v1/responses; what OpenAI calls `store` on chat is something else
    own_id: str = field(default_factory=lambda: new_id("sess_"))  # if it starts a session without a name


def parse(raw: bytes) -> dict:
    """The JSON object of a body. Lone surrogates and NaN do not survive the encoding, so they are refused here."""
    try:
        body = json.loads(raw.decode("utf-8"))
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise ApiError(400, "invalid_json", "The body is not JSON in UTF-8.") from None
    check(isinstance(body, dict), None)
    body = {name: value for name, value in body.items() if value is not None}  # null counts as absent (chapter 2)
    for name, types in FIELD_TYPES.items():
        check(name not in body or isinstance(body[name], types), name)
    return body


def check(valid: bool, param: str | None):
    if not valid:
        raise ApiError(400, "invalid_request", f"{param or 'The body'} is missing or malformed.", param)


def read_messages(items: list, param: str, *roles: str) -> list[dict]:
    """Checks messages and writes them as chat does, since both endpoints share one history (HISTORY-13)."""
    for item in items:
        check(isinstance(item, dict) and item.get("role") in roles, param)
        content = item.get("content")
        if isinstance(content, list):
            check(all(isinstance(part, dict) and isinstance(part.get("type"), str) and
                      (part["type"] not in TEXT_TYPES or isinstance(part.get("text"), str)) for part in content), param)
            item["content"] = [{**part, "type": "text"} if part["type"] in TEXT_TYPES else part for part in content]
        else:  # an assistant that only called tools has no content
            check(isinstance(content, str) or content is None and item["role"] == "assistant", param)
    check(any(item["role"] == "user" for item in items), param)
    return [{name: item[name] for name in MESSAGE_FIELDS if name in item} for item in items]


def chat_turn(principal: str, header: str | None, body: dict) -> Turn:
    messages = read_messages(body.get("messages", []), "messages", *SYSTEM_ROLES, "user", "assistant", "tool")
    if header is None:  # a session of its own, which begins with the whole body (4.3, DERIVE-15, DERIVE-16)
        return Turn(principal, body, None, [], messages)
    if messages[-1]["role"] == "tool":  # this server passes no tools on, so there is no open call (4.6)
        raise ApiError(400, "tool_call_not_found", "The results answer no open tool call.", "messages")
    system = [message for message in messages if message["role"] in SYSTEM_ROLES]
    new = [message for message in messages if message["role"] == "user"][-1:]  # all else is old (HISTORY-01)
    return Turn(principal, body, header, system, new)


def response_turn(principal: str, header: str | None, body: dict) -> Turn:
    slug, previous, items = body.get("conversation"), body.get("previous_response_id"), body.get("input", [])
    if slug is not None and previous is not None:  # SLUG-08
        raise ApiError(400, "mutually_exclusive_parameters", "Send one of the two.", "previous_response_id")
    slug = slug.get("id") or "" if isinstance(slug, dict) else slug  # an object without id is not as good as none
    check(slug is None or isinstance(slug, str) and 1 <= len(slug) <= 256, "conversation")  # SLUG-14
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    messages = read_messages(items, "input", *SYSTEM_ROLES, "user", "assistant")
    system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    system += [message for message in messages if message["role"] in SYSTEM_ROLES]
    new = [message for message in messages if message["role"] not in SYSTEM_ROLES]
    return Turn(principal, body, header, system, new, slug, previous, body.get("store", True))


def model_request(turn: Turn, history: list[dict]) -> dict:
    """What the model gets (4.7). A system prompt replaces a stored one, for this turn."""
    if turn.system:
        history = [message for message in history if message["role"] not in SYSTEM_ROLES]
    # On chat, max_output_tokens is max_tokens.
    sampling = {name.replace("output_", ""): turn.body[name] for name in SAMPLING_FIELDS if name in turn.body}
    return {"model": turn.body["model"], "messages": [*turn.system, *history, *turn.new],
            "stream": turn.body.get("stream", False), **sampling}
