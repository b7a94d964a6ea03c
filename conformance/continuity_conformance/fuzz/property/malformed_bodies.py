"""Malformed bodies: broken JSON, bytes that are not UTF-8, other content types, and bodies that are huge or deep."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.explore import explore
from continuity_conformance.fuzz.findings import Finding, operation_label
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.sync_client import SyncClient
from continuity_conformance.http.messages import Answer, Request

RepeatedTexts = tuple[tuple[str, int], ...]
"""Texts with the number of repetitions of each: a short description of a large body."""
_JSON: Final = ("Content-Type", "application/json")
_NOT_JSON: Final = frozenset({400, 415, 422})
"""The statuses that refuse a body because it is not JSON."""
_MEGABYTES: Final = 20
_DEPTHS: Final = (200, 500, 900, 5_000, 100_000)
_JSON_TYPES: Final = ("application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8")
"""The content types that clients send with JSON."""
_OTHER_TYPES: Final = (
    "text/plain",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b",
    "image/png",
    "application/jsonp",
)
_NO_OBJECTS: Final = (b"", b"{", b"}", b"null", b"true", b"[]", b'"text"', b"7", b"<a/>", b"messages=Hello")
_BROKEN_ENDS: Final = (
    *("", ",}", "}}", "} {}", "}x", ', "a" 1}', ", 'a': 1}", ', "a": 01}'),
    *(', "a": "\x01"}', ', "a": "\\x"}', ', "a": undefined}'),
)
"""Ends that make invalid JSON of a body that is valid up to its last bracket. NaN and lone surrogates are not among them: the
JSON parsers of many languages accept them, and nothing is misread by that (ERROR-06 is stricter)."""
_BAD_BYTES: Final = (b"\xff", b"\xc0\xaf", b"\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82")
"""Invalid UTF-8: an impossible byte, an overlong form, a lone continuation byte, a surrogate, beyond Unicode, a cut
sequence."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Replace some bytes of a valid body: at the fraction `at`, remove `removed` bytes and insert `inserted`."""

    at: float
    removed: int
    inserted: bytes

    def applied_to(self, body: bytes) -> bytes:
        start = int(self.at * len(body))
        return body[:start] + self.inserted + body[start + self.removed :]


_DAMAGES: Final = st.builds(
    Damage, st.floats(0, 0.999), st.integers(0, 3), st.binary(max_size=3) | st.sampled_from(_BAD_BYTES)
)


class MalformedBodies:
    """Sends malformed bodies to each operation of one target that takes a body."""

    def __init__(self, client: SyncClient, names: RunNames, budget: Budget) -> None:
        self._client = client
        self._names = names
        self._budget = budget

    @property
    def _valid_bodies(self) -> dict[str, dict[str, Any]]:
        profile, text = self._client.target.profile, self._names.new()
        bodies: dict[str, dict[str, Any]] = {}
        if "chat" in self._client.target.offers:
            bodies["/v1/chat/completions"] = _chat(profile.model, text)
        if "responses" in self._client.target.offers:
            bodies["/v1/responses"] = {"model": profile.model, "input": text}
        return {path: profile.turn_body(body) for path, body in bodies.items()}

    # CONTRACT-06

    def broken_json(self) -> list[Finding]:
        """A body that is not a JSON object in UTF-8 is refused. Positive control: the intact body is accepted."""
        findings: list[Finding] = []
        for path, body in self._valid_bodies.items():
            findings += self._must_accept(path, _encoded(body))
            findings += self._refuses_damaged(path, body)
        return findings

    def _refuses_damaged(self, path: str, body: dict[str, Any]) -> list[Finding]:
        intact, text = _encoded(body), self._user_text(body)
        broken_ends = [intact[:-1] + end.encode() for end in _BROKEN_ENDS]
        bad_bytes = [intact.replace(text, text + bad) for bad in _BAD_BYTES]
        fixed = [*_NO_OBJECTS, *broken_ends, *bad_bytes]
        damaged = _DAMAGES.map(lambda damage: damage.applied_to(intact)).filter(lambda raw: not is_object(raw))
        return explore(
            damaged,
            lambda raw: self._must_refuse(path, raw, _NOT_JSON),
            self._budget,
            fixed,
            self._client.at_once,
        )

    @staticmethod
    def _user_text(body: dict[str, Any]) -> bytes:
        text = body["input"] if "input" in body else body["messages"][0]["content"]
        return str(text).encode()

    # CONTRACT-13

    def other_content_types(self) -> list[Finding]:
        """JSON with another content type is refused. Positive control: the same bytes as JSON are accepted."""
        findings: list[Finding] = []
        for path, body in self._valid_bodies.items():
            for content_type in _JSON_TYPES:
                findings += self._must_accept(path, _encoded(body), ("Content-Type", content_type))
            for content_type in _OTHER_TYPES:
                findings += self._must_refuse(path, _encoded(body), _NOT_JSON, ("Content-Type", content_type))
        return findings

    # CONTRACT-07

    def huge_or_deep(self) -> list[Finding]:
        """Huge and deep bodies get 2xx or 4xx, and a plain turn is accepted right after them."""
        findings: list[Finding] = []
        for path, body in self._valid_bodies.items():
            for texts in _large_bodies(body):
                findings += self._must_answer(path, texts)
            findings += self._must_accept(path, _encoded(body))
        return findings

    def _must_answer(self, path: str, texts: RepeatedTexts) -> Iterator[Finding]:
        request, answer = self._send(path, "".join(text * times for text, times in texts).encode(), _JSON)
        if not (answer.accepted or 400 <= answer.status < 500):  # noqa: PLR2004 - the class of refusals
            shown = replace(request, made_of=texts)
            yield _finding("2xx or 4xx", str(answer.status or answer.error), shown, answer)

    # All

    def _must_accept(self, path: str, content: bytes, content_type: tuple[str, str] = _JSON) -> Iterator[Finding]:
        request, answer = self._send(path, content, content_type)
        if not answer.accepted:
            yield _finding("the body as it is meant accepted", str(answer.status or answer.error), request, answer)

    def _must_refuse(
        self, path: str, content: bytes, statuses: frozenset[int], content_type: tuple[str, str] = _JSON
    ) -> Iterator[Finding]:
        request, answer = self._send(path, content, content_type)
        expected = " or ".join(map(str, sorted(statuses)))
        if answer.status not in statuses:
            yield _finding(expected, str(answer.status or answer.error), request, answer)

    def _send(self, path: str, content: bytes, content_type: tuple[str, str]) -> tuple[Request, Answer]:
        request = self._client.request("POST", path, content, headers=[content_type])
        return request, self._client.send(request)


def _chat(model: str, text: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}]}


def _encoded(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


def is_object(raw: bytes) -> bool:
    """Whether a parser may take these bytes for a JSON object in UTF-8. Some accept NaN and lone surrogates."""
    try:
        body = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict)


def _large_bodies(body: dict[str, Any]) -> Iterator[RepeatedTexts]:
    """Yield deep and long bodies. The bulk is in an unknown field, so that no model has to read it."""
    head, tail = (f'{json.dumps(body)[:-1]}, "padding": ', 1), ("}", 1)
    for opens, closes in (("[", "]"), ('{"a":', "}")):
        for depth in _DEPTHS:
            yield head, (opens, depth), ("1", 1), (closes, depth), tail
    yield head, ("1", 1_000_000), tail
    yield head, ('"', 1), ("a", _MEGABYTES * 1024 * 1024), ('"', 1), tail


def _finding(expected: str, actual: str, request: Request, answer: Answer) -> Finding:
    return Finding("body", operation_label(request), expected, actual, request, answer)
