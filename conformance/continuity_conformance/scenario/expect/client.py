"""Expectations on what the client receives: status, headers and body. Each one holds, or raises `Unmet`."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.http.reading import announced
from continuity_conformance.probe.marks import answer_mark
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.expect.leaks import strings
from continuity_conformance.scenario.record import Record

_SHOWN_BY_THE_MODEL: Final = frozenset({"sees", "recalls", "serial"})


async def session(record: Record, exchange: Exchange, wanted: Any) -> None:
    """The id in the continuity header; of `{tip: …, alias: …}`, the one that belongs to the target's option echo."""
    wanted = wanted[record.context.target.options["echo"]] if isinstance(wanted, Mapping) else wanted
    try:
        revealed = revealed_session(record, exchange)
    except Untested:
        lost = record.variables.known(wanted) is not None or record.variables.could_not_capture(wanted, "session")
        if lost and not _shown_otherwise(exchange, wanted):
            raise
        return
    _must_be(record, exchange, wanted, "session", revealed)


def _shown_otherwise(exchange: Exchange, wanted: object) -> bool:
    """Whether something else shows the session where the target reveals none: the request named it, or the step checks what the model saw.

    Entries with `when: {tells: header}` check that an id is revealed, and which.
    """
    return exchange.step.params.get("session") == wanted or _asks_the_model(exchange.step.expect)


def _asks_the_model(expect: Mapping[str, Any]) -> bool:
    """Whether a step, or every branch of it, checks what the model saw."""
    branches = [value for word, value in expect.items() if word == "either" or word.startswith("by ")]
    groups = [list(value.values()) if isinstance(value, Mapping) else list(value) for value in branches]
    return not _SHOWN_BY_THE_MODEL.isdisjoint(expect) or any(all(map(_asks_the_model, group)) for group in groups)


def revealed_session(record: Record, exchange: Exchange) -> str:
    """The session in the continuity header of an answer, which must be there exactly once."""
    target = record.context.target
    if target.options["tells"] == "nothing":
        raise Untested("the target does not reveal the session")
    values = exchange.answer.fields(target.header)
    if len(values) != 1 or not values[0]:
        raise Unmet(
            f"{target.header}, exactly once and not empty", " and ".join(repr(value) for value in values) or "absent"
        )
    return values[0]


async def announces(record: Record, exchange: Exchange, wanted: Any) -> None:
    announces = record.context.target.options["announces"]
    if announces == "other":
        record.variables.could_not_capture(wanted, "session")
        raise Untested("the stream tells the session in a way that the kit does not know (option announces: other)")
    in_body = exchange.reading.session if exchange.reading else None
    told = announced(exchange.answer, announces) if exchange.verb == "chat" else dig(in_body, "id")
    if not isinstance(told, str):
        raise Unmet(f"{wanted} in the stream, before its end marker", f"no session in it (announces: {announces})")
    _must_be(record, exchange, wanted, "session", told)


async def goes_on_with(record: Record, exchange: Exchange, wanted: Any) -> None:
    """Bind the id that a client continues with: the one it received, or the one it sent if the target reveals none. The id may already have a name."""
    sent = exchange.step.params.get("session")
    try:
        current: object = revealed_session(record, exchange)
    except Untested:
        if sent is None:
            record.variables.could_not_capture(wanted, "session")
            raise
        current = record.variables.fill(sent, "session", exchange.principal)
    record.variables.rename(wanted, "session", exchange.principal, current)


async def response(record: Record, exchange: Exchange, wanted: Any) -> None:
    _must_be(record, exchange, wanted, "response", exchange.reading.id if exchange.reading else None)


async def answer(record: Record, exchange: Exchange, wanted: Any) -> None:
    """The same answer. A chat completion that is replayed may have a new id: nothing can be done with its id, and the mark of the model call tells answers apart."""
    reading = exchange.reading
    told = f"{reading.id} {reading.text}" if reading else None
    if reading and exchange.verb == "chat" and answer_mark(reading.text):
        told = reading.text
    _must_be(record, exchange, wanted, "answer", told)


