"""Whether data have the form that one of our JSON Schemas gives.

jsonschema-rs decides (in microseconds), jsonschema explains; it is imported only when there is something to explain. What
the data mean is not known here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

if TYPE_CHECKING:
    from continuity_spec.errors import SpecError
    from continuity_spec.yaml_source import Document

_FOLDER = Path(__file__).parent / "schemas"


@cache
def schema(name: str) -> dict[str, Any]:
    """Give the schema of this name, such as `requirements` or `profile`."""
    loaded: dict[str, Any] = json.loads((_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    return loaded


@cache
def _decider(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema(name))


def violations(document: Document, schema_name: str) -> list[SpecError]:
    """Find everything in the document that breaks the schema, in the order of the file."""
    if _decider(schema_name).is_valid(document.data):
        return []
    from continuity_spec.explain import explain  # noqa: PLC0415 - 100 ms that only a broken file costs

    return [*explain(document, schema(schema_name))]


def check(document: Document, schema_name: str) -> None:
    """Raise the first violation, if there is one."""
    for violation in violations(document, schema_name):
        raise violation
