"""Evidence: exchanges and interventions as results.json stores them, redacted and shortened, and the text of a failure."""

import string
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, overload
from urllib.parse import quote, urlsplit

from continuity_conformance.core.failure import Unmet
from continuity_conformance.core.text import cut
from continuity_conformance.http.curl import one_request
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.http.reading import Reading
from continuity_conformance.results.redaction import BODY_KEPT, Redactor
from continuity_conformance.results.transcript import entry_lines, in_order
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.record import Intervention
from continuity_conformance.scenario.wording import shortened
from continuity_spec import Requirement

_TEXT_KEPT: Final = 400
_WIDTH: Final = 100
_SAFE: Final = string.printable[:95].replace("%", "")
"""Bytes that need no percent-encoding when a body is written as text: printable ASCII and spaces."""
_TOLD_AT_MOST: Final = 24
_TRACED_FIRST: Final = 3
_TRACED_LAST: Final = 7
_TRACED: Final = 100


@dataclass(frozen=True, slots=True)
class DialogueEvidence:
    """A dialogue as results.json stores it."""

    exchanges: Sequence[Mapping[str, Any]]
    interventions: tuple[Mapping[str, Any], ...] = ()
    output: str = ""
    """What the target wrote meanwhile."""


class KeptExchanges(Sequence[Mapping[str, Any]]):
    """Exchanges that become evidence when somebody reads them. In most runs nobody looks at what passed."""

    def __init__(self, exchanges: Sequence[Exchange], redactor: Redactor) -> None:
        self._exchanges = tuple(exchanges)
        self._redactor = redactor

    @cached_property
    def _evidence(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(as_evidence(exchange, self._redactor) for exchange in self._exchanges)

    def __len__(self) -> int:
        return len(self._exchanges)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the evidence alone."""
        return tuple, (self._evidence,)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._evidence[index]


def as_evidence(exchange: Exchange, redactor: Redactor) -> dict[str, object]:
    """One exchange as results.json stores it."""
    return {
        "at": round(exchange.at, 3),
        "seconds": round(exchange.answer.seconds, 3),
        "step": exchange.number,
        "does": redactor.body(exchange.step.text),
        "principal": exchange.principal,
        "label": redactor.text(exchange.label),
        "request": _request(exchange.request, redactor),
        "answer": _answer(exchange.answer, redactor) if exchange.answer.status else None,
        "error": redactor.body(exchange.answer.error),
        "told": _reading(exchange.reading, redactor) if exchange.reading is not None else None,
        "seen": [redactor.body(each) for each in exchange.seen] if exchange.seen is not None else None,
        "summarised": [redactor.text(label) for label in exchange.summarised],
        **({"replays": exchange.replays} if exchange.replays else {}),
    }


def as_note(intervention: Intervention, redactor: Redactor) -> dict[str, object]:
    """One intervention as results.json stores it."""
    return {
        "at": round(intervention.at, 3),
        "step": intervention.number,
        "does": redactor.body(intervention.does),
        "how": redactor.body(intervention.how),
        "proof": intervention.proof,
    }


def _reading(reading: Reading, redactor: Redactor) -> dict[str, object]:
    """The ids and the text of an answer, plain or streamed."""
    session = reading.session.get("id") if reading.session is not None else None
    return {
        "response": redactor.text(reading.id or ""),
        "session": redactor.text(session) if isinstance(session, str) else "",
        "text": redactor.text(reading.text)[:_TEXT_KEPT],
    }


def _request(request: Request, redactor: Redactor) -> dict[str, object]:
    text = (request.data or b"").decode("utf-8", "backslashreplace")
    made_of = _made_of(request, redactor)
    return {
        "method": request.method,
        "url": redactor.body(request.url),
        "headers": redactor.headers(tuple(request.fields.items())),
        "body": redactor.body(shortened(text)),
        **({"made_of": made_of} if made_of else {}),
        **({"key_as": redactor.text(request.key_as), "key_in": request.key_in} if request.key_as else {}),
    }


def _made_of(request: Request, redactor: Redactor) -> list[list[object]]:
    """The parts of a body that cannot be shown as text: too long, not UTF-8, or with control characters."""
    parts = [(text.encode(), times) for text, times in request.made_of]
    if not parts and isinstance(request.body, bytes) and len(request.body) <= BODY_KEPT and not _is_plain(request.body):
        parts = [(request.body, 1)]
    # A body that contains a secret is not shown.
    secret = any(redactor.hides(part.decode("utf-8", "surrogateescape")) for part, _ in parts)
    return [] if secret else [[quote(part, safe=_SAFE), times] for part, times in parts]


def _is_plain(body: bytes) -> bool:
    try:
        return body.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _answer(answer: Answer, redactor: Redactor) -> dict[str, object]:
    body = redactor.stream(answer.text) if answer.streamed else redactor.body(answer.text)
    return {"status": answer.status, "headers": redactor.headers(answer.headers), "body": body}


def trace(exchanges: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each exchange; of many, the first and the last ones."""
    left_out = len(exchanges) - _TRACED_FIRST - _TRACED_LAST
    if left_out <= 0:
        return [_trace_line(each) for each in exchanges]
    first, last = exchanges[:_TRACED_FIRST], exchanges[-_TRACED_LAST:]
    return [*map(_trace_line, first), f"… {left_out} more", *map(_trace_line, last)]


def _trace_line(exchange: Mapping[str, Any]) -> str:
    request, answer, seen = exchange["request"], exchange["answer"], exchange["seen"]
    path = urlsplit(request["url"]).path
    saw = f"; the model saw {cut(', '.join(map(str, seen)), _TRACED)}" if seen is not None else ""
    status = answer["status"] if answer else exchange["error"]
    return f"{exchange['step']}  {exchange.get('principal') or 'client'}: {request['method']} {path} → {status}{saw}"


def failure_text(requirement: Requirement, scenario: str, unmet: Unmet, dialogue: DialogueEvidence, again: str) -> str:
    """A failure for people: requirement, step, expected, actual, the dialogue, the target's output, why it matters, how to run it again."""
    how = "is broken" if requirement.level.forbids else "is not met"
    head = f"{requirement.id} ({requirement.level}) {how}: {requirement.text}"
    why = f"Why it matters: {requirement.why}"
    told = in_order(dialogue.exchanges[-_TOLD_AT_MOST:], dialogue.interventions)
    left_out = len(dialogue.exchanges) - _TOLD_AT_MOST
    lines = [
        *textwrap.wrap(head, _WIDTH, subsequent_indent="  "),
        *([f"  in      {scenario}"] if scenario else []),
        f"  step {unmet.number:2} {unmet.step}",
        f"          {unmet.expectation:9} expected  {unmet.expected}",
        f"          {'':9} actual    {unmet.actual}",
        "",
        *([f"  … the first {left_out} exchanges are left out"] if left_out > 0 else []),
        *(f"  {line}" for each in told for line in entry_lines(each, unmet.expected)),
        *(
            ["", "  What the target wrote meanwhile:", *(f"    {line}" for line in dialogue.output.splitlines())]
            if dialogue.output
            else []
        ),
        "",
        *textwrap.wrap(why, _WIDTH, initial_indent="  ", subsequent_indent="  "),
        *_sequence_lines(unmet, again),
        f"  Run it again: continuity run {_word(requirement)} {again}",
        *_curl_lines(unmet.expectation, dialogue),
    ]
    return "\n".join(lines)


def _curl_lines(expectation: str, dialogue: DialogueEvidence) -> list[str]:
    """A curl command if one request shows the failure; the key comes from the environment."""
    command = one_request(expectation, dialogue.exchanges, dialogue.interventions)
    return ["  One request shows it:", f"    {command}"] if command else []


def _sequence_lines(unmet: Unmet, again: str) -> list[str]:
    """A generated sequence, as a scenario, with the command that plays it alone."""
    if not unmet.sequence:
        return []
    steps = [f"    {line}" for line in unmet.sequence.splitlines()]
    return ["  The sequence:", *steps, f"  Play it alone: continuity run {unmet.saved} {again.partition(' --seed')[0]}"]


def _word(requirement: Requirement) -> str:
    """How `continuity run` names a requirement: its id, or its file if it is not part of the spec."""
    return requirement.id if requirement.place.file.startswith("requirements/") else requirement.place.file