def _must_be(record: Record, exchange: Exchange, wanted: str, kind: str, actual: object) -> None:
    """The same name is the same value; a new name is a new value."""
    variables = record.variables
    known = variables.known(wanted)
    if known is None:
        twin = variables.capture(wanted, kind, exchange.principal, actual)
        if twin:
            raise Unmet(f"a {kind} of its own ({wanted})", f"the same as {twin}: {actual}")
    elif known != actual:
        raise Unmet(f"{known} ({wanted})" if wanted.startswith("$") else str(known), variables.describe(actual))


_BLANKED = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{6,}|(?=[\w+/=-]*[0-9])[\w+/=-]{8,}|[0-9a-f]*[0-9][0-9a-f]*"
)
_RUN = re.compile(r"\*+")
"""An id may be blanked in one piece or in several, depending on its digits."""
_TEXTS: Final = r"content|text|delta|id|\w+_id|session|created|\w+_at"


async def like(record: Record, exchange: Exchange, wanted: Any) -> None:
    """Same status, header names and body, with known ids, texts, times and numbers blanked."""
    shape = _shape(record, exchange)
    known = record.variables.known(wanted)
    if known is None:
        record.variables.capture(wanted, f"like {wanted}", exchange.principal, shape)
    elif known != shape:
        raise Unmet(f"the same answer as before: {known}", shape)


def _shape(record: Record, exchange: Exchange) -> str:
    answer, ids = exchange.answer, record.variables.values()
    names = sorted({name.lower() for name, _ in answer.headers})
    blanked = [_blanked(exchange, ids, json.dumps(event, sort_keys=True)) for event in answer.events]
    # A server may cut the text of a stream into any number of pieces.
    pieces = [event for event, before in zip(blanked, ["", *blanked], strict=False) if event != before]
    text = json.dumps(answer.body, sort_keys=True) if answer.body is not None else answer.text
    return f"{answer.status} {names} {' '.join(pieces) if answer.streamed else _blanked(exchange, ids, text)}"


def _blanked(exchange: Exchange, ids: Sequence[str], text: str) -> str:
    """A text in which ids of any alphabet, texts, times, numbers and everything that the request sent are blanked."""
    sent = sorted((part for part in re.split(r"[/?&]", exchange.request.path) if part), key=len, reverse=True)
    for part in [
        *sorted(ids, key=len, reverse=True),
        *sent,
        *(value for _, value in exchange.request.headers),
        *strings(exchange.request.body),
    ]:
        text = text.replace(part, "*") if len(part) > 3 else text  # noqa: PLR2004
    text = re.sub(rf'"({_TEXTS})": ?("(?:[^"\\]|\\.)*"|\d+)', r'"\1": *', text)
    return _RUN.sub("*", _BLANKED.sub("*", text))


async def headers(record: Record, exchange: Exchange, wanted: Any) -> None:
    """A target that declares `tells: nothing` says nothing by its continuity header, so that is not compared."""
    target = record.context.target
    ignored = target.header.lower() if target.options["tells"] == "nothing" else ""
    filled: Any = record.variables.fill(wanted)
    for name, value in filled.items():
        if name.lower() != ignored:
            _match_header(name, _allowed(exchange, name), value)


def _allowed(exchange: Exchange, name: str) -> list[str]:
    """The values of a header. In CORS `*` lists every header, but not for requests with credentials."""
    values = exchange.answer.fields(name)
    if name.lower().startswith("access-control-") and not exchange.answer.fields("Access-Control-Allow-Credentials"):
        return ["any header" if value.strip() == "*" else value for value in values]
    return values


