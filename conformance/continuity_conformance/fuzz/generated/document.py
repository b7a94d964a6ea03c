"""The OpenAPI document of one target: with its continuity header, and only with what it offers; and its operations."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs

from continuity_conformance.scenario.context import Target
from continuity_conformance.target.profile import DEFAULT_SESSIONS
from continuity_spec.openapi.builds import with_header
from continuity_spec.openapi.document import DOCUMENTED_HEADER, load_openapi

_METHODS: Final = frozenset({"get", "post", "delete"})
_REQUESTS: Final = ("ChatRequest", "ResponseRequest")
_REFERENCE: Final = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class TargetOperation:
    """One operation of a document. `methods`: all that its path documents. `fields`: the fields of its body, if it has one."""

    id: str
    method: str
    path: str
    methods: frozenset[str]
    statuses: frozenset[int]
    path_parameters: tuple[str, ...]
    headers: frozenset[str]
    query: Mapping[str, Mapping[str, Any]]
    fields: frozenset[str]
    validator: jsonschema_rs.Draft202012Validator | None

    @property
    def label(self) -> str:
        return f"{self.method} {self.path}"

    def takes(self, body: object) -> bool:
        """Whether the document allows this body."""
        return self.validator is None or self.validator.is_valid(body)


def operations_of(document: Mapping[str, Any]) -> dict[str, TargetOperation]:
    """The operations of a document, by their ids."""
    return {
        operation["operationId"]: _operation(document, path, method)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in _METHODS
    }


def _operation(document: Mapping[str, Any], path: str, method: str) -> TargetOperation:
    item, components = document["paths"][path], document["components"]
    described = [*item.get("parameters", []), *item[method].get("parameters", [])]
    parameters = [
        components["parameters"][each["$ref"].rsplit("/", 1)[1]] if "$ref" in each else each for each in described
    ]
    content = item[method].get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema")
    schema = {**body, "components": components} if body else {}
    name = body["$ref"].removeprefix(_REFERENCE) if body and "$ref" in body else ""
    return TargetOperation(
        item[method]["operationId"],
        method.upper(),
        path,
        frozenset(each.upper() for each in item.keys() & _METHODS),
        frozenset(map(int, item[method]["responses"])),
        tuple(each["name"] for each in parameters if each["in"] == "path"),
        frozenset(each["name"] for each in parameters if each["in"] == "header"),
        {each["name"]: each["schema"] for each in parameters if each["in"] == "query"},
        frozenset(components["schemas"][name]["properties"]) if name else frozenset(),
        jsonschema_rs.Draft202012Validator(schema) if body else None,
    )


def whole_document(header: str = DOCUMENTED_HEADER) -> dict[str, Any]:
    """The document for a target that offers everything, without security: keys have a check of their own."""
    document = with_header(load_openapi(), header)
    document.pop("security")
    for item in document["paths"].values():
        for method in item.keys() & _METHODS:
            item[method].pop("security", None)
    return document


def target_document(target: Target) -> dict[str, Any]:
    """Return the document without what the target does not offer, and without security.

    The paths of sessions are left out where the profile gives them another path or another form. A target may ignore, or refuse, what belongs to
    something that it does not offer: no request has it.
    """
    document = whole_document(target.header)
    document["paths"] = {
        path: offered
        for path, item in document["paths"].items()
        if _has_path(target, path) and (offered := _offered(item, target)).keys() & _METHODS
    }
    for item in document["paths"].values():
        for method in item.keys() & _METHODS:
            _remove_unoffered(item[method], target)
    for name in _REQUESTS:
        schema = document["components"]["schemas"][name]
        for field in _unoffered_fields(target):
            schema["properties"].pop(field, None)
        schema["required"] = [field for field in schema.get("required", ()) if field in schema["properties"]]
    return document


def _has_path(target: Target, path: str) -> bool:
    return target.profile.documented_sessions or not path.startswith(DEFAULT_SESSIONS)


def _offered(item: Mapping[str, Any], target: Target) -> dict[str, Any]:
    return {
        key: value
        for key, value in item.items()
        if key not in _METHODS or value.get("x-continuity-offer", "") in {"", *target.offers}
    }


def _remove_unoffered(operation: dict[str, Any], target: Target) -> None:
    """Remove the parameters and the examples of what the target does not offer."""
    absent = {f"#/components/parameters/{name}" for name in _unoffered_parameters(target)}
    operation["parameters"] = [each for each in operation.get("parameters", []) if each.get("$ref") not in absent]
    for media in operation.get("requestBody", {"content": {}})["content"].values():
        media["examples"] = {
            name: example
            for name, example in media["examples"].items()
            if not example["value"].keys() & _unoffered_fields(target)
        }


def _unoffered_parameters(target: Target) -> list[str]:
    """The header names no session on a target that reads the session from the body, or that only has slugs and responses."""
    session = [] if "chat" in target.offers and not target.profile.body else ["Session"]
    return [*session, *([] if "idempotency" in target.offers else ["IdempotencyKey"])]


def _unoffered_fields(target: Target) -> set[str]:
    """The fields of a request that belong to something that the target does not offer."""
    streaming = set() if "streaming" in target.offers else {"stream", "stream_options"}
    slugs = set() if target.profile.slugs == "named" else {"conversation"}
    return streaming | slugs | ({"model"} if target.profile.leaves_out("model") else set())


def request_fields(name: str) -> dict[str, dict[str, Any]]:
    """Return the fields of a request body, each with its schema."""
    fields: dict[str, dict[str, Any]] = load_openapi()["components"]["schemas"][name]["properties"]
    return fields


@functools.cache
def model_fields(name: str) -> frozenset[str]:
    """Return the fields of a request body that only the model reads: OpenAI defines them, not this contract."""
    return frozenset(
        field for field, schema in request_fields(name).items() if schema.get("x-continuity-reader") == "model"
    )
