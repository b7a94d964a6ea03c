"""Turn the errors of a JSON Schema validator into messages for people: what is wrong, where, what was probably meant.

It knows JSON Schema, and one habit of our schemas: `oneOf` and `anyOf` only choose between keys. Values of different types are
distinguished by `if`, so that an error inside one of them has an exact place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError

from continuity_spec.errors import SchemaViolationError, suggestion
from continuity_spec.load.yaml_document import Document
from continuity_spec.model import Place

_CONSEQUENCES = frozenset({"oneOf", "anyOf", "required", "dependentRequired"})
"""Rules that often break because another one breaks at the same place: a key is missing because it is misspelt."""
_CAUSES = frozenset({"additionalProperties", "type"})
_ABOUT_THE_VALUE = frozenset({"enum", "const", "type", "pattern", "minimum", "maximum", "minLength", "maxLength"})
_LONGEST_VALUE = 60
"""Longer values are cut, so that the message stays readable."""


@dataclass(frozen=True, slots=True)
class _Violation:
    """One error of the validator: the value at this path breaks this rule, which demands `wants`."""

    path: tuple[str | int, ...]
    value: Any
    rule: str
    wants: Any
    schema: dict[str, Any]
    message: str

    @property
    def name(self) -> str:
        keys = [part for part in self.path if isinstance(part, str)]
        if keys:
            return f'"{keys[-1]}"'
        return "the entry" if self.path else "the file"

    @property
    def unknown_keys(self) -> list[str]:
        return [key for key in self.value if key not in self.schema.get("properties", {})]


def explain(document: Document, schema: dict[str, Any]) -> list[SchemaViolationError]:
    """Describe all violations, in the order of the file, each once."""
    violations = [_violation(error) for error in jsonschema.Draft202012Validator(schema).iter_errors(document.data)]
    caused = {violation.path for violation in violations if violation.rule in _CAUSES}
    causes = [each for each in violations if each.rule not in _CONSEQUENCES or each.path not in caused]
    messages = dict.fromkeys((_place(document, violation), *_message(violation)) for violation in causes)
    in_order = sorted(messages, key=lambda item: (item[0].line, item[0].column))
    return [SchemaViolationError(str(place), what, remedy) for place, what, remedy in in_order]


def _violation(error: ValidationError) -> _Violation:
    schema = error.schema if isinstance(error.schema, dict) else {}
    path, rule = tuple(error.absolute_path), str(error.validator)
    return _Violation(path, error.instance, rule, error.validator_value, schema, error.message)


def _place(document: Document, violation: _Violation) -> Place:
    if violation.rule == "additionalProperties":
        return document.key_place((*violation.path, violation.unknown_keys[0]))
    if violation.rule in _ABOUT_THE_VALUE or not violation.path:
        return document.place(violation.path)
    return document.key_place(violation.path)


def _message(violation: _Violation) -> tuple[str, str]:
    """Write the second and third part of the message: what is wrong, what to do."""
    return _MESSAGES.get(violation.rule, _plain)(violation)


def _plain(violation: _Violation) -> tuple[str, str]:
    return f"{violation.name}: {violation.message}", _described(violation)


def _described(violation: _Violation) -> str:
    description = violation.schema.get("description")
    return (
        f"Expected: {description}"
        if description
        else f"The schema demands {violation.rule}: {_shown(violation.wants)}."
    )


def _forbidden(violation: _Violation) -> tuple[str, str]:
    if violation.wants:
        return _no_value(violation), _described(violation)
    return f"{violation.name} is not allowed here", "Remove it, or the key that excludes it."


def _unknown_key(violation: _Violation) -> tuple[str, str]:
    key = violation.unknown_keys[0]
    return f'unknown key "{key}"', suggestion(key, violation.schema.get("properties", {}))


def _no_value(violation: _Violation) -> str:
    return f"{_shown(violation.value)} is not a valid value for {violation.name}"


def _not_among(violation: _Violation) -> tuple[str, str]:
    return _no_value(violation), suggestion(_shown(violation.value), [_shown(value) for value in violation.wants])


def _not_constant(violation: _Violation) -> tuple[str, str]:
    return _no_value(violation), f"Only {_shown(violation.wants)} is allowed here."


def _other_type(violation: _Violation) -> tuple[str, str]:
    types = violation.wants if isinstance(violation.wants, list) else [violation.wants]
    return _no_value(violation), f"Write {' or '.join(_TYPES[name] for name in types)} here."


def _no_match(violation: _Violation) -> tuple[str, str]:
    return _no_value(violation), f"It must match {violation.wants}. {violation.schema.get('description', '')}".rstrip()


def _missing(violation: _Violation) -> tuple[str, str]:
    return f"{violation.name} lacks {_listed(key for key in violation.wants if key not in violation.value)}", "Add it."


def _missing_beside(violation: _Violation) -> tuple[str, str]:
    pairs = [(key, other) for key, others in violation.wants.items() for other in others if key in violation.value]
    key, absent = next((key, other) for key, other in pairs if other not in violation.value)
    return f'"{key}" needs "{absent}"', f'Add "{absent}", or remove "{key}".'


def _not_one(violation: _Violation) -> tuple[str, str]:
    keys = [key for branch in violation.wants for key in branch["required"]]
    present = [key for key in keys if key in violation.value]
    if len(present) > 1:
        return f"{_listed(present)} exclude each other", "Keep one of them."
    return f"{violation.name} has none of {_listed(keys)}", "Add one of them."


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


_TYPES = {
    "object": "a mapping (key: value)",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_MESSAGES: dict[str, Callable[[_Violation], tuple[str, str]]] = {
    "additionalProperties": _unknown_key,
    "anyOf": _not_one,
    "const": _not_constant,
    "dependentRequired": _missing_beside,
    "enum": _not_among,
    "not": _forbidden,
    "oneOf": _not_one,
    "pattern": _no_match,
    "required": _missing,
    "type": _other_type,
}