def _match_header(name: str, values: Sequence[str], wanted: object) -> None:
    actual = " and ".join(f"{name}: {value}" for value in values) or "absent"
    listed = [word.strip().lower() for value in values for word in value.split(",")]
    holds = {
        "present": len(values) == 1 and values[0].strip() != "",
        "absent": not values,
    }.get(wanted if isinstance(wanted, str) else "", list(values) == [wanted])
    if isinstance(wanted, Mapping):
        holds = str(wanted["lists"]).lower() in listed or "any header" in listed
    if not holds:
        raise Unmet(f"{name}: {_in_words(wanted)}", actual)


def _in_words(wanted: object) -> str:
    if wanted == "present":
        return "present, exactly once and not empty"
    return f"a list with {wanted['lists']}" if isinstance(wanted, Mapping) else str(wanted)


async def body(record: Record, exchange: Exchange, wanted: Any) -> None:
    _capture(record, exchange, wanted, exchange.answer.body)
    difference = _differs(record.variables.fill(wanted), exchange.answer.body, "body")
    if difference:
        raise Unmet(*difference)


def _capture(record: Record, exchange: Exchange, wanted: object, actual: object) -> None:
    """Bind the names in an expected body that have no value yet to the texts at their places."""
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        for name, value in wanted.items():
            _capture(record, exchange, value, actual.get(name))
    elif record.variables.is_new(wanted) and isinstance(actual, str) and actual:
        _must_be(record, exchange, str(wanted), "value in a body", actual)


def _differs(wanted: object, actual: object, path: str) -> tuple[str, str] | None:
    if isinstance(wanted, Mapping) and "lists" not in wanted:
        if not isinstance(actual, Mapping):
            return f"{path}: an object", repr(actual)[:160]
        return _first_difference((value, actual.get(name, _ABSENT), f"{path}.{name}") for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        pairs = zip(wanted, actual, strict=True)
        return _first_difference((value, there, f"{path}[{place}]") for place, (value, there) in enumerate(pairs))
    if isinstance(wanted, Mapping):
        holds = _has_entry(actual, wanted["lists"])
    else:
        holds = {"present": actual is not _ABSENT, "absent": actual is _ABSENT}.get(str(wanted), wanted == actual)
    return None if holds else (f"{path}: {_in_words(wanted)}", repr(actual)[:160])


def _has_entry(actual: object, wanted: object) -> bool:
    """Whether a list has an entry of which this is a subset, or a text has this part."""
    if isinstance(actual, str):
        return str(wanted) in actual
    return isinstance(actual, Sequence) and any(_differs(wanted, each, "") is None for each in actual)


def _first_difference(parts: Iterable[tuple[object, object, str]]) -> tuple[str, str] | None:
    differences = (_differs(wanted, actual, path) for wanted, actual, path in parts)
    return next((difference for difference in differences if difference), None)


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT: Final = _Absent()


async def valid(record: Record, exchange: Exchange, _: Any) -> None:
    """Status, content type, headers and body validate against openapi.yaml."""
    answer = exchange.answer
    fields: dict[str, list[str]] = {}
    for name, value in answer.headers:
        fields.setdefault(name.lower(), []).append(value)
    path = record.context.server.document_path(exchange.request.path)
    problems = record.context.contract.problems(
        exchange.request.method, path, answer.status, answer.content_type, fields, answer.body, answer.events
    )
    if problems:
        raise Unmet("an answer as openapi.yaml describes it", "; ".join(problems[:5]))


async def agrees(record: Record, exchange: Exchange, _: Any) -> None:
    """The session in the body equals the header; after a rotation in a stream, `rotated_from` equals the header."""
    named = exchange.reading.session if exchange.reading else None
    if named is None:
        raise Inapplicable("no answer names the session in its body")
    header = revealed_session(record, exchange)
    rotated = exchange.answer.streamed and named.get("rotated_from") == header
    if named.get("id") != header and not rotated:
        raise Unmet(f"session.id {header}, as the header says", f"session.id {named.get('id')}")


EXPECTATIONS: Final[Mapping[str, Callable[[Record, Exchange, Any], Awaitable[None]]]] = {
    word.__name__: word
    for word in (session, announces, goes_on_with, response, answer, like, headers, body, valid, agrees)
}
