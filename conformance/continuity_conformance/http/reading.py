"""Reads the answers of both endpoints, plain or streamed: text, ids, session, tool calls.

An answer may have any shape. What is missing is None, never an error; `flaw` says why an answer cannot be used as the answer to a turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from continuity_conformance.http.messages import Answer, dig

_DONE: Final = "[DONE]"
_SHOWN: Final = 120
_WHOLE: Final = frozenset({"response.completed", "response.incomplete"})
"""How the stream of an answered turn ends. `response.incomplete`: the model reached its greatest length."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer to a turn. `session` is the session object of the body, `tool_calls` are the calls for the client."""

    id: str | None
    text: str
    session: Mapping[str, object] | None
    tool_calls: tuple[Mapping[str, object], ...]
    flaw: str = ""


def read(verb: str, answer: Answer, *, hung_up: bool = False) -> Reading:
    reading = _READERS[verb, answer.streamed](answer)
    return reading if not hung_up else Reading(reading.id, reading.text, reading.session, reading.tool_calls)


def _read_chat(answer: Answer) -> Reading:
    message = dig(answer.body, "choices", 0, "message")
    flaw = "" if isinstance(message, Mapping) and _is_id(answer.body) else f"not a chat.completion: {_cut(answer.text)}"
    return Reading(
        id=_text(dig(answer.body, "id")),
        text=_text(dig(message, "content")) or "",
        session=_mapping(dig(answer.body, "session")),
        tool_calls=_mappings(dig(message, "tool_calls")),
        flaw=flaw,
    )


def _read_chat_stream(answer: Answer) -> Reading:
    before_end = answer.events[: answer.events.index(_DONE)] if _DONE in answer.events else answer.events
    choices = [dig(event, "choices", 0) for event in before_end]
    finish = [event for event in before_end if dig(event, "choices", 0, "finish_reason")]
    pieces = (_text(dig(choice, "delta", "content")) for choice in choices)
    flaw = "" if finish and _DONE in answer.events else "the stream has no finish_reason or no [DONE]"
    return Reading(
        id=_text(dig(before_end[0], "id")) if before_end else None,
        text="".join(piece for piece in pieces if piece),
        session=_mapping(dig(finish[-1], "session")) if finish else None,
        tool_calls=_joined_calls(choices),
        flaw=flaw,
    )


def _joined_calls(choices: Sequence[object]) -> tuple[Mapping[str, object], ...]:
    """The tool calls of a stream, with their arguments joined."""
    calls: dict[object, dict[str, object]] = {}
    for piece in (piece for choice in choices for piece in _mappings(dig(choice, "delta", "tool_calls"))):
        call = calls.setdefault(
            piece.get("index", 0), {"type": "function", "id": "", "function": {"name": "", "arguments": ""}}
        )
        function = dict(_mapping(call["function"]) or {})
        function["name"] = _text(dig(piece, "function", "name")) or function["name"]
        function["arguments"] = f"{function['arguments']}{_text(dig(piece, 'function', 'arguments')) or ''}"
        call.update(id=_text(piece.get("id")) or call["id"], function=function)
    return tuple(calls.values())


def _read_response(answer: Answer) -> Reading:
    return _response(answer.body, f"not a response object: {_cut(answer.text)}")


def _read_response_stream(answer: Answer) -> Reading:
    ended = [event for event in answer.events if dig(event, "type") in _WHOLE]
    return _response(dig(ended[-1], "response") if ended else None, "the stream has no response.completed")


def _response(body: object, otherwise: str) -> Reading:
    output = dig(body, "output")
    parts = [part for item in _mappings(output) for part in _mappings(item.get("content"))]
    return Reading(
        id=_text(dig(body, "id")),
        text="".join(_text(part.get("text")) or "" for part in parts if part.get("type") == "output_text"),
        session=_mapping(dig(body, "session")),
        tool_calls=tuple(item for item in _mappings(output) if item.get("type") == "function_call"),
        flaw="" if isinstance(output, Sequence) and _is_id(body) else otherwise,
    )


_READERS = {
    ("chat", False): _read_chat,
    ("chat", True): _read_chat_stream,
    ("respond", False): _read_response,
    ("respond", True): _read_response_stream,
}


def announced(answer: Answer, announces: str) -> str | None:
    """The session that a chat stream tells before its end marker, in the way that the target declares; None if it tells none."""
    before_end = answer.events[: answer.events.index(_DONE)] if _DONE in answer.events else answer.events
    if announces == "event":
        events = [event for event, name in zip(before_end, answer.event_names, strict=False) if name]
    else:
        events = [event for event in before_end if dig(event, "choices", 0, "finish_reason")]
    told = [_text(dig(event, "session", "id")) or _text(dig(event, "session_id")) for event in events]
    return next((session for session in reversed(told) if session), None)


def _is_id(body: object) -> bool:
    return bool(_text(dig(body, "id")))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def _mappings(value: object) -> tuple[Mapping[str, object], ...]:
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return tuple(item for item in listed if isinstance(item, Mapping))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
