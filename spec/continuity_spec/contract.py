"""Is an answer what openapi.yaml says? The question that `valid: true` asks.

It looks at one answer alone: the operation, the status, the content type, the headers, and the body or the events. It
knows neither requirements nor what was asked before, and opens no connection.

Validators are built once for each schema of the document and kept: building one costs far more than using it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from typing import Any, cast

import jsonschema_rs
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

DOCUMENTED_HEADER = "X-Hermes-Session-Id"
"""The name of the continuity header in openapi.yaml; a target's profile may name another."""

_EVENT_STREAM = "text/event-stream"
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
_SHOWN_AT_MOST = 80
_TOLD_AT_MOST = 20
"""A body that is altogether something else has hundreds of problems; nobody reads more than these."""


@dataclass(frozen=True, slots=True)
class _Validator:
    """One decides, in microseconds; the other explains what is wrong, in words, and is asked only then."""

    decides: jsonschema_rs.Draft202012Validator
    explains: Draft202012Validator


@dataclass(frozen=True, slots=True)
class _Form:
    """What a body is, or each event of a stream; an event may also be one of the bare strings."""

    validator: _Validator
    bare: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Header:
    name: str
    required: bool
    validator: _Validator


@dataclass(frozen=True, slots=True)
class _Answer:
    headers: tuple[_Header, ...]
    content: Mapping[str, _Form]


@dataclass(frozen=True, slots=True)
class _Operation:
    method: str
    path: re.Pattern[str]
    answers: Mapping[int, _Answer]


class Contract:
    """The document, with the continuity header under the name that it has at one target."""

    def __init__(self, header: str, *, told: bool = True) -> None:
        """`told`: False for a target that declares that it tells no session; then the header is not demanded."""
        self._header = header
        self._told = told

    def problems(  # noqa: PLR0913, PLR0917 - an answer consists of no less
        self,
        method: str,
        path: str,
        status: int,
        content_type: str,
        headers: Mapping[str, list[str]],
        body: object | None,
        events: Sequence[object] = (),
    ) -> list[str]:
        """Tell a person all that is wrong with an answer: where, what was expected, what was found.

        The names of `headers` are in lower case. Of a stream, `events` has the data of each event: the value where it
        is JSON, else the bare string.
        """
        operation = _operation(method.upper(), path.partition("?")[0])
        if operation is None:
            return [_problem("operation", "one of openapi.yaml", f"{method.upper()} {path}")]
        answer = operation.answers.get(status)
        if answer is None:
            return [_problem("status", f"one of {_listed(sorted(operation.answers))}", str(status))]
        of_content = _content_problems(answer, content_type.partition(";")[0].strip().lower(), body, events)
        return [*self._header_problems(answer, headers), *islice(of_content, _TOLD_AT_MOST)]

    def _header_problems(self, answer: _Answer, headers: Mapping[str, list[str]]) -> Iterator[str]:
        for header in answer.headers:
            name = self._header if header.name == DOCUMENTED_HEADER else header.name
            values = headers.get(name.lower(), [])
            demanded = header.required and (self._told or header.name != DOCUMENTED_HEADER)
            if demanded and len(values) != 1:
                yield _problem(f"header {name}", "exactly one", _shown(values) if values else "none")
            for value in values:
                yield from _violations(f"header {name}", header.validator, value)


@functools.cache
def load_openapi() -> Mapping[str, Any]:
    """Read openapi.yaml, once."""
    text = resources.files("continuity_spec").joinpath("openapi.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return document


# From the document to what an answer is held against


def _operation(method: str, path: str) -> _Operation | None:
    return next((known for known in _operations() if known.method == method and known.path.fullmatch(path)), None)


@functools.cache
def _operations() -> tuple[_Operation, ...]:
    return tuple(
        _Operation(method.upper(), _path_pattern(template), _answers(operation["responses"]))
        for template, item in load_openapi()["paths"].items()
        for method, operation in item.items()
        if method in _METHODS
    )


def _path_pattern(template: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(re.escape(piece) for piece in re.split(r"\{[^}]*\}", template)))


def _answers(responses: Mapping[str, Any]) -> dict[int, _Answer]:
    return {int(status): _answer(_resolved(response)) for status, response in responses.items()}


def _answer(response: Mapping[str, Any]) -> _Answer:
    headers = {name: _resolved(header) for name, header in response.get("headers", {}).items()}
    return _Answer(
        tuple(_Header(name, bool(it.get("required")), _validator(it["schema"])) for name, it in headers.items()),
        {media_type: _form(media_type, it["schema"]) for media_type, it in response.get("content", {}).items()},
    )


def _form(media_type: str, schema: Mapping[str, Any]) -> _Form:
    if media_type != _EVENT_STREAM:
        return _Form(_validator(schema))
    # OpenAPI 3.1 describes an event as an object whose `data` is text; what the text holds is its contentSchema.
    forms = _resolved(schema)["properties"]["data"]["anyOf"]
    content = next(form["contentSchema"] for form in forms if "contentSchema" in form)
    return _Form(_validator(content), frozenset(form["const"] for form in forms if "const" in form))


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in node:
        return node
    target: Mapping[str, Any] = load_openapi()
    for key in node["$ref"].removeprefix("#/").split("/"):
        target = target[key]
    return target


def _validator(schema: Mapping[str, Any]) -> _Validator:
    inlined = _inlined(schema)
    return _Validator(jsonschema_rs.Draft202012Validator(inlined), Draft202012Validator(inlined))


def _inlined(schema: Any) -> Any:
    """Put what a `$ref` names in its place: following it anew on every answer takes more than half of the time."""
    if isinstance(schema, list):
        return [_inlined(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    beside = {key: _inlined(value) for key, value in schema.items() if key != "$ref"}
    if "$ref" not in schema:
        return beside
    named = _inlined(_resolved(schema))
    return {**beside, "allOf": [*beside.get("allOf", []), named]} if beside else named


# From an answer to its problems


def _content_problems(
    answer: _Answer, content_type: str, body: object | None, events: Sequence[object]
) -> Iterator[str]:
    form = answer.content.get(content_type)
    if form is None:
        yield _problem("content type", " or ".join(answer.content), content_type or "none")
    elif content_type == _EVENT_STREAM:
        for number, event in enumerate(events, start=1):
            if not (isinstance(event, str) and event in form.bare):
                yield from _violations(f"event {number}", form.validator, event)
    else:
        yield from _violations("body", form.validator, body)


def _violations(where: str, validator: _Validator, value: object) -> Iterable[str]:
    if _is_valid(validator, value):
        return ()
    # A set of missing fields is one problem, though the validator tells each of them.
    return dict.fromkeys(_told(where, error) for error in validator.explains.iter_errors(value))


def _is_valid(validator: _Validator, value: object) -> bool:
    try:
        return validator.decides.is_valid(value)
    except ValueError:  # it takes no lone surrogates, and no number that is too large
        return False


def _told(where: str, error: ValidationError) -> str:
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
    return text if len(text) <= _SHOWN_AT_MOST else f"{text[: _SHOWN_AT_MOST - 1]}…"


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
