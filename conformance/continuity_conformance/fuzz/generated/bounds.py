"""Values on the bounds of the document and just beyond them, where the coverage of schemathesis has none. The document itself says which of them are right."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]
_TEXT: Final = "a"
_DIGIT: Final = "\xb2"
"""A digit that is no number: the raised 2."""


def fields_on_bounds(properties: Mapping[str, Schema]) -> Iterator[tuple[str, object]]:
    """Fields of a body, each with a value: an integer as 1.0, a list as long as it may be, an object with none of its bounded values and with a wrong one."""
    for name, schema in properties.items():
        yield from ((name, value) for value in _values(schema))


def words_for_numbers(properties: Mapping[str, Schema]) -> Iterator[tuple[str, str]]:
    """Parameters that are integers, each with a text that is none."""
    yield from ((name, _DIGIT) for name, schema in properties.items() if _may_be(schema, "integer"))


def _values(schema: Schema) -> Iterator[object]:
    if _may_be(schema, "integer"):
        yield float(schema.get("minimum", 0))
    if "maxItems" in schema:
        yield [_TEXT] * schema["maxItems"]
    if isinstance(bounded := schema.get("additionalProperties"), Mapping):
        yield {}
        yield from ({"right": _TEXT, "wrong": value} for value in _beyond(bounded))


def _beyond(schema: Schema) -> Iterator[object]:
    if not _may_be(schema, "integer"):
        yield 7
    if "maxLength" in schema:
        yield _TEXT * (schema["maxLength"] + 1)


def _may_be(schema: Schema, kind: str) -> bool:
    kinds = schema.get("type", ())
    return kind in ([kinds] if isinstance(kinds, str) else kinds)
