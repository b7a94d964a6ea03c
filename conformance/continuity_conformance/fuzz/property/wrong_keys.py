"""CONTRACT-08: every operation requires the key, whatever the key header contains and whatever the request is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.explore import explore
from continuity_conformance.fuzz.findings import Finding, operation_label
from continuity_conformance.fuzz.generated.document import target_document
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.sync_client import SyncClient
from continuity_conformance.http.auth import KeyField
from continuity_conformance.http.messages import Request, dig

_UNAUTHORIZED: Final = 401
_PUBLIC_PATHS: Final = frozenset({"/health"})
_METHODS: Final = ("get", "post", "delete")
_BODIES: Final[dict[str, object]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hello"}]},
    "/v1/responses": {"input": "Hello", "store": False},
}
MethodAndPath = tuple[str, str]


def find_unprotected_operations(client: SyncClient, names: RunNames, budget: Budget) -> list[Finding]:
    """Return every request that was accepted with a wrong key, or refused with the right one."""
    key, key_field = client.target.profile.principals["alice"], client.target.profile.key_field
    trial = _KeyTrial(client, names)
    findings = [finding for operation in trial.operations for finding in trial.with_right_key(operation)]
    missing = [(operation, KeyHeader(None, "")) for operation in trial.operations]
    similar = [(operation, header) for operation in trial.operations for header in similar_keys(key_field, key)]
    generated = st.tuples(st.sampled_from(trial.operations), wrong_keys(key_field, key))
    return findings + explore(generated, lambda pair: trial.with_wrong_key(*pair), budget, [*missing, *similar])


@dataclass(frozen=True, slots=True)
class KeyHeader:
    """The value of the header that carries a key, and how reports show it.

    `shown` has `{key}` in place of the key (see `curl.py`): reports hide values that are similar to a key too.
    """

    value: str | None
    shown: str


def similar_keys(key_field: KeyField, key: str) -> list[KeyHeader]:
    """Return values that are almost the key: a careless comparison accepts one of them."""
    keys = (
        (f"{key}x", "{key}x"),
        (f"x{key}", "x{key}"),
        (key[:-1], "{cut}"),
        (key.swapcase(), "{swapped}"),
        (f"{key},{key}", "{key},{key}"),
        ("null", "null"),
    )
    headers = [KeyHeader(key_field.filled(value)[1], key_field.filled(shown)[1]) for value, shown in keys]
    headers += [KeyHeader(f"Basic {key}", "Basic {key}"), KeyHeader(key, "{key}"), KeyHeader("Bearer", "Bearer")]
    return [header for header in headers if header.value != key_field.filled(key)[1]]


def wrong_keys(key_field: KeyField, key: str) -> st.SearchStrategy[KeyHeader]:
    """Any value except the right one."""
    letters = st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="{}")
    text = st.text(letters, min_size=1, max_size=20)
    schemes = st.sampled_from(["Bearer", "bearer", "Basic", "Token"])
    unrelated = st.builds(lambda scheme, value: KeyHeader(f"{scheme} {value}", f"{scheme} {value}"), schemes, text)
    longer = text.map(lambda end: KeyHeader(key_field.filled(f"{key}{end}")[1], key_field.filled(f"{{key}}{end}")[1]))
    return unrelated | longer


class _KeyTrial:
    def __init__(self, client: SyncClient, names: RunNames) -> None:
        self._client = client
        self._names = names
        self.operations: list[MethodAndPath] = [
            (method.upper(), path)
            for path, item in target_document(client.target)["paths"].items()
            for method in _METHODS
            if method in item and path not in _PUBLIC_PATHS
        ]

    def with_right_key(self, operation: MethodAndPath) -> Iterator[Finding]:
        """Positive control: with the right key the same request does not get a 401."""
        key = self._client.target.profile.principals["alice"]
        key_field = self._client.target.profile.key_field
        request = self._request(operation, KeyHeader(key_field.filled(key)[1], key_field.value))
        answer = self._client.send(request)
        if answer.status in {0, _UNAUTHORIZED} or answer.status >= 500:  # noqa: PLR2004 - the class of failures
            yield _finding("with the key, no 401", str(answer.status or answer.error), request, answer)

    def with_wrong_key(self, operation: MethodAndPath, header: KeyHeader) -> Iterator[Finding]:
        request = self._request(operation, header)
        answer = self._client.send(request)
        sessions = answer.fields(self._client.target.header)
        if answer.status != _UNAUTHORIZED:
            yield _finding("401", str(answer.status or answer.error), request, answer)
        elif sessions:
            yield _finding("no continuity header", ", ".join(sessions), request, answer)
        elif not isinstance(dig(answer.body, "error", "message"), str):
            yield _finding("401 with the error envelope", answer.text[:120] or "no body", request, answer)

    def _request(self, operation: MethodAndPath, header: KeyHeader) -> Request:
        method, path = operation
        filled = path.replace("{session_id}", self._names.new()).replace("{response_id}", self._names.new())
        name = self._client.target.profile.key_field.name
        others = [pair for pair in self._client.base_headers("nobody") if pair[0].lower() != name.lower()]
        key_header = [(name, header.value)] if header.value is not None else []
        url = f"{self._client.url}{filled}"
        return Request(method, url, (*others, *key_header), _BODIES.get(path), key_as=header.shown, key_in=name)


def _finding(expected: str, actual: str, request: Request, answer: Any) -> Finding:
    return Finding("key", operation_label(request), expected, actual, request, answer)
