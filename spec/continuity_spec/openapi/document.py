"""Read openapi.yaml and control.yaml, and prepare them for validation: every operation, its answers, a validator for each schema.

Validators are built once for each schema and kept, because building one costs far more than using it. This module knows the
documents; it does not look at answers of a server.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
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
Document = Mapping[str, Any]


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
def load_openapi() -> Document:
    """Read openapi.yaml, once in a process."""
    return _read("openapi.yaml")


@functools.cache
def load_control() -> Document:
    """Read control.yaml, once in a process."""
    return _read("control.yaml")


def document_text(name: str) -> str:
    """Return the text of one of the documents that are bundled with the spec."""
    return resources.files("continuity_spec").joinpath(name).read_text(encoding="utf-8")


def documented_operation(method: str, path: str) -> DocumentedOperation | None:
    """Find the operation that a request to this path, without query, belongs to."""
    return next((known for known in _operations() if known.method == method and known.path.fullmatch(path)), None)


def _read(name: str) -> Document:
    document: dict[str, Any] = yaml.load(document_text(name), Loader=yaml.CSafeLoader)
    return document


@functools.cache
def _operations() -> tuple[DocumentedOperation, ...]:
    return (*_operations_of(load_openapi()), *_operations_of(load_control()))


def _operations_of(document: Document) -> Iterator[DocumentedOperation]:
    reader = _AnswerReader(document)
    for template, item in document["paths"].items():
        for method in item.keys() & _METHODS:
            yield DocumentedOperation(
                method.upper(), _path_pattern(template), reader.answers(item[method]["responses"])
            )


def _path_pattern(template: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(re.escape(piece) for piece in re.split(r"\{[^}]*\}", template)))


class _AnswerReader:
    """Reads the answers of one document, whose references it follows."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def answers(self, responses: Mapping[str, Any]) -> dict[int, DocumentedAnswer]:
        return {int(status): self._answer(self._resolved(response)) for status, response in responses.items()}

    def _answer(self, response: Mapping[str, Any]) -> DocumentedAnswer:
        headers = {name: self._resolved(header) for name, header in response.get("headers", {}).items()}
        content = response.get("content", {})
        return DocumentedAnswer(
            tuple(
                DocumentedHeader(name, bool(header.get("required")), self._validator(header["schema"]))
                for name, header in headers.items()
            ),
            {media_type: self._content(media_type, it["schema"]) for media_type, it in content.items()},
        )

    def _content(self, media_type: str, schema: Mapping[str, Any]) -> DocumentedContent:
        if media_type != EVENT_STREAM:
            return DocumentedContent(self._validator(schema))
        # OpenAPI 3.1 describes an event as an object whose `data` is text. The contentSchema describes what the text holds.
        forms = self._resolved(schema)["properties"]["data"]["anyOf"]
        content = next(form["contentSchema"] for form in forms if "contentSchema" in form)
        return DocumentedContent(
            self._validator(content), frozenset(form["const"] for form in forms if "const" in form)
        )

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" not in node:
            return node
        target: Mapping[str, Any] = self._document
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return target

    def _validator(self, schema: Mapping[str, Any]) -> SchemaValidator:
        inlined = self._inlined(schema)
        return SchemaValidator(jsonschema_rs.Draft202012Validator(inlined), Draft202012Validator(inlined))

    def _inlined(self, schema: Any) -> Any:
        """Replace each `$ref` by what it names. Resolving them for every answer takes more than half of the time."""
        if isinstance(schema, list):
            return [self._inlined(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        siblings = {key: self._inlined(value) for key, value in schema.items() if key != "$ref"}
        if "$ref" not in schema:
            return siblings
        named = self._inlined(self._resolved(schema))
        return {**siblings, "allOf": [*siblings.get("allOf", []), named]} if siblings else named
