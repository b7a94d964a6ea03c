"""Read openapi.yaml, and prepare it for validation: every operation, its answers, and a validator for each schema.

Validators are built once for each schema and kept, because building one costs far more than using it. This module knows the
document; it does not look at answers of a server.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import jsonschema_rs
import yaml
from jsonschema import Draft202012Validator

DOCUMENTED_HEADER: Final = "X-Hermes-Session-Id"
"""The name of the continuity header in openapi.yaml. The profile of a target may name another header."""
EVENT_STREAM: Final = "text/event-stream"

_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


@dataclass(frozen=True, slots=True)
class SchemaValidator:
    """Two validators of one schema: a fast one that decides, and a slow one that explains what is wrong."""

    deciding: jsonschema_rs.Draft202012Validator
    explaining: Draft202012Validator


@dataclass(frozen=True, slots=True)
class DocumentedContent:
    """What a body must be, or the data of each event of a stream. Event data may also be one of the bare strings."""

    validator: SchemaValidator
    bare_strings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DocumentedHeader:
    name: str
    required: bool
    validator: SchemaValidator


@dataclass(frozen=True, slots=True)
class DocumentedAnswer:
    """The answer of an operation with one status: its headers, and its content by media type."""

    headers: tuple[DocumentedHeader, ...]
    content: Mapping[str, DocumentedContent]


@dataclass(frozen=True, slots=True)
class DocumentedOperation:
    """A method and a path, with the documented answers by status."""

    method: str
    path: re.Pattern[str]
    answers: Mapping[int, DocumentedAnswer]


@functools.cache
def load_openapi() -> Mapping[str, Any]:
    """Read openapi.yaml, once in a process."""
    text = resources.files("continuity_spec").joinpath("openapi.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return document


def documented_operation(method: str, path: str) -> DocumentedOperation | None:
    """Find the operation that a request to this path, without query, belongs to."""
    return next((known for known in _operations() if known.method == method and known.path.fullmatch(path)), None)


@functools.cache
def _operations() -> tuple[DocumentedOperation, ...]:
    return tuple(
        DocumentedOperation(method.upper(), _path_pattern(template), _answers(operation["responses"]))
        for template, item in load_openapi()["paths"].items()
        for method, operation in item.items()
        if method in _METHODS
    )


def _path_pattern(template: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(re.escape(piece) for piece in re.split(r"\{[^}]*\}", template)))


def _answers(responses: Mapping[str, Any]) -> dict[int, DocumentedAnswer]:
    return {int(status): _answer(_resolved(response)) for status, response in responses.items()}


def _answer(response: Mapping[str, Any]) -> DocumentedAnswer:
    headers = {name: _resolved(header) for name, header in response.get("headers", {}).items()}
    return DocumentedAnswer(
        tuple(
            DocumentedHeader(name, bool(header.get("required")), _validator(header["schema"]))
            for name, header in headers.items()
        ),
        {media_type: _content(media_type, it["schema"]) for media_type, it in response.get("content", {}).items()},
    )


def _content(media_type: str, schema: Mapping[str, Any]) -> DocumentedContent:
    if media_type != EVENT_STREAM:
        return DocumentedContent(_validator(schema))
    # OpenAPI 3.1 describes an event as an object whose `data` is text. The contentSchema describes what the text holds.
    forms = _resolved(schema)["properties"]["data"]["anyOf"]
    content = next(form["contentSchema"] for form in forms if "contentSchema" in form)
    return DocumentedContent(_validator(content), frozenset(form["const"] for form in forms if "const" in form))


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in node:
        return node
    target: Mapping[str, Any] = load_openapi()
    for key in node["$ref"].removeprefix("#/").split("/"):
        target = target[key]
    return target


def _validator(schema: Mapping[str, Any]) -> SchemaValidator:
    inlined = _inlined(schema)
    return SchemaValidator(jsonschema_rs.Draft202012Validator(inlined), Draft202012Validator(inlined))


def _inlined(schema: Any) -> Any:
    """Replace each `$ref` by what it names. Resolving them for every answer takes more than half of the time."""
    if isinstance(schema, list):
        return [_inlined(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    siblings = {key: _inlined(value) for key, value in schema.items() if key != "$ref"}
    if "$ref" not in schema:
        return siblings
    named = _inlined(_resolved(schema))
    return {**siblings, "allOf": [*siblings.get("allOf", []), named]} if siblings else named
