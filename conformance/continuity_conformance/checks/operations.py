"""The operations of the OpenAPI document, as whoever has no key would try them: each at what is there and at what is not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from continuity_conformance.scenario.context import Target
from continuity_conformance.target.control_context import CONTROL_FIELD
from continuity_spec.openapi.document import load_openapi

_METHODS: Final = frozenset({"get", "post", "put", "patch", "delete"})
_NEEDS: Final[Mapping[str, str]] = {"/v1/responses": "responses", "/v1/sessions": "sessions"}
_OPTIONAL: Final = frozenset({"/v1/models", "/v1/capabilities"})
_CONTROLS: Final = "/conformance/v1/"
_UNREADABLE: Final = {"messages": 5, "input": 5}
_FILLED: Final[Sequence[Mapping[str, str]]] = (
    {"{session_id}": "${hers}", "{response_id}": "${response}"},
    {"{session_id}": "${unknown-session}", "{response_id}": "${unknown-response}"},
)


@dataclass(frozen=True, slots=True)
class Operation:
    """A method and a path of the document. `body` is the first example of its request."""

    method: str
    template: str
    body: object

    @property
    def controls(self) -> bool:
        return self.template.startswith(_CONTROLS)

    def requests(self, credentials: Mapping[str, str], token: str) -> Iterator[dict[str, object]]:
        """Requests in the words of a `request` step, with a body that could be accepted and with one that could not."""
        headers = {"$HEADER": "${hers}", **({CONTROL_FIELD: token} if self.controls else {}), **credentials}
        for path in dict.fromkeys(_path(self.template, filled) for filled in _FILLED):
            for body in self._bodies():
                yield {"method": self.method, "path": path, "body": body, "headers": headers, "as": "nobody"}

    def without_token(self) -> Iterator[dict[str, object]]:
        """The same of a control, with a key, and with a wrong token or none."""
        for headers in ({}, {CONTROL_FIELD: "wrong"}) if self.controls else ():
            yield {"method": self.method, "path": self.template, "body": _UNREADABLE, "headers": headers}

    def _bodies(self) -> Sequence[object]:
        """Nobody is to break the store of a server that takes a control without a key: controls get no body that says what."""
        return [body for body in (None if self.controls else self.body, _UNREADABLE) if self.body is not None] or [None]


def locked(target: Target, answering: frozenset[str]) -> list[Operation]:
    """The operations that this target has and that want a key. `answering`: the paths that were seen to answer."""
    return [operation for operation in _all() if _has(target, operation, answering)]


def optional_paths() -> Sequence[str]:
    """Paths that no offer names: a target has them, or has not."""
    return sorted(_OPTIONAL)


def _has(target: Target, operation: Operation, answering: frozenset[str]) -> bool:
    path = operation.template
    need = next((need for prefix, need in _NEEDS.items() if path.startswith(prefix)), None)
    if operation.controls:
        return target.has_api
    return path in answering or (path not in _OPTIONAL and (need is None or need in target.offers))


def _all() -> Iterator[Operation]:
    for template, item in load_openapi()["paths"].items():
        for method, operation in item.items():
            if method in _METHODS and operation.get("security") != []:
                yield Operation(method.upper(), template, _example(operation))


def _example(operation: Mapping[str, Any]) -> object:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return next((example["value"] for example in content.get("examples", {}).values()), None)


def _path(template: str, filled: Mapping[str, str]) -> str:
    for name, value in filled.items():
        template = template.replace(name, value)
    return template
