"""Marks: short random tags in texts. They identify a turn in the messages that a model receives.

A user text of the kit carries `[u:7f3a9b21]`, a system prompt `[s:7f3a9b21]`, an answer of the model `[a:7f3a9b21#17]` (the newest user
mark and the number of the model call), a summary `[sum#18]`. A model without a readable log can write inside the bracket what it saw:
`[a:7f3a9b21#17 saw u:7f3a9b21]`, `[sum#18 covers u:7f3a9b21]`. A bracket is one mark: marks inside it do not count on their own.
"""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

_OF_TURNS: Final = frozenset({"user", "answer", "summary"})
Messages = Sequence[Mapping[str, object]]

Kind = Literal["user", "answer", "system", "summary", "text", "call", "result"]

_BRACKET = re.compile(
    r"\[(?:u:(?P<user>[0-9a-f]{8})|s:(?P<system>[0-9a-f]{8})"
    r"|a:(?P<answer>[0-9a-f]{8}|-)#(?P<call>\d+)(?: saw (?P<saw>[^\]]*))?"
    r"|sum#(?P<summary>\d+)(?: covers (?P<covers>[^\]]*))?)\]"
)
_TOKEN = re.compile(
    r"(?:u:(?P<user>[0-9a-f]{8})|s:(?P<system>[0-9a-f]{8})|a:(?P<answer>[0-9a-f]{8}|-)#(?P<call>\d+)"
    r"|sum#(?P<summary>\d+)(?:\((?P<covers>[^)]*)\))?)(?:@(?P<role>\w+))?"
)
_USUAL_ROLE: Mapping[Kind, str] = {"user": "user", "answer": "assistant", "system": "system", "summary": "user"}


@dataclass(frozen=True, slots=True)
class Sighting:
    """One item in the messages that a model received: a mark, a text without a mark, a tool call, or a tool result."""

    kind: Kind
    role: str
    mark: str = ""
    call: int = 0
    covers: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class AnswerMark:
    """The content of an answer's mark: the turn it answers, the number of the model call and, if present, what the model saw."""

    mark: str
    call: int
    saw: str | None


def new_mark() -> str:
    return secrets.token_hex(4)


def user_text(mark: str, words: str) -> str:
    return f"[u:{mark}] {words}"


def system_text(mark: str, words: str) -> str:
    return f"[s:{mark}] {words}"


def answer_text(mark: str, call: int) -> str:
    return f"Noted. [a:{mark}#{call}]"


def summary_text(call: int) -> str:
    return f"What was said so far. [sum#{call}]"


def content_text(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def answer_mark(text: str, expected: str = "") -> AnswerMark | None:
    """The answer mark in a text. If there are several: the one that answers `expected`, else the last one."""
    answers = [
        AnswerMark(match["answer"], int(match["call"]), match["saw"])
        for match in _BRACKET.finditer(text)
        if match["answer"]
    ]
    return next((each for each in answers if each.mark == expected), answers[-1] if answers else None)


def marks_in(messages: Sequence[Mapping[str, object]]) -> list[Sighting]:
    return [sighting for message in messages for sighting in _in_message(message)]


def turn_marks(messages: Messages) -> list[Sighting]:
    """The marks of turns, answers and summaries."""
    return [seen for seen in marks_in(messages) if seen.kind in _OF_TURNS]


def newest_user_mark(messages: Sequence[Mapping[str, object]]) -> str:
    users = [sighting.mark for sighting in marks_in(messages) if sighting.kind == "user" and sighting.role == "user"]
    return users[-1] if users else "-"


def saw_list(saw: str) -> list[Sighting]:
    """Parse a `saw` list. An unknown word becomes a text sighting, so that it is not lost."""
    return [_from_token(token) for token in saw.split()]


def _in_message(message: Mapping[str, object]) -> Iterator[Sighting]:
    role = str(message.get("role", ""))
    text = content_text(message.get("content"))
    if role == "tool":
        yield Sighting("result", role, mark=str(message.get("tool_call_id", "")), text=text)
        return
    marks = [_from_match(match, role) for match in _BRACKET.finditer(text)]
    yield from marks
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, Sequence) else ()
    yield from (Sighting("call", role, mark=str(call.get("id", ""))) for call in calls if isinstance(call, Mapping))
    if not marks and not calls:
        yield Sighting("text", role, text=text)


def _from_match(match: re.Match[str], role: str) -> Sighting:
    if match["user"]:
        return Sighting("user", role, match["user"])
    if match["system"]:
        return Sighting("system", role, match["system"])
    if match["answer"]:
        return Sighting("answer", role, match["answer"], int(match["call"]))
    return Sighting("summary", role, call=int(match["summary"]), covers=_covered(match["covers"] or ""))


def _from_token(token: str) -> Sighting:
    match = _TOKEN.fullmatch(token)
    if match is None:
        return Sighting("text", "", text=token)
    sighting = _from_match(match, match["role"] or "")
    return sighting if sighting.role else replace(sighting, role=_USUAL_ROLE[sighting.kind])


def _covered(tokens: str) -> tuple[str, ...]:
    return tuple(token[2:10] for token in re.split(r"[ ,]", tokens) if token.startswith("u:"))
