"""What the client is told: the expectations on status line, headers and body. Each holds, or raises `Unmet`."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.expect.leaks import strings
from continuity_conformance.scenario.record import Record

_SHOWN_BY_THE_MODEL: Final = frozenset({"sees", "recalls", "serial"})


async def session(record: Record, exchange: Exchange, wanted: Any) -> None:
    try:
        told = told_session(record, exchange)
    except Untested:
        lost = record.variables.known(wanted) is not None or record.variables.could_not_capture(wanted, "session")
        if lost and not _shown_otherwise(exchange, wanted):
            raise
        return
    _must_be(record, exchange, wanted, "session", told)


def _shown_otherwise(exchange: Exchange, wanted: object) -> bool:
    """Where the target tells nothing: which session a turn was in is what its request named, and what its model saw of that session.

    That an id is told, and which, is asked by entries with `when: {tells: header}`.
    """
    return exchange.step.params.get("session") == wanted or _asks_the_model(exchange.step.expect)


def _asks_the_model(expect: Mapping[str, Any]) -> bool:
    """Whether what the model saw is asked for: by the step itself, or by every branch of it."""
    branches = [value for word, value in expect.items() if word == "either" or word.startswith("by ")]
    groups = [list(value.values()) if isinstance(value, Mapping) else list(value) for value in branches]
    return not _SHOWN_BY_THE_MODEL.isdisjoint(expect) or any(all(map(_asks_the_model, group)) for group in groups)


def told_session(record: Record, exchange: Exchange) -> str:
    """The session that the answer tells: the continuity header, exactly once."""
    target = record.context.target
    values = exchange.answer.fields(target.header)
    if not values and target.options["tells"] == "nothing":
        raise Untested("the target does not tell the session")
    if len(values) != 1 or not values[0]:
        raise Unmet(
            f"{target.header}, exactly once and not empty", " and ".join(repr(value) for value in values) or "absent"
        )
    return values[0]


async def announces(record: Record, exchange: Exchange, wanted: Any) -> None:
    named = exchange.reading.session if exchange.reading else None
    if not named or not isinstance(named.get("id"), str):
        raise Unmet(f"{wanted} in the stream, before its end marker", "no session in it")
    _must_be(record, exchange, wanted, "session", named["id"])


async def goes_on_with(record: Record, exchange: Exchange, wanted: Any) -> None:
    """The id that a client goes on with: the one that it is told, or the one that it sent where the target tells nothing. It may be one that has a name."""
    sent = exchange.step.params.get("session")
    try:
        going: object = told_session(record, exchange)
    except Untested:
        if sent is None:
            record.variables.could_not_capture(wanted, "session")
            raise
        going = record.variables.fill(sent, "session", exchange.principal)
    record.variables.rename(wanted, "session", exchange.principal, going)


async def response(record: Record, exchange: Exchange, wanted: Any) -> None:
    _must_be(record, exchange, wanted, "response", exchange.reading.id if exchange.reading else None)


async def answer(record: Record, exchange: Exchange, wanted: Any) -> None:
    reading = exchange.reading
    _must_be(record, exchange, wanted, "answer", f"{reading.id} {reading.text}" if reading else None)


def _must_be(record: Record, exchange: Exchange, wanted: str, kind: str, actual: object) -> None:
    """The same name is the same value; a new name is a new value."""
    variables = record.variables
    known = variables.known(wanted)
    if known is None:
        twin = variables.capture(wanted, kind, exchange.principal, actual)
        if twin:
            raise Unmet(f"a {kind} of its own ({wanted})", f"the same as {twin}: {actual}")
    elif known != actual:
        raise Unmet(f"{known} ({wanted})" if wanted.startswith("$") else str(known), variables.spoken(actual))


_BLANKED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{6,}|[0-9a-f]*[0-9][0-9a-f]*")
_RUN = re.compile(r"\*+")
"""An id may be blanked in one piece or in several: how many depends on the digits that it happens to have."""
_TEXTS: Final = "content|text|delta|id|item_id|session|created|created_at"


async def like(record: Record, exchange: Exchange, wanted: Any) -> None:
    """Same status, header names and body, with known ids, texts, times and numbers blanked."""
    shape = _shape(exchange)
    known = record.variables.known(wanted)
    if known is None:
        record.variables.capture(wanted, f"like {wanted}", exchange.principal, shape)
    elif known != shape:
        raise Unmet(f"the same answer as before: {known}", shape)


def _shape(exchange: Exchange) -> str:
    answer = exchange.answer
    names = sorted({name.lower() for name, _ in answer.headers})
    told = [_blanked(exchange, json.dumps(event, sort_keys=True)) for event in answer.events]
    # Into how many pieces a stream cuts its text is its own affair.
    pieces = [event for event, before in zip(told, ["", *told], strict=False) if event != before]
    text = json.dumps(answer.body, sort_keys=True) if answer.body is not None else answer.text
    return f"{answer.status} {names} {' '.join(pieces) if answer.streamed else _blanked(exchange, text)}"


def _blanked(exchange: Exchange, text: str) -> str:
    """A text without what the request sent, and without ids, texts, times and numbers."""
    sent = sorted((part for part in re.split(r"[/?&]", exchange.request.path) if part), key=len, reverse=True)
    for part in [*sent, *(value for _, value in exchange.request.headers), *strings(exchange.request.body)]:
        text = text.replace(part, "*") if len(part) > 3 else text  # noqa: PLR2004
    text = re.sub(rf'"({_TEXTS})": ?("(?:[^"\\]|\\.)*"|\d+)', r'"\1": *', text)
    return _RUN.sub("*", _BLANKED.sub("*", text))


async def headers(record: Record, exchange: Exchange, wanted: Any) -> None:
    filled: Any = record.variables.fill(wanted)
    for name, value in filled.items():
        _match_header(name, exchange.answer.fields(name), value)


def _match_header(name: str, values: Sequence[str], wanted: object) -> None:
    actual = " and ".join(f"{name}: {value}" for value in values) or "absent"
    listed = [word.strip().lower() for value in values for word in value.split(",")]
    holds = {
        "present": len(values) == 1 and values[0].strip() != "",
        "absent": not values,
    }.get(wanted if isinstance(wanted, str) else "", list(values) == [wanted])
    if isinstance(wanted, Mapping):
        holds = str(wanted["lists"]).lower() in listed
    if not holds:
        raise Unmet(f"{name}: {_in_words(wanted)}", actual)


def _in_words(wanted: object) -> str:
    if wanted == "present":
        return "present, exactly once and not empty"
    return f"a list with {wanted['lists']}" if isinstance(wanted, Mapping) else str(wanted)


async def body(record: Record, exchange: Exchange, wanted: Any) -> None:
    trouble = _differs(record.variables.fill(wanted), exchange.answer.body, "body")
    if trouble:
        raise Unmet(*trouble)


def _differs(wanted: object, actual: object, path: str) -> tuple[str, str] | None:
    if isinstance(wanted, Mapping) and "lists" not in wanted:
        if not isinstance(actual, Mapping):
            return f"{path}: an object", repr(actual)[:160]
        return _first_difference((value, actual.get(name, _ABSENT), f"{path}.{name}") for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        pairs = zip(wanted, actual, strict=True)
        return _first_difference((value, there, f"{path}[{place}]") for place, (value, there) in enumerate(pairs))
    if isinstance(wanted, Mapping):
        holds = isinstance(actual, Sequence) and wanted["lists"] in actual
    else:
        holds = {"present": actual is not _ABSENT, "absent": actual is _ABSENT}.get(str(wanted), wanted == actual)
    return None if holds else (f"{path}: {_in_words(wanted)}", repr(actual)[:160])


def _first_difference(parts: Iterable[tuple[object, object, str]]) -> tuple[str, str] | None:
    found = (_differs(wanted, actual, path) for wanted, actual, path in parts)
    return next((trouble for trouble in found if trouble), None)


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT: Final = _Absent()


async def valid(record: Record, exchange: Exchange, _: Any) -> None:
    """Status, content type, headers and body validate against openapi.yaml."""
    found = exchange.answer
    fields: dict[str, list[str]] = {}
    for name, value in found.headers:
        fields.setdefault(name.lower(), []).append(value)
    path = record.context.server.document_path(exchange.request.path)
    problems = record.context.contract.problems(
        exchange.request.method, path, found.status, found.content_type, fields, found.body, found.events
    )
    if problems:
        raise Unmet("an answer as openapi.yaml describes it", "; ".join(problems[:5]))


async def agrees(record: Record, exchange: Exchange, _: Any) -> None:
    """The body's session, where there is one, is the header's; after a rotation in a stream it names the header's as its parent."""
    named = exchange.reading.session if exchange.reading else None
    if named is None:
        raise Untested("the body does not name the session")
    told = told_session(record, exchange)
    rotated = exchange.answer.streamed and named.get("rotated_from") == told
    if named.get("id") != told and not rotated:
        raise Unmet(f"session.id {told}, as the header says", f"session.id {named.get('id')}")


EXPECTATIONS: Final[Mapping[str, Callable[[Record, Exchange, Any], Awaitable[None]]]] = {
    word.__name__: word
    for word in (session, announces, goes_on_with, response, answer, like, headers, body, valid, agrees)
}
