"""The OpenAPI document of one target, for schemathesis: with its continuity header, and only with what it offers."""

import json
from collections.abc import Mapping
from typing import Any, Final

from continuity_conformance.scenario.context import Target
from continuity_conformance.target.profile import DEFAULT_SESSIONS
from continuity_spec.openapi.document import DOCUMENTED_HEADER, load_openapi

CONTROLS: Final = "/conformance/"
"""Paths of the control API. They are left out: a random fault in the store would disturb every other scenario."""
_METHODS: Final = frozenset({"get", "post", "delete"})


def target_document(target: Target) -> dict[str, Any]:
    """Return the document without controls, without what the target does not offer, and without security.

    Keys have a check of their own. The paths of sessions are left out where the profile gives them another path or
    another form.
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
        # The target reads the session from the body, so a header must not name one.
        document["components"]["parameters"]["Session"]["schema"] = {"type": "string", "maxLength": 0}
    return document


def _offered(item: Mapping[str, Any], target: Target) -> dict[str, Any]:
    return {
        key: value
        for key, value in item.items()
        if key not in _METHODS or value.get("x-continuity-offer", "") in {"", *target.offers}
    }


def request_fields(name: str) -> dict[str, dict[str, Any]]:
    """Return the fields of a request body, each with its schema."""
    fields: dict[str, dict[str, Any]] = load_openapi()["components"]["schemas"][name]["properties"]
    return fields


def model_fields(name: str) -> frozenset[str]:
    """Return the fields of a request body that only the model reads: OpenAI defines them, not this contract."""
    return frozenset(
        field for field, schema in request_fields(name).items() if schema.get("x-continuity-reader") == "model"
    )


def documented_statuses(document: Mapping[str, Any], path: str, method: str) -> list[int]:
    """Return the documented statuses of an operation."""
    return [int(status) for status in document["paths"][path][method.lower()]["responses"]]
