"""The picture of a conversation: who said what to whom, under which id, and what the model saw.

Makes the beats of one scenario out of its exchanges and interventions. Knows their JSON form and nothing of HTML.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Evidence
from continuity_conformance.http.curl import pairs
from continuity_conformance.results.recorded import RecordedStep
from continuity_conformance.results.transcript import in_order, step_key

HUES: Final = 8
_WORDS: Final = 140
_ID: Final = 72
_SHOWN_FIRST: Final = 3
_SHOWN_LAST: Final = 7
_LABELS: Final = 40
_RESPONSES: Final = "/v1/responses"


@dataclass(frozen=True, slots=True)
class Tag:
    """An id. The same value has the same hue in the whole conversation."""

    name: str
    value: str
    hue: int


@dataclass(frozen=True, slots=True)
class Beat:
    """One exchange. `seen` is None where nobody knows what the model saw; `lost` says why there is no answer.

    `replays`: the step that had this answer before, where the model was not called for this one.
    """

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
    replays: str
    summarised: str
    exchange: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A step that is no exchange: a restart, an eviction. Or how many exchanges are left out here."""

    number: str
    does: str
    how: str = ""
    proof: str = ""


class Hues:
    """Gives each id a hue, in the order in which they come."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def tag(self, name: str, value: str) -> Tag:
        return Tag(name, cut(value, _ID), self._known.setdefault(value, len(self._known) % HUES))


def conversation(evidence: Evidence, steps: Sequence[RecordedStep], header: str) -> list[Beat | Event]:
    """The beats and events in their order."""
    hues = Hues()
    told = in_order(evidence.exchanges, evidence.interventions or ())
    beats = [_beat(each, header, hues) if "request" in each else _event(each) for each in told]
    if evidence.interventions is None:
        beats = list(_woven(beats, _supposed(beats, steps, evidence.step.partition(" ")[0])))
    return list(_few(beats))


def _supposed(beats: Sequence[Beat | Event], steps: Sequence[RecordedStep], until: str) -> list[Event]:
    """Where nobody noted interventions: the steps up to the one at which the scenario ended that no exchange belongs to."""
    said = {beat.number for beat in beats}
    silent = [Event(step.number, cut(step.does, _WORDS)) for step in steps if step.number not in said]
    return [event for event in silent if not until or step_key(event.number) <= step_key(until)]


def _woven(beats: Sequence[Beat | Event], events: Sequence[Event]) -> Iterator[Beat | Event]:
    """Each event before the first exchange of a later step."""
    waiting = list(events)
    for beat in beats:
        while waiting and step_key(waiting[0].number) < step_key(beat.number):
            yield waiting.pop(0)
        yield beat
    yield from waiting


def _few(beats: Sequence[Beat | Event]) -> Iterator[Beat | Event]:
    """Every event; of very many exchanges the first and the last ones."""
    said = [beat for beat in beats if isinstance(beat, Beat)]
    left_out = said[_SHOWN_FIRST : max(len(said) - _SHOWN_LAST, _SHOWN_FIRST)]
    unseen = {id(beat) for beat in left_out}
    for beat in beats:
        if id(beat) not in unseen:
            yield beat
        elif beat is left_out[0]:
            yield Event("", f"{len(left_out)} more exchanges, in results.json")


def _event(told: Mapping[str, Any]) -> Event:
    does, how, proof = (cut(one_line(str(told[part])), _WORDS) for part in ("does", "how", "proof"))
    return Event(str(told["step"]), does, how, proof)


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
        replays=str(exchange.get("replays", "")),
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
