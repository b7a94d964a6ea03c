"""The operations of the OpenAPI documents as requests without a valid key, on data that exists and on data that does not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from continuity_conformance.scenario.context import Target
from continuity_conformance.target.control_context import CONTROL_FIELD
from continuity_spec.openapi.document import load_control, load_openapi

_METHODS: Final = frozenset({"get", "post", "put", "patch", "delete"})
_NEEDED_OFFERS: Final[Mapping[str, str]] = {
    "/v1/responses/": "stored-responses",
    "/v1/responses": "responses",
    "/v1/conversations": "conversations",
    "/v1/sessions": "sessions",
}
"""The offer of each path that a target may lack, by its beginning; the first that fits counts."""
_OPTIONAL: Final = frozenset({"/v1/models"})
_PUBLIC: Final = frozenset({"/v1/capabilities"})
"""What a server may show to everybody, although the document asks for a key."""
_CONTROLS: Final = "/conformance/v1/"
_INVALID_BODY: Final = {"messages": 5, "input": 5}
_IDS: Final[Sequence[Mapping[str, str]]] = (
    {"{session_id}": "${hers}", "{response_id}": "${response}", "{conversation_id}": "${conversation}"},
    {
        "{session_id}": "${unknown-session}",
        "{response_id}": "${unknown-response}",
        "{conversation_id}": "${unknown-conversation}",
    },
)
"""What path parameters are replaced with: ids that exist, and ids that do not."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A method and a path of the document. `body` is the first example of its request."""

    method: str
    template: str
    body: object

    @property
    def is_control(self) -> bool:
        return self.template.startswith(_CONTROLS)

    def requests(self, credentials: Mapping[str, str], token: str) -> Iterator[dict[str, object]]:
        """Yield parameters of `request` steps, with a valid body and with an invalid one."""
        headers = {"$HEADER": "${hers}", **({CONTROL_FIELD: token} if self.is_control else {}), **credentials}
        for path in dict.fromkeys(_path(self.template, ids) for ids in _IDS):
            for body in self._bodies():
                yield {"method": self.method, "path": path, "body": body, "headers": headers, "as": "nobody"}

    def without_token(self) -> Iterator[dict[str, object]]:
        """Yield requests to a control with a valid key, but with a wrong token or none."""
        for headers in ({}, {CONTROL_FIELD: "wrong"}) if self.is_control else ():
            yield {"method": self.method, "path": self.template, "body": _INVALID_BODY, "headers": headers}

    def _bodies(self) -> Sequence[object]:
        """A control gets only an invalid body: a server that accepts it without a key must not break its store."""
        return [body for body in (None if self.is_control else self.body, _INVALID_BODY) if self.body is not None] or [
            None
        ]


def protected_operations(target: Target, available_paths: frozenset[str]) -> list[Operation]:
    """Return the operations of this target that require a key. `available_paths`: the optional paths that it has."""
    return [operation for operation in _all() if _has(target, operation, available_paths)]


def optional_paths() -> Sequence[str]:
    """Return the paths that a target may lack without declaring it."""
    return sorted(_OPTIONAL)


def _has(target: Target, operation: Operation, available_paths: frozenset[str]) -> bool:
    path = operation.template
    offer = next((offer for prefix, offer in _NEEDED_OFFERS.items() if path.startswith(prefix)), None)
    if operation.is_control:
        return target.has_api
    return path in available_paths or (path not in _OPTIONAL and (offer is None or offer in target.offers))


def _all() -> Iterator[Operation]:
    paths = {**load_openapi()["paths"], **load_control()["paths"]}
    for template, item in ((path, paths[path]) for path in paths if path not in _PUBLIC):
        for method, operation in item.items():
            if method in _METHODS and operation.get("security") != []:
                yield Operation(method.upper(), template, _example(operation))


def _example(operation: Mapping[str, Any]) -> object:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return next((example["value"] for example in content.get("examples", {}).values()), None)


def _path(template: str, ids: Mapping[str, str]) -> str:
    for name, value in ids.items():
        template = template.replace(name, value)
    return template
