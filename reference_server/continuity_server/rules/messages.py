"""Messages of a chat: their type, their roles, and questions about a list of them. Pure; every other file of the rules may use it."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from continuity_server.rules.error import invalid

Message = dict[str, Any]
Messages = list[Message]

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
SYSTEM_ROLES: Final = frozenset({"system", "developer"})
TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
SUMMARY_NAME: Final = "summary"


def is_system(message: Message) -> bool:
    """Whether a message is a system prompt. The summary of a compressed history is not one, although it has the role."""
    return message["role"] in SYSTEM_ROLES and message.get("name") != SUMMARY_NAME


def trailing_results(messages: Sequence[Message]) -> Messages:
    """Return the tool results that a list of messages ends with."""
    start = len(messages)
    while start and messages[start - 1]["role"] == "tool":
        start -= 1
    return list(messages[start:])


def call_ids(message: Message) -> list[str]:
    """Return the ids of the tool calls in a message."""
    return [call["id"] for call in message.get("tool_calls") or []]


def open_calls(messages: Sequence[Message]) -> set[str]:
    """Return the calls since the last user message that have no result yet. An answer does not close them: results may come one by one."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "user":
            waiting.clear()
        waiting |= set(call_ids(message))
        waiting.discard(message.get("tool_call_id", ""))
    return waiting


def check_message(message: object, where: str) -> Message:
    """Check one message of a chat: everything that the rules rely on is there."""
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
    """Whether a value is one of these words. The value may be of any type, also one that cannot be looked up in a set."""
    return isinstance(value, str) and value in words


def check_content(content: object, where: str) -> None:
    """Check the content of a message: a text, a list of parts, or nothing."""
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
