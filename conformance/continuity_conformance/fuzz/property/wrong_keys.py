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
from continuity_conformance.http.messages import KeyField, Request, dig

_UNAUTHORIZED: Final = 401
_REFUSALS: Final = frozenset({400, 401, 403})
_ABSENT: Final = frozenset({404, 405, 501})
_PUBLIC_PATHS: Final = frozenset({"/health", "/v1/capabilities"})
"""They say nothing about sessions, so a server may answer everybody."""
_METHODS: Final = ("get", "post", "delete")
_CHAT: Final = "/v1/chat/completions"
_RESPONSES: Final = "/v1/responses"
_CONVERSATIONS: Final = "/v1/conversations"
_CREATED_BY: Final = {"session_id": _CHAT, "response_id": _RESPONSES, "conversation_id": _CONVERSATIONS}
"""The operation that creates what a parameter of a path names."""
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
        documented = [
            (method.upper(), path)
            for path, item in target_document(client.target)["paths"].items()
            for method in _METHODS
            if method in item and path not in _PUBLIC_PATHS
        ]
        self.operations: list[MethodAndPath] = [operation for operation in documented if self._exists(*operation)]

    def _exists(self, method: str, path: str) -> bool:
        """Whether the target has this operation: one that is 404 with the key, too, protects nothing.

        Turns always exist. An operation on one session or response gets a real id, because an unknown one is 404.
        """
        if path in {_CHAT, _RESPONSES}:
            return True
        filled = path
        with self._client.room(int("response" in path)):
            for parameter in _CREATED_BY:
                filled = filled.replace(f"{{{parameter}}}", self._stored(parameter, path))
            return self._client.send(self._client.request(method, filled, self._body(path))).status not in _ABSENT

    def _stored(self, parameter: str, path: str) -> str:
        """Create a session, a response or a conversation if the path names one, and return its id."""
        name = self._names.new()
        if f"{{{parameter}}}" not in path:
            return name
        creating = _CREATED_BY[parameter]
        name = self._names.session() if creating == _CHAT else name
        headers = [(self._client.target.header, name)] if creating == _CHAT else []
        answer = self._client.send(self._client.request("POST", creating, self._body(creating), headers=headers))
        return name if headers else str(dig(answer.body, "id") or name)

    def _body(self, path: str) -> dict[str, object] | None:
        model, text = self._client.target.profile.model, self._names.new()
        bodies: dict[str, dict[str, object]] = {
            _CHAT: {"model": model, "messages": [{"role": "user", "content": text}]},
            _RESPONSES: {"model": model, "input": text},
            _CONVERSATIONS: {},
        }
        return bodies.get(path)

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
        if answer.status not in _REFUSALS:
            yield _finding("401", str(answer.status or answer.error), request, answer)
        elif sessions:
            yield _finding("no continuity header", ", ".join(sessions), request, answer)

    def _request(self, operation: MethodAndPath, header: KeyHeader) -> Request:
        method, path = operation
        filled = path
        for parameter in _CREATED_BY:
            filled = filled.replace(f"{{{parameter}}}", self._names.new())
        name = self._client.target.profile.key_field.name
        others = [pair for pair in self._client.base_headers("nobody") if pair[0].lower() != name.lower()]
        key_header = [(name, header.value)] if header.value is not None else []
        url = f"{self._client.url}{filled}"
        return Request(method, url, (*others, *key_header), self._body(path), key_as=header.shown, key_in=name)


def _finding(expected: str, actual: str, request: Request, answer: Any) -> Finding:
    return Finding("key", operation_label(request), expected, actual, request, answer)
