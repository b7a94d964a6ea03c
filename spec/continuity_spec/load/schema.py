"""Check data against one of our JSON Schemas.

jsonschema-rs decides, in microseconds. `explain` writes the messages; it is imported only for data that are wrong. This module
does not know what the data mean.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from continuity_spec.errors import SpecError
from continuity_spec.load.yaml_document import Document

_FOLDER = Path(__file__).parents[1] / "schemas"


@cache
def schema(name: str) -> dict[str, Any]:
    """Read the schema of this name, such as `requirements` or `profile`."""
    loaded: dict[str, Any] = json.loads((_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    return loaded


@cache
def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema(name))


def violations(document: Document, schema_name: str) -> list[SpecError]:
    """List everything in the document that breaks the schema, in the order of the file."""
    if _validator(schema_name).is_valid(document.data):
        return []
    from continuity_spec.load.explain import explain  # noqa: PLC0415 - importing jsonschema takes 100 ms

    return [*explain(document, schema(schema_name))]


def validate(document: Document, schema_name: str) -> None:
    """Raise the first violation, if any."""
    for violation in violations(document, schema_name):
        raise violation
