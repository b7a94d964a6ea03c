"""Check whether an answer is what openapi.yaml documents. The expectation `valid: true` asks this.

It looks at one answer: the operation, the status, the content type, the headers, and the body or the events. It knows neither
requirements nor earlier requests, and opens no connection.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, TypeGuard, cast

from jsonschema.exceptions import ValidationError

from continuity_spec.openapi.document import (
    DOCUMENTED_HEADER,
    EVENT_STREAM,
    DocumentedAnswer,
    SchemaValidator,
    documented_operation,
)

_LONGEST_VALUE = 80
_MOST_PROBLEMS = 20
"""A body of a different kind has hundreds of problems; nobody reads more than these."""


class AnswerValidator:
    """Validates the answers of one target, which may have a continuity header of another name."""

    def __init__(self, header: str, *, header_required: bool = True) -> None:
        """`header_required` is False for a target that declares that it reveals no session id."""
        self._header = header
        self._header_required = header_required

    def problems(  # noqa: PLR0913, PLR0917 - these are the parts of an answer
        self,
        method: str,
        path: str,
        status: int,
        content_type: str,
        headers: Mapping[str, list[str]],
        body: object | None,
        events: Sequence[object] = (),
    ) -> list[str]:
        """Describe everything that is wrong with an answer: where, what was expected, what was found.

        The names of `headers` are in lower case. For a stream, `events` holds the data of each event: the parsed value if
        it is JSON, else the string.
        """
        operation = documented_operation(method.upper(), path.partition("?")[0])
        if operation is None:
            return [_problem("operation", "one of openapi.yaml", f"{method.upper()} {path}")]
        answer = operation.answers.get(status)
        if answer is None:
            return [_problem("status", f"one of {_listed(sorted(operation.answers))}", str(status))]
        of_content = _content_problems(answer, content_type.partition(";")[0].strip().lower(), body, events)
        return [*self._header_problems(answer, headers), *islice(of_content, _MOST_PROBLEMS)]

    def _header_problems(self, answer: DocumentedAnswer, headers: Mapping[str, list[str]]) -> Iterator[str]:
        for header in answer.headers:
            name = self._header if header.name == DOCUMENTED_HEADER else header.name
            values = headers.get(name.lower(), [])
            required = header.required and (self._header_required or header.name != DOCUMENTED_HEADER)
            if required and len(values) != 1:
                yield _problem(f"header {name}", "exactly one", _shown(values) if values else "none")
            for value in values:
                yield from _violations(f"header {name}", header.validator, value)


def _content_problems(
    answer: DocumentedAnswer, content_type: str, body: object | None, events: Sequence[object]
) -> Iterator[str]:
    content = answer.content.get(content_type)
    if content is None:
        yield _problem("content type", " or ".join(answer.content), content_type or "none")
    elif content_type == EVENT_STREAM:
        for number, event in enumerate(events, start=1):
            if not (isinstance(event, str) and event in content.bare_strings):
                yield from _violations(f"event {number}", content.validator, event)
        yield from _sequence_problems(events)
    else:
        yield from _violations("body", content.validator, body)


def _sequence_problems(events: Sequence[object]) -> Iterator[str]:
    """The numbers of events grow."""
    numbered = ((event["type"], event["sequence_number"]) for event in events if _is_numbered(event))
    for (_, number), (kind, following) in pairwise(numbered):
        if following <= number:
            yield _problem(f"sequence_number of {kind}", f"more than {number}", str(following))


def _is_numbered(event: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(event, Mapping) and "type" in event and isinstance(event.get("sequence_number"), int)


def _violations(where: str, validator: SchemaValidator, value: object) -> Iterable[str]:
    if _is_valid(validator, value):
        return ()
    # Several missing fields are one problem, although the validator reports each of them.
    return dict.fromkeys(_described(where, error) for error in validator.explaining.iter_errors(value))


def _is_valid(validator: SchemaValidator, value: object) -> bool:
    try:
        return validator.deciding.is_valid(value)
    except ValueError:  # it accepts neither lone surrogates nor very large numbers
        return False


def _described(where: str, error: ValidationError) -> str:
    pointer = "".join(f"/{key}" for key in error.absolute_path)
    place = f"{where} {pointer}" if pointer else where
    keyword, wanted, found = str(error.validator), cast("Any", error.validator_value), cast("Any", error.instance)
    if keyword == "required":
        missing = _listed(name for name in wanted if name not in found)
        return _problem(place, f"the fields {missing}", f"only {_listed(found)}" if found else "no field")
    expected = _EXPECTED[keyword](wanted) if keyword in _EXPECTED else error.message
    return _problem(place, expected, _shown(found))


def _problem(where: str, expected: str, found: str) -> str:
    return f"{where}: expected {_cut(expected)}, found {_cut(found)}"


def _listed(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


_EXPECTED: Mapping[str, Callable[[Any], str]] = {
    "type": lambda types: types if isinstance(types, str) else " or ".join(types),
    "const": _shown,
    "enum": lambda values: f"one of {', '.join(_shown(value) for value in values)}",
    "pattern": lambda pattern: f"text that matches {pattern}",
    "minLength": lambda least: f"{least} character or more",
    "maxLength": lambda most: f"{most} characters or fewer",
    "minItems": lambda least: f"{least} item or more",
    "minimum": lambda least: f"{least} or more",
    "uniqueItems": lambda _: "no item twice",
}
"""What each rule of a schema demands, in words."""
