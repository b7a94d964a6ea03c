"""What the specification says about one request: its fields, derived ids, tool pairs and summaries. Nothing here does any I/O."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any

from defects import bug

Json = dict[str, Any]
Entry = tuple[str, Json]  # The kind of a stored message ("" or "summary:COUNT:HASH"), and the message in chat form.
SYSTEM = ("system", "developer")
TEXT_PARTS = {"text", "input_text", "output_text"}
PREFIX = "Summary of the earlier conversation:\n"


class Refusal(Exception):
    """An error that the client is told about."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}
        kind = {401: "authentication_error", 404: "not_found_error", 429: "server_error"}.get(status, "invalid_request_error")
        self.body: Json = {"error": {"message": message, "type": "server_error" if status >= 500 else kind, "param": param, "code": code}}


def parse(raw: bytes) -> Json:
    """The body, if it can be written as JSON again: UTF-8, no lone surrogates, no NaN, not nested too deeply."""
    try:
        body: Json = json.loads(raw.decode("utf-8"))
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
        level, depth = [body], 0
        while level and depth < 200:
            level, depth = [x for v in level if isinstance(v, (dict, list)) for x in (v.values() if isinstance(v, dict) else v)], depth + 1
    except (ValueError, RecursionError):
        raise Refusal(400, "invalid_json", "The body is not JSON in UTF-8.") from None
    if level or not isinstance(body, dict):
        raise Refusal(400, "invalid_json", "The body is not an object, or is nested too deeply.")
    return body


# Shapes of fields

def fits(value: Any, shape: Any) -> bool:
    """A shape is a type, a set of constants, [shape], {field: shape} ("field?" may be absent), alternatives (a tuple) or a function."""
    if isinstance(shape, tuple):
        return any(fits(value, one) for one in shape)
    if isinstance(shape, type):
        return isinstance(value, shape)
    if isinstance(shape, set):
        return isinstance(value, str) and value in shape
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(one, shape[0]) for one in value)
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(name[-1] == "?" and value.get(name[:-1]) is None or fits(value.get(name.rstrip("?")), one)
                                               for name, one in shape.items())
    return bool(shape(value))


def text(longest: float = math.inf, least: int = 1) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, str) and least <= len(v.encode() if bug("slug-limit-bytes") and longest == 256 else v) <= longest


