"""The OpenAPI document as one target has it, for schemathesis: with its continuity header, and with what it offers."""

import json
from collections.abc import Mapping
from typing import Any, Final

from continuity_conformance.scenario.context import Target
from continuity_conformance.target.profile import DEFAULT_SESSIONS
from continuity_spec.openapi.document import DOCUMENTED_HEADER, load_openapi

CONTROLS: Final = "/conformance/"
"""Paths of the control API. Random faults of the store would be everybody's."""
_METHODS: Final = frozenset({"get", "post", "delete"})


def document_of(target: Target) -> dict[str, Any]:
    """The document without controls, without what the target does not offer, and without keys, which are a check of their own.

    Sessions that a profile says are elsewhere, or answered in another form, are not the document's.
    """
    left_out = (CONTROLS,) if target.profile.documented_sessions else (CONTROLS, DEFAULT_SESSIONS)
    document: dict[str, Any] = json.loads(json.dumps(load_openapi()).replace(DOCUMENTED_HEADER, target.header))
    document["paths"] = {
        path: offered
        for path, item in document["paths"].items()
        if not path.startswith(left_out) and (offered := _offered(item, target)).keys() & _METHODS
    }
    document.pop("security")
    for item in document["paths"].values():
        for method in item.keys() & _METHODS:
            item[method].pop("security", None)
    if "streaming" not in target.offers:
        for name in ("ChatRequest", "ResponseRequest"):
            document["components"]["schemas"][name]["properties"]["stream"] = {"enum": [False, None]}
    if target.profile.body:
        # The session is named in the body, and a header of any name says nothing.
        document["components"]["parameters"]["Session"]["schema"] = {"type": "string", "maxLength": 0}
    return document


def _offered(item: Mapping[str, Any], target: Target) -> dict[str, Any]:
    return {
        key: value
        for key, value in item.items()
        if key not in _METHODS or value.get("x-continuity-offer", "") in {"", *target.offers}
    }


def fields_of(name: str) -> dict[str, dict[str, Any]]:
    """The fields of a request, and what the document says of each."""
    fields: dict[str, dict[str, Any]] = load_openapi()["components"]["schemas"][name]["properties"]
    return fields


def read_by_model(name: str) -> frozenset[str]:
    """The fields of a request that only the model reads: OpenAI's affair, and not the session's."""
    return frozenset(field for field, schema in fields_of(name).items() if schema.get("x-continuity-reader") == "model")


def statuses(document: Mapping[str, Any], path: str, method: str) -> list[int]:
    """The documented statuses of an operation."""
    return [int(status) for status in document["paths"][path][method.lower()]["responses"]]
