"""MIGRATE: what the rows of an old database mean. Pure: rows and JSON in, sessions and histories out.

The old schema is `conversations(name PRIMARY KEY, response_id)` and `responses(response_id PRIMARY KEY, data, accessed_at)`; `data` is JSON with
`session_id`, and maybe `conversation_history` and `response`.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from continuity_server.rules.echo import is_id
from continuity_server.rules.error import Refusal
from continuity_server.rules.messages import Message, Messages, check_message

_OLD_MODEL: Final = "unknown"


class MigrateRules:
    """The rules about old databases, and about programs that still write the old schema."""

    def is_old(self, columns: Collection[str]) -> bool:
        """MIGRATE-01, -02: a table of the old schema has no owner; one that has is left as it is."""
        return bool(columns) and "owner" not in columns

    def row_data(self, data: object) -> Mapping[str, Any] | None:
        """MIGRATE-09: the JSON object in a row; None if it cannot be read, which is no reason to stop."""
        try:
            value = json.loads(data) if isinstance(data, str | bytes) else None
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def legacy_session(self, data: Mapping[str, Any]) -> str | None:
        """MIGRATE-03: the session that the old row names; None if no client could send that id."""
        named = data.get("session_id")
        return named if isinstance(named, str) and is_id(named) else None

    def legacy_history(self, data: Mapping[str, Any]) -> Messages:
        """MIGRATE-03: the history in the old row, without the entries that are not messages."""
        history = data.get("conversation_history")
        return [message for message in history if _is_message(message)] if isinstance(history, list) else []

    def taken_over(self, stored: Sequence[Message], old: Sequence[Message]) -> Messages:
        """MIGRATE-03, -06: the messages that an old row adds: those that continue the stored history."""
        return list(old[len(stored) :]) if list(old[: len(stored)]) == list(stored) else []


def _is_message(message: object) -> bool:
    try:
        return bool(check_message(message, "conversation_history"))
    except Refusal:
        return False


def response_from_row(ident: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response object of a stored row. Fields that an old row lacks are filled in."""
    stored = data.get("response")
    response: dict[str, Any] = stored if isinstance(stored, dict) else {}
    output = response.get("output")
    filled = [_item(item, f"{ident}_{index}") for index, item in enumerate(output if isinstance(output, list) else [])]
    return {**_frame(), **response, "id": ident, "object": "response", "output": filled}


def _frame() -> dict[str, Any]:
    return {
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": _OLD_MODEL,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
    }


def _item(item: object, suffix: str) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return {"type": "unknown"}
    if item["type"] != "message":
        return item
    content = item.get("content")
    parts = [content] if isinstance(content, str) else content
    filled = [_part(part) for part in parts] if isinstance(parts, list) else []
    return {"id": f"msg_{suffix}", "status": "completed", **item, "role": "assistant", "content": filled}


def _part(part: object) -> dict[str, Any]:
    if isinstance(part, dict) and part.get("type") != "output_text":
        return {"type": "unknown", **part}
    text = part.get("text") if isinstance(part, dict) else part
    own = part if isinstance(part, dict) else {}
    return {"annotations": [], "logprobs": [], **own, "type": "output_text", "text": str(text or "")}
