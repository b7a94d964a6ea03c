"""The sequence diagram of a scenario: who sent what to whom, with which ids, and what the model saw.

Makes the entries of the diagram from the exchanges and interventions of one scenario, which are JSON objects. Knows no HTML.
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
_TEXT: Final = 140
_ID: Final = 72
_SHOWN_FIRST: Final = 3
_SHOWN_LAST: Final = 7
_LABELS: Final = 40
_RESPONSES: Final = "/v1/responses"


@dataclass(frozen=True, slots=True)
class Tag:
    """An id. The same value has the same hue in the whole diagram."""

    name: str
    value: str
    hue: int


@dataclass(frozen=True, slots=True)
class ExchangeEntry:
    """One exchange. `seen` is None where it is unknown what the model saw; `error` says why there is no answer.

    `replays`: the earlier step with the same answer, where the server repeated it without calling the model.
    """

    number: str
    at: float
    seconds: float
    who: str
    does: str
    label: str
    sent: tuple[Tag, ...]
    status: int | None
    returned: tuple[Tag, ...]
    text: str
    error: str
    seen: tuple[str, ...] | None
    replays: str
    summarised: str
    exchange: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InterventionEntry:
    """A step without an exchange, such as a restart or an eviction. Or a note that exchanges are left out here."""

    number: str
    does: str
    how: str = ""
    proof: str = ""


Entry = ExchangeEntry | InterventionEntry


class Hues:
    """Assigns a hue to each id, in the order of their first use."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def tag(self, name: str, value: str) -> Tag:
        return Tag(name, cut(value, _ID), self._known.setdefault(value, len(self._known) % HUES))


def conversation(evidence: Evidence, steps: Sequence[RecordedStep], header: str) -> list[Entry]:
    """The entries of the diagram, in their order."""
    hues = Hues()
    recorded = in_order(evidence.exchanges, evidence.interventions or ())
    entries = [_exchange(each, header, hues) if "request" in each else _intervention(each) for each in recorded]
    if evidence.interventions is None:
        entries = list(_merged(entries, _inferred(entries, steps, evidence.step.partition(" ")[0])))
    return list(_shortened(entries))


def _inferred(entries: Sequence[Entry], steps: Sequence[RecordedStep], last: str) -> list[InterventionEntry]:
    """The interventions of an old file, which does not record them: steps without an exchange, up to the last step that was played."""
    numbers = {entry.number for entry in entries}
    others = [InterventionEntry(step.number, cut(step.does, _TEXT)) for step in steps if step.number not in numbers]
    return [each for each in others if not last or step_key(each.number) <= step_key(last)]


def _merged(entries: Sequence[Entry], interventions: Sequence[InterventionEntry]) -> Iterator[Entry]:
    """Each intervention before the first exchange of a later step."""
    waiting = list(interventions)
    for entry in entries:
        while waiting and step_key(waiting[0].number) < step_key(entry.number):
            yield waiting.pop(0)
        yield entry
    yield from waiting


def _shortened(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Every intervention, but of many exchanges only the first and the last ones."""
    exchanges = [entry for entry in entries if isinstance(entry, ExchangeEntry)]
    left_out = exchanges[_SHOWN_FIRST : max(len(exchanges) - _SHOWN_LAST, _SHOWN_FIRST)]
    hidden = {id(entry) for entry in left_out}
    for entry in entries:
        if id(entry) not in hidden:
            yield entry
        elif entry is left_out[0]:
            yield InterventionEntry("", f"{len(left_out)} more exchanges, in results.json")


def _intervention(recorded: Mapping[str, Any]) -> InterventionEntry:
    does, how, proof = (cut(one_line(str(recorded[part])), _TEXT) for part in ("does", "how", "proof"))
    return InterventionEntry(str(recorded["step"]), does, how, proof)


def _exchange(exchange: Mapping[str, Any], header: str, hues: Hues) -> ExchangeEntry:
    request, answer = exchange["request"], exchange["answer"]
    turn = exchange.get("told") or {}
    seen = exchange.get("seen")
    return ExchangeEntry(
        number=str(exchange["step"]),
        at=exchange["at"],
        seconds=exchange["seconds"],
        who=str(exchange.get("principal") or "client"),
        does=cut(_does(request), _TEXT),
        label=cut(str(exchange.get("label") or ""), _LABELS),
        sent=tuple(hues.tag(name, value) for name, value in _sent(request, header)),
        status=answer["status"] if answer else None,
        returned=tuple(hues.tag(name, value) for name, value in _returned(exchange, header)),
        text=cut(one_line(str(turn.get("text") or "") or _message(answer)), _TEXT),
        error=cut(one_line(str(exchange.get("error") or "")), _TEXT),
        seen=tuple(cut(str(label), _LABELS) for label in seen) if isinstance(seen, list) else None,
        replays=str(exchange.get("replays", "")),
        summarised=cut(", ".join(str(label) for label in exchange.get("summarised", ())), _TEXT),
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


def _returned(exchange: Mapping[str, Any], header: str) -> Iterator[tuple[str, str]]:
    headers = (exchange["answer"] or {}).get("headers")
    turn = exchange.get("told") or {"session": "", "response": ""}
    sessions = [value for name, value in pairs(headers) if name.lower() == header.lower()]
    yield from (("session", value) for value in sessions)
    if turn["session"] and turn["session"] not in sessions:
        yield "session in the body", turn["session"]
    if turn["response"] and exchange["request"]["url"].endswith(_RESPONSES):
        yield "response", turn["response"]


def _message(answer: Mapping[str, Any] | None) -> str:
    """The error message in an answer, or else its body."""
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
