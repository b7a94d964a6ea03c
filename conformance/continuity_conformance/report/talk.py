"""The picture of a conversation: who said what to whom, under which id, and what the model saw.

Makes the beats of one scenario out of its exchanges. Knows the JSON form of exchanges and nothing of HTML.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from continuity_conformance.curl import pairs
from continuity_conformance.report.model import Step
from continuity_conformance.report.visible import cut, one_line

HUES: Final = 8
_WORDS: Final = 140
_ID: Final = 72
_SHOWN_FIRST: Final = 3
_SHOWN_LAST: Final = 7
_LABELS: Final = 40
_RESPONSES: Final = "/v1/responses"
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Tag:
    """An id. The same value has the same hue in the whole conversation."""

    name: str
    value: str
    hue: int


@dataclass(frozen=True, slots=True)
class Beat:
    """One exchange. `seen` is None where nobody knows what the model saw; `lost` says why there is no answer."""

    number: str
    at: float
    seconds: float
    who: str
    does: str
    label: str
    sent: tuple[Tag, ...]
    status: int | None
    told: tuple[Tag, ...]
    words: str
    lost: str
    seen: tuple[str, ...] | None
    summarised: str
    exchange: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A step that is no exchange: a restart, an eviction. Or how many exchanges are left out here."""

    number: str
    does: str


class Hues:
    """Gives each id a hue, in the order in which they come."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def tag(self, name: str, value: str) -> Tag:
        return Tag(name, cut(value, _ID), self._known.setdefault(value, len(self._known) % HUES))


def conversation(
    exchanges: Sequence[Mapping[str, Any]], steps: Sequence[Step], header: str, until: str
) -> list[Beat | Event]:
    """The beats in their order. `until`: the number of the step at which the scenario ended; empty where it went to its end."""
    hues = Hues()
    beats = [_beat(exchange, header, hues) for exchange in exchanges]
    said = {beat.number for beat in beats}
    silent = [Event(step.number, cut(step.does, _WORDS)) for step in steps if step.number not in said]
    reached = [event for event in silent if not until or _order(event.number) <= _order(until)]
    return list(_woven(beats, reached))


def _woven(beats: Sequence[Beat], events: Sequence[Event]) -> Iterator[Beat | Event]:
    """Each event before the first exchange of a later step; of very many exchanges the first and the last ones."""
    waiting = list(events)
    left_out = range(_SHOWN_FIRST, max(len(beats) - _SHOWN_LAST, _SHOWN_FIRST))
    for position, beat in enumerate(beats):
        while waiting and _order(waiting[0].number) < _order(beat.number):
            yield waiting.pop(0)
        if position not in left_out:
            yield beat
        elif position == left_out[0]:
            yield Event("", f"{len(left_out)} more exchanges, in results.json")
    yield from waiting


def _order(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBER.findall(number))


def _beat(exchange: Mapping[str, Any], header: str, hues: Hues) -> Beat:
    request, answer = exchange["request"], exchange["answer"]
    told = exchange.get("told") or {}
    seen = exchange.get("seen")
    return Beat(
        number=str(exchange["step"]),
        at=exchange["at"],
        seconds=exchange["seconds"],
        who=str(exchange.get("principal") or "client"),
        does=cut(_does(request), _WORDS),
        label=cut(str(exchange.get("label") or ""), _LABELS),
        sent=tuple(hues.tag(name, value) for name, value in _sent(request, header)),
        status=answer["status"] if answer else None,
        told=tuple(hues.tag(name, value) for name, value in _told(exchange, header)),
        words=cut(one_line(str(told.get("text") or "") or _error(answer)), _WORDS),
        lost=cut(one_line(str(exchange.get("error") or "")), _WORDS),
        seen=tuple(cut(str(label), _LABELS) for label in seen) if isinstance(seen, list) else None,
        summarised=cut(", ".join(str(label) for label in exchange.get("summarised", ())), _WORDS),
        exchange=exchange,
    )


def _does(request: Mapping[str, Any]) -> str:
    path = urlsplit(request["url"]).path
    body = _parsed(request["body"])
    streamed = isinstance(body, Mapping) and body.get("stream") is True
    return f"{request['method']} {path}{', streamed' if streamed else ''}"


def _sent(request: Mapping[str, Any], header: str) -> Iterator[tuple[str, str]]:
    yield from (("session", value) for name, value in pairs(request["headers"]) if name.lower() == header.lower())
    body = _parsed(request["body"])
    if isinstance(body, Mapping):
        for field in ("conversation", "previous_response_id"):
            value = body.get(field)
            value = value.get("id") if isinstance(value, Mapping) else value
            yield from [(field, value)] if isinstance(value, str) else []


def _told(exchange: Mapping[str, Any], header: str) -> Iterator[tuple[str, str]]:
    headers = (exchange["answer"] or {}).get("headers")
    told = exchange.get("told") or {"session": "", "response": ""}
    sessions = [value for name, value in pairs(headers) if name.lower() == header.lower()]
    yield from (("session", value) for value in sessions)
    if told["session"] and told["session"] not in sessions:
        yield "session in the body", told["session"]
    if told["response"] and exchange["request"]["url"].endswith(_RESPONSES):
        yield "response", told["response"]


def _error(answer: Mapping[str, Any] | None) -> str:
    """What an answer says that is not to a turn: its error message, or its beginning."""
    if not answer:
        return ""
    body = _parsed(answer["body"])
    error = body.get("error") if isinstance(body, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    return message if isinstance(message, str) else str(answer["body"])


def _parsed(body: object) -> object:
    try:
        return json.loads(body) if isinstance(body, str) else body
    except (ValueError, RecursionError):
        return None
