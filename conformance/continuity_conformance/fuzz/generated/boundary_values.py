"""Values on and just beyond the limits in the document that the coverage phase of schemathesis does not try.

The document itself decides which of them are valid.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]
_TEXT: Final = "a"
_DIGIT: Final = "\xb2"
"""Superscript two: a digit that is not a number."""


def boundary_fields(properties: Mapping[str, Schema]) -> Iterator[tuple[str, object]]:
    """Yield fields of a body, each with one value.

    The values are an integer as 1.0, a list of the greatest length, an empty object, and an object with a wrong value.
    """
    for name, schema in properties.items():
        yield from ((name, value) for value in _values(schema))


def non_numbers(properties: Mapping[str, Schema]) -> Iterator[tuple[str, str]]:
    """Yield the integer parameters, each with a text that is not an integer."""
    yield from ((name, _DIGIT) for name, schema in properties.items() if _may_be(schema, "integer"))


def _values(schema: Schema) -> Iterator[object]:
    if _may_be(schema, "integer"):
        yield float(schema.get("minimum", 0))
    if "maxItems" in schema:
        yield [_TEXT] * schema["maxItems"]
    if isinstance(member_schema := schema.get("additionalProperties"), Mapping):
        yield {}
        yield from ({"right": _TEXT, "wrong": value} for value in _invalid_values(member_schema))


def _invalid_values(schema: Schema) -> Iterator[object]:
    if not _may_be(schema, "integer"):
        yield 7
    if "maxLength" in schema:
        yield _TEXT * (schema["maxLength"] + 1)


def _may_be(schema: Schema, kind: str) -> bool:
    kinds = schema.get("type", ())
    return kind in ([kinds] if isinstance(kinds, str) else kinds)
