"""CONTRACT-08: the key is asked for on every operation, whatever stands in the field of the key and whatever is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.explore import explored
from continuity_conformance.fuzz.findings import Finding, label_of
from continuity_conformance.fuzz.generated.document import document_of
from continuity_conformance.fuzz.names import Namespace
from continuity_conformance.fuzz.sync_client import Wire
from continuity_conformance.http.auth import KeyField
from continuity_conformance.http.messages import Request, dig

_UNAUTHORIZED: Final = 401
_KEYLESS: Final = frozenset({"/health"})
_METHODS: Final = ("get", "post", "delete")
_BODIES: Final[dict[str, object]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hello"}]},
    "/v1/responses": {"input": "Hello", "store": False},
}


def unguarded(wire: Wire, names: Namespace, budget: Budget) -> list[Finding]:
    """Everything that was answered although the key was not the key."""
    key, sent = wire.target.profile.principals["alice"], wire.target.profile.key_field
    guard = _Guard(wire, names)
    found = [finding for place in guard.places for finding in guard.with_key(*place)]
    missing = [(place, Field(None, "")) for place in guard.places]
    almost = [(place, field) for place in guard.places for field in near(sent, key)]
    tries = st.tuples(st.sampled_from(guard.places), wrong_fields(sent, key))
    return found + explored(tries, lambda tried: guard.without(*tried), budget, [*missing, *almost])


Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Field:
    """The value of the field that carries a key, and what of it is shown, where `{key}` is the key (`curl.py`): what is almost a key is not shown either."""

    value: str | None
    shown: str


def near(sent: KeyField, key: str) -> list[Field]:
    """What is almost the key: a careless comparison takes one of these for it."""
    keys = (
        (f"{key}x", "{key}x"),
        (f"x{key}", "x{key}"),
        (key[:-1], "{cut}"),
        (key.swapcase(), "{swapped}"),
        (f"{key},{key}", "{key},{key}"),
        ("null", "null"),
    )
    fields = [Field(sent.filled(value)[1], sent.filled(shown)[1]) for value, shown in keys]
    fields += [Field(f"Basic {key}", "Basic {key}"), Field(key, "{key}"), Field("Bearer", "Bearer")]
    return [field for field in fields if field.value != sent.filled(key)[1]]


def wrong_fields(sent: KeyField, key: str) -> st.SearchStrategy[Field]:
    """Any value but the right one."""
    letters = st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="{}")
    text = st.text(letters, min_size=1, max_size=20)
    schemes = st.sampled_from(["Bearer", "bearer", "Basic", "Token"])
    made_up = st.builds(lambda scheme, said: Field(f"{scheme} {said}", f"{scheme} {said}"), schemes, text)
    longer = text.map(lambda end: Field(sent.filled(f"{key}{end}")[1], sent.filled(f"{{key}}{end}")[1]))
    return made_up | longer


class _Guard:
    def __init__(self, wire: Wire, names: Namespace) -> None:
        self._wire = wire
        self._names = names
        self.places: list[Place] = [
            (method.upper(), path)
            for path, item in document_of(wire.target)["paths"].items()
            for method in _METHODS
            if method in item and path not in _KEYLESS
        ]

    def with_key(self, method: str, path: str) -> Iterator[Finding]:
        """The twin: with the key the same request is not refused for it."""
        key = self._wire.target.profile.principals["alice"]
        sent = self._wire.target.profile.key_field
        request = self._request((method, path), Field(sent.filled(key)[1], sent.value))
        answer = self._wire.send(request)
        if answer.status in {0, _UNAUTHORIZED} or answer.status >= 500:  # noqa: PLR2004 - the class of failures
            yield _finding("with the key, no 401", str(answer.status or answer.error), request, answer)

    def without(self, place: Place, field: Field) -> Iterator[Finding]:
        request = self._request(place, field)
        answer = self._wire.send(request)
        told = answer.fields(self._wire.target.header)
        if answer.status != _UNAUTHORIZED:
            yield _finding("401", str(answer.status or answer.error), request, answer)
        elif told:
            yield _finding("no continuity header", ", ".join(told), request, answer)
        elif not isinstance(dig(answer.body, "error", "message"), str):
            yield _finding("401 with the error envelope", answer.text[:120] or "no body", request, answer)

    def _request(self, place: Place, field: Field) -> Request:
        method, path = place
        filled = path.replace("{session_id}", self._names.fresh()).replace("{response_id}", self._names.fresh())
        name = self._wire.target.profile.key_field.name
        fields = [pair for pair in self._wire.key_fields("nobody") if pair[0].lower() != name.lower()]
        sent = [(name, field.value)] if field.value is not None else []
        url = f"{self._wire.url}{filled}"
        return Request(method, url, (*fields, *sent), _BODIES.get(path), key_as=field.shown, key_in=name)


def _finding(expected: str, actual: str, request: Request, answer: Any) -> Finding:
    return Finding("key", label_of(request), expected, actual, request, answer)
