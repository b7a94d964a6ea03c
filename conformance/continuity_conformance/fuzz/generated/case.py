"""A generated request: what is sent, and what the document says about it. Knows nothing of the generator."""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from continuity_conformance.fuzz.names import RunNames


class Oddity(enum.StrEnum):
    """What is special about a request that is not about data: its method is not documented, or its path lacks an id."""

    NONE = ""
    METHOD = "method"
    NO_ID = "no id"


class Absent(enum.Enum):
    """The body of a request that has none."""

    BODY = "no body"


NO_BODY: Final = Absent.BODY
_JSON_TYPE: Final = ("Content-Type", "application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCase:
    """One request. `wrong`: the places (`path`, `query`, `header`, `body`) whose data the document rules out. `refused`: it must be refused.

    `body` is JSON data, or bytes that are no JSON. `path` has the decoded ids, `query` is as it is sent.
    """

    operation: str
    method: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: object = NO_BODY
    wrong: tuple[str, ...] = ()
    refused: bool = False
    oddity: Oddity = Oddity.NONE
    fuzzing: bool = False
    description: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the body; none if it is not an object."""
        return self.body if isinstance(self.body, dict) else {}

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def data(self) -> bytes | None:
        """The body as it is sent."""
        if self.body is NO_BODY or isinstance(self.body, bytes):
            return self.body if isinstance(self.body, bytes) else None
        return json.dumps(self.body).encode()

    def renamed(self, names: RunNames, session_header: str, model: str) -> "GeneratedCase":
        """The same request with names of this run, and with the model of the target: servers know their models."""
        body = names.body(self.body) if isinstance(self.body, dict) else self.body
        if isinstance(body, dict) and body.get("model") and isinstance(body["model"], str):
            body = {**body, "model": model}
        return replace(
            self,
            path=names.path_parameters(self.path),
            headers=tuple(names.headers(session_header, dict(self.headers)).items()),
            body=body,
        )

    def as_json(self) -> dict[str, Any]:
        """Everything that differs from the defaults."""
        body = {"bytes": self.body.decode("latin-1")} if isinstance(self.body, bytes) else {"body": self.body}
        values = {
            "operation": self.operation,
            "method": self.method,
            "path": dict(self.path),
            "query": self.query,
            "headers": dict(self.headers),
            "wrong": list(self.wrong),
            "refused": self.refused,
            "oddity": self.oddity.value,
            "fuzzing": self.fuzzing,
            "description": self.description,
        }
        return {name: value for name, value in values.items() if value} | ({} if self.body is NO_BODY else body)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "GeneratedCase":
        raw = values["bytes"].encode("latin-1") if "bytes" in values else NO_BODY
        return cls(
            operation=values["operation"],
            method=values["method"],
            path=values.get("path", {}),
            query=values.get("query", ""),
            headers=tuple(values.get("headers", {}).items()),
            body=values.get("body", raw),
            wrong=tuple(values.get("wrong", ())),
            refused=values.get("refused", False),
            oddity=Oddity(values.get("oddity", "")),
            fuzzing=values.get("fuzzing", False),
            description=values.get("description", ""),
        )


def plain_case(operation: str, method: str, **parts: Any) -> GeneratedCase:
    """A request that is not generated. One with a body says that the body is JSON."""
    headers = (*parts.pop("headers", ()), *([_JSON_TYPE] if "body" in parts else []))
    return GeneratedCase(operation=operation, method=method, headers=headers, **parts)