def number(low: float, high: float, whole: bool = False) -> Callable[[Any], bool]:
    return lambda v: not isinstance(v, bool) and isinstance(v, (int, float)) and low <= v <= high and (not whole or v == v // 1)


CONTENT = (str, [({"type": TEXT_PARTS, "text": str}, {"type": lambda v: isinstance(v, str) and v not in TEXT_PARTS})])
RESULT = {"role": {"tool"}, "tool_call_id": str, "content": CONTENT}
MESSAGE = ({"role": {*SYSTEM, "user"}, "content": CONTENT}, RESULT, {"role": {"assistant"}, "content?": CONTENT, "tool_calls?": [
    {"id": str, "function": {"name": str, "arguments": str}}]})
ITEM = ({"type?": {"message"}, "role": {*SYSTEM, "user", "assistant"}, "content": CONTENT},
        {"type": {"function_call_output"}, "call_id": str, "output": CONTENT},
        {"type": {"function_call"}, "call_id": str, "name": str, "arguments": str})
COMMON: Json = {"model": text(), "stream?": bool, "parallel_tool_calls?": bool, "tool_choice?": (str, dict), "user?": str,
                "temperature?": number(0, 2), "top_p?": number(0, 1), "tools?": [{"type": text()}],
                "metadata?": lambda v: isinstance(v, dict) and fits([*v.values()], [text(512, 0)])}
COUNT = number(1, math.inf, True)
CHAT = COMMON | {"messages": [MESSAGE], "max_tokens?": COUNT, "max_completion_tokens?": COUNT, "n?": number(1, 128, True),
                 "seed?": number(-math.inf, math.inf, True), "stop?": (str, lambda v: fits(v, [str]) and len(v) <= 4),
                 "stream_options?": {"include_usage?": bool}}
RESPONSES = COMMON | {"input": (text(), [ITEM]), "max_output_tokens?": COUNT, "instructions?": str, "store?": bool,
                      "previous_response_id?": text(), "conversation?": (text(256), {"id": text(256)})}


def check(body: Json, shapes: Json) -> None:
    for field, shape in shapes.items():
        if not fits(body, {field: shape}):
            raise Refusal(400, "invalid_request", f"{field.rstrip('?')} is missing or malformed.", field.rstrip("?"))
    items = body["messages"] if shapes is CHAT else body["input"]
    roles = {item.get("role", item.get("type")) for item in items} if isinstance(items, list) else {"user"}
    if not (roles & {"user", "function_call_output"} or shapes is CHAT and roles == {"tool"}):
        raise Refusal(400, "invalid_request", "There is neither a user message nor a tool result.", "messages" if shapes is CHAT else "input")
    if body.get("conversation") is not None and body.get("previous_response_id") is not None and shapes is RESPONSES:
        raise Refusal(400, "mutually_exclusive_parameters", "Send conversation or previous_response_id.", "previous_response_id")


def session_id(values: list[str]) -> str | None:
    """The value of the continuity header, from the list of all its occurrences."""
    value = values[0].strip(" \t") if values else ""
    if len(values) > 1 or value and not re.fullmatch(r"[!-~]{1,256}", value):
        raise Refusal(400, "invalid_session_id", "The session id is malformed, too long or repeated.", "X-Hermes-Session-Id")
    return value or None


def numeric(text: str) -> str:
    """Only for the defect slug-numeric-affinity: what a column without a type makes of a text."""
    if re.fullmatch(r" *[+-]?[0-9]{1,18} *", text):
        return str(int(text))
    if re.fullmatch(r" *[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]{1,2})? *", text):
        value = float(text)
        return str(int(value)) if abs(value) < 1 << 53 and value == int(value) else repr(value)
    return text


# Messages

def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(p["text"] for p in content if p["type"] in TEXT_PARTS and p["text"])
    return content or ""


def derive(messages: list[Json], version: str) -> str:
    first = next((i for i, m in enumerate(messages) if m["role"] == "user"), len(messages))
    user = text_of(messages[first]["content"]) if first < len(messages) else ""
    if version == "content-v1":
        system = "\n".join(text_of(m["content"]) for m in messages if m["role"] == "system")
        return "api-" + hashlib.sha256(f"{system}\n{user}".encode()).hexdigest()[:16]
    system = "\n".join(text_of(m["content"]) for m in messages[:first] if m["role"] in SYSTEM)
    opening = json.dumps([system, user], ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029" if bug("derive-html-escape") else "":
        opening = opening.replace(letter, f"\\u{ord(letter):04x}")
    return "api2-" + hashlib.sha256(opening.encode()).hexdigest()[:32]


def new_input(messages: list[Json]) -> int:
    """Where the new input begins: at the tool results that the messages end with, or else at the last user message."""
    start = len(messages)
    while start and messages[start - 1]["role"] == "tool":
        start -= 1
    return start if start < len(messages) else max((i for i, m in enumerate(messages) if m["role"] == "user"), default=start)


def chat_input(body: Json) -> tuple[list[Json], list[Json]]:
    """The system prompt and the new input of a chat body that names its session."""
    messages, start = body["messages"], new_input(body["messages"])
    return [m for m in messages if m["role"] in SYSTEM], messages[start:] if messages[-1]["role"] == "tool" else [messages[start]]


def response_input(body: Json) -> tuple[list[Json], list[Json]]:
    """The system prompt and the new input of POST /v1/responses, in chat form."""
    def chat(content: Any) -> Any:
        return content if isinstance(content, str) else [
            {"type": "text", "text": p["text"]} if p["type"] in TEXT_PARTS
            else {"type": "image_url", "image_url": {"url": p.get("image_url")}} if p["type"] == "input_image" else p for p in content]

    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    systems: list[Json] = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    new: list[Json] = []
    for item in items:
        if item.get("type") == "function_call_output":
            new.append({"role": "tool", "tool_call_id": item["call_id"], "content": chat(item["output"])})
        elif item.get("type") == "function_call":
            if not new or new[-1]["role"] != "assistant":
                new.append({"role": "assistant", "content": None})
            new[-1].setdefault("tool_calls", []).append(
                {"id": item["call_id"], "type": "function", "function": {"name": item["name"], "arguments": item["arguments"]}})
        else:
            (systems if item["role"] in SYSTEM else new).append({"role": item["role"], "content": chat(item["content"])})
    return systems, new


def scan(messages: list[Json]) -> tuple[dict[tuple[int, str], Json], list[int], dict[str, int]]:
    """The result of each call, the places of results that answer no open call, and the calls that are open at the end."""
    waiting: dict[str, int] = {}
    results: dict[tuple[int, str], Json] = {}
    orphans: list[int] = []
    for i, m in enumerate(messages):
        if m["role"] == "user":
            waiting.clear()
        elif m["role"] == "assistant":
            if bug("assistant-closes-calls"):
                waiting = {}
            waiting |= {call["id"]: i for call in m.get("tool_calls") or []}
        elif m["role"] == "tool" and m["tool_call_id"] not in waiting:
            orphans.append(i)
        elif m["role"] == "tool":
            at = waiting.pop(m["tool_call_id"])
            results[0 if bug("results-by-call-id") else at, m["tool_call_id"]] = m
    return results, orphans, waiting


def pair(messages: list[Json]) -> list[Json]:
    """The messages with each call followed by its results, or a placeholder, and without results that have no call."""
    results, view = scan(messages)[0], []
    for i, m in enumerate(messages):
        view += [m] if m["role"] != "tool" else []
        for call in m.get("tool_calls") or [] if m["role"] == "assistant" else []:
            none = {"role": "tool", "tool_call_id": call["id"], "content": "(The client returned no result.)"}
            view.append(results.get((0 if bug("results-by-call-id") else i, call["id"]), none))
    return view


# Compression

def fold(digest: str, m: Json) -> str:
    """Adds a message to a hash of the messages before it."""
    content = m.get("content")
    bare = content if isinstance(content, list) and any(p["type"] not in TEXT_PARTS for p in content) else text_of(content)
    calls = [[c["id"], c["function"]["name"], c["function"]["arguments"]] for c in m.get("tool_calls") or []]
    return hashlib.sha256(json.dumps([digest, m["role"], bare, calls, m.get("tool_call_id")], sort_keys=True).encode()).hexdigest()


def compress(entries: list[Entry]) -> list[Entry]:
    """Stored system prompts, a summary, and an open tool call with what follows it. The same list if there is nothing to sum up."""
    systems = [e for e in entries if not e[0] and e[1]["role"] in SYSTEM]
    rest = [e for e in entries if e[0] or e[1]["role"] not in SYSTEM]
    opened = {} if bug("compress-cuts-open-call") else scan([m for _, m in rest])[2]
    cut = min(opened.values(), default=len(rest))
    if all(kind for kind, _ in rest[:cut]):
        return entries
    count, digest, lines = 0, "", []
    for kind, m in rest[:cut]:
        if kind:
            count, digest = int(kind.split(":")[1]), kind.split(":")[2]
            lines += [] if bug("summary-of-summary-lost") else [m["content"].removeprefix(PREFIX)]
        else:
            count, digest = count + 1, fold(digest, m)
            lines.append(f"{m['role']}: {text_of(m.get('content'))[:80]}")
    return [*systems, (f"summary:{count}:{digest}", {"role": "system", "content": PREFIX + "\n".join(lines)[-8000:]}), *rest[cut:]]


def rebase(messages: list[Json], stored: list[Entry]) -> list[Entry]:
    """The body of a derived turn. Where it begins with messages that the stored summary stands for, the summary replaces them."""
    plain = [m for m in messages if m["role"] not in SYSTEM]
    for summary in stored:
        if summary[0]:
            count, digest = int(summary[0].split(":")[1]), ""
            for m in plain[:count]:
                digest = fold(digest, m)
            if len(plain) > count and digest == summary[0].split(":")[2]:
                return [*(("", m) for m in messages if m["role"] in SYSTEM), summary, *(("", m) for m in plain[count:])]
    return [("", m) for m in messages]
