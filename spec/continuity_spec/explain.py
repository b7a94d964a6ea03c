"""Turns the errors of a JSON Schema validator into messages for people: what is wrong, where it stands, what was meant.

It knows JSON Schema, and none of our schemas but this habit: `oneOf` and `anyOf` choose between keys alone, while values of
different types are told apart by `if`, so that an error in one of them can be located.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonschema

from continuity_spec.errors import SchemaViolationError, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jsonschema.exceptions import ValidationError

    from continuity_spec.model import Place
    from continuity_spec.yaml_source import Document

_CONSEQUENCES = frozenset({"oneOf", "anyOf", "required", "dependentRequired"})
"""What a cause often brings along at the same place: a word is missing because it is misspelt."""
_CAUSES = frozenset({"additionalProperties", "type"})
_ABOUT_THE_VALUE = frozenset({"enum", "const", "type", "pattern", "minimum", "maximum", "minLength", "maxLength"})
_LONGEST_VALUE = 60
"""A value that is longer hides the message."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """One error of the validator: at this path the value breaks this rule, which wants this."""

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
    """Tell all violations, in the order of the file, each once."""
    faults = [_fault(error) for error in jsonschema.Draft202012Validator(schema).iter_errors(document.data)]
    caused = {fault.path for fault in faults if fault.rule in _CAUSES}
    told = [fault for fault in faults if fault.rule not in _CONSEQUENCES or fault.path not in caused]
    found = dict.fromkeys((_place(document, fault), *_message(fault)) for fault in told)
    in_order = sorted(found, key=lambda item: (item[0].line, item[0].column))
    return [SchemaViolationError(str(place), what, remedy) for place, what, remedy in in_order]


def _fault(error: ValidationError) -> _Fault:
    schema = error.schema if isinstance(error.schema, dict) else {}
    path, rule = tuple(error.absolute_path), str(error.validator)
    return _Fault(path, error.instance, rule, error.validator_value, schema, error.message)


def _place(document: Document, fault: _Fault) -> Place:
    if fault.rule == "additionalProperties":
        return document.key_place((*fault.path, fault.unknown_keys[0]))
    if fault.rule in _ABOUT_THE_VALUE or not fault.path:
        return document.place(fault.path)
    return document.key_place(fault.path)


def _message(fault: _Fault) -> tuple[str, str]:
    """Write the second and third part of the message."""
    return _TELLERS.get(fault.rule, _plain)(fault)


def _plain(fault: _Fault) -> tuple[str, str]:
    return f"{fault.name}: {fault.message}", _described(fault)


def _described(fault: _Fault) -> str:
    description = fault.schema.get("description")
    return f"Meant is: {description}" if description else f"The rule is {fault.rule}: {_shown(fault.wants)}."


def _forbidden(fault: _Fault) -> tuple[str, str]:
    if fault.wants:
        return _no_value(fault), _described(fault)
    return f"{fault.name} may not stand here", "Take it away, or what it does not go with."


def _unknown_key(fault: _Fault) -> tuple[str, str]:
    key = fault.unknown_keys[0]
    return f'unknown word "{key}"', suggestion(key, fault.schema.get("properties", {}))


def _no_value(fault: _Fault) -> str:
    return f"{_shown(fault.value)} is no value for {fault.name}"


def _not_among(fault: _Fault) -> tuple[str, str]:
    return _no_value(fault), suggestion(_shown(fault.value), [_shown(value) for value in fault.wants])


def _not_constant(fault: _Fault) -> tuple[str, str]:
    return _no_value(fault), f"Only {_shown(fault.wants)} may stand here."


def _other_type(fault: _Fault) -> tuple[str, str]:
    types = fault.wants if isinstance(fault.wants, list) else [fault.wants]
    return _no_value(fault), f"Write {' or '.join(_TYPES[name] for name in types)} here."


def _no_match(fault: _Fault) -> tuple[str, str]:
    return _no_value(fault), f"It must match {fault.wants} here. {fault.schema.get('description', '')}".rstrip()


def _missing(fault: _Fault) -> tuple[str, str]:
    return f"{fault.name} lacks {_listed(key for key in fault.wants if key not in fault.value)}", "Add it."


def _missing_beside(fault: _Fault) -> tuple[str, str]:
    pairs = [(key, other) for key, others in fault.wants.items() for other in others if key in fault.value]
    key, absent = next((key, other) for key, other in pairs if other not in fault.value)
    return f'"{key}" stands without "{absent}"', "Add that, or take this away."


def _not_one(fault: _Fault) -> tuple[str, str]:
    keys = [key for branch in fault.wants for key in branch["required"]]
    present = [key for key in keys if key in fault.value]
    if len(present) > 1:
        return f"{_listed(present)} do not go together", "Keep one of them."
    return f"{fault.name} has none of {_listed(keys)}", "Add one of them."


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
_TELLERS: dict[str, Callable[[_Fault], tuple[str, str]]] = {
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
