"""MIGRATE: what a database from before means. Pure: rows and JSON in, sessions and histories out.

The old schema is `conversations(name PRIMARY KEY, response_id)` and `responses(response_id PRIMARY KEY, data, accessed_at)`; `data` is JSON with
`session_id`, and maybe `conversation_history` and `response`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from continuity_server.rules.echo import is_id
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Message, Messages, check_message

R = TypeVar("R")
_OLD_MODEL: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a process uses the database beside others, and how long its start waits for one that has it locked."""

    exclusive: bool = False
    seconds: float = 60.0


class MigrateRules:
    """The rules about old databases, and about writers of the old shape."""

    def sharing(self) -> Sharing:
        """MIGRATE-07: processes that start on one database at once wait for each other, and all come up."""
        return Sharing()

    def is_old(self, columns: Collection[str]) -> bool:
        """MIGRATE-01, -02: a table of the old schema has no owner; one that has is left as it is."""
        return bool(columns) and "owner" not in columns

    def transactions(self, steps: Sequence[R]) -> Iterable[Sequence[R]]:
        """MIGRATE-08: all steps of an upgrade are one transaction, so that a kill leaves the old database or the new one."""
        return [steps]

    def kept(self, rows: Iterable[R]) -> Iterable[R]:
        """MIGRATE-01: every row is kept."""
        return rows

    def old_writers_owner(self, first: str) -> str | None:
        """MIGRATE-06: what a writer of the old shape writes belongs to the first principal, by default of the column."""
        return first

    def legacy_session(self, data: Mapping[str, Any]) -> str | None:
        """MIGRATE-03: the session that the old row names; none where it is no id that a client could send."""
        named = data.get("session_id")
        return named if isinstance(named, str) and is_id(named) else None

    def legacy_history(self, data: Mapping[str, Any]) -> Messages:
        """MIGRATE-03: the history that the old row carries; what is no message is left out."""
        said = data.get("conversation_history")
        return [message for message in said if _is_message(message)] if isinstance(said, list) else []

    def unreadable_row(self) -> str:
        """MIGRATE-09: an old row that cannot be read stays as it is, in no session, which is the empty name here."""
        return ""

    def taken_over(self, stored: Sequence[Message], old: Sequence[Message]) -> Messages:
        """MIGRATE-03, -06: the session's own history counts; an old row adds only what goes on from it."""
        return list(old[len(stored) :]) if list(old[: len(stored)]) == list(stored) else []

    def orphan(self) -> None:
        """MIGRATE-04: an old slug whose response is gone is 404: its session is unknown, and a fork would look like amnesia."""
        message = "The response that this conversation last named is gone, and its session with it. Start another conversation."
        raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, message, param="conversation")

    def slug_session(self, session: str, *, old: bool) -> str | None:  # noqa: ARG002 - the rule is that old slugs are no exception
        """MIGRATE-05: after a turn the slug keeps its session itself."""
        return session


def _is_message(message: object) -> bool:
    try:
        return bool(check_message(message, "conversation_history"))
    except Refusal:
        return False


def shown(ident: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Give the response object of a stored row; what an old row lacks is filled in."""
    said = data.get("response")
    response: dict[str, Any] = said if isinstance(said, dict) else {}
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
