"""Bodies that no client means: broken JSON, bytes that are no UTF-8, other content types, too much of everything."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.explore import explored
from continuity_conformance.fuzz.findings import Finding, label_of
from continuity_conformance.fuzz.names import Namespace
from continuity_conformance.fuzz.sync_client import Wire
from continuity_conformance.http.messages import Answer, Request, dig

Parts = tuple[tuple[str, int], ...]
"""Texts, and how often each comes."""
_JSON: Final = ("Content-Type", "application/json")
_MEGABYTES: Final = 20
_DEPTHS: Final = (200, 500, 900, 5_000, 100_000)
_AS_JSON: Final = ("application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8")
"""How clients announce JSON."""
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
    *("", ",}", "}}", "} {}", "}x", ', "a" 1}', ", 'a': 1}", ', "a": NaN}', ', "a": -Infinity}', ', "a": 01}'),
    *(', "a": "\x01"}', ', "a": "\\x"}', ', "a": "\\ud800"}', ', "a": undefined}'),
)
"""What makes a body that is right up to its last bracket no JSON."""
_BAD_BYTES: Final = (b"\xff", b"\xc0\xaf", b"\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82")
"""No UTF-8: a byte that never occurs, an overlong form, a lone continuation, a surrogate, beyond Unicode, a cut sequence."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A valid body with some bytes of it replaced."""

    at: float
    taken: int
    put: bytes

    def on(self, body: bytes) -> bytes:
        start = int(self.at * len(body))
        return body[:start] + self.put + body[start + self.taken :]


_DAMAGES: Final = st.builds(
    Damage, st.floats(0, 0.999), st.integers(0, 3), st.binary(max_size=3) | st.sampled_from(_BAD_BYTES)
)


class Malformed:
    """The bodies of one target, sent to each operation that takes one."""

    def __init__(self, wire: Wire, names: Namespace, budget: Budget) -> None:
        self._wire = wire
        self._names = names
        self._budget = budget

    @property
    def _bodies(self) -> dict[str, dict[str, Any]]:
        model, said = self._wire.target.profile.model, self._names.fresh()
        bodies: dict[str, dict[str, Any]] = {
            "/v1/chat/completions": {"model": model, "messages": [{"role": "user", "content": said}]}
        }
        if "responses" in self._wire.target.offers:
            bodies["/v1/responses"] = {"model": model, "input": said}
        return bodies

    # CONTRACT-06

    def broken(self) -> list[Finding]:
        """What is no JSON object in UTF-8 is refused with 400, and the same body whole is accepted."""
        found: list[Finding] = []
        for path, body in self._bodies.items():
            found += self._accepted(path, _bytes(body))
            found += self._refused_all(path, body)
        return found

    def _refused_all(self, path: str, body: dict[str, Any]) -> list[Finding]:
        whole, said = _bytes(body), self._said(body)
        ends = [whole[:-1] + end.encode() for end in _BROKEN_ENDS]
        inside = [whole.replace(said, said + bad) for bad in _BAD_BYTES]
        first = [*_NO_OBJECTS, *ends, *inside, whole.decode().encode("utf-16")]
        damaged = _DAMAGES.map(lambda damage: damage.on(whole)).filter(lambda raw: not is_object(raw))
        return explored(damaged, lambda raw: self._refused(path, raw, {400}), self._budget, first)

    @staticmethod
    def _said(body: dict[str, Any]) -> bytes:
        said = body["input"] if "input" in body else body["messages"][0]["content"]
        return str(said).encode()

    # CONTRACT-13

    def other_types(self) -> list[Finding]:
        """JSON that is announced as something else is refused, and the same bytes as JSON are accepted."""
        found: list[Finding] = []
        for path, body in self._bodies.items():
            for kind in _AS_JSON:
                found += self._accepted(path, _bytes(body), ("Content-Type", kind))
            for kind in _OTHER_TYPES:
                found += self._refused(path, _bytes(body), {400, 415}, ("Content-Type", kind))
        return found

    # CONTRACT-07

    def too_much(self) -> list[Finding]:
        """Huge and deep bodies are answered, accepted or refused with 4xx, and a plain turn is accepted right after."""
        found: list[Finding] = []
        for path, body in self._bodies.items():
            for made_of in _large(body):
                found += self._answered(path, made_of)
            found += self._accepted(path, _bytes(body))
        return found

    def _answered(self, path: str, made_of: Parts) -> Iterator[Finding]:
        request, answer = self._sent(path, "".join(text * times for text, times in made_of).encode(), _JSON)
        if not (answer.accepted or 400 <= answer.status < 500):  # noqa: PLR2004 - the class of refusals
            shown = replace(request, made_of=made_of)
            yield _finding("2xx or 4xx", str(answer.status or answer.error), shown, answer)

    # All

    def _accepted(self, path: str, content: bytes, kind: tuple[str, str] = _JSON) -> Iterator[Finding]:
        request, answer = self._sent(path, content, kind)
        if not answer.accepted:
            yield _finding("the body as it is meant accepted", str(answer.status or answer.error), request, answer)

    def _refused(
        self, path: str, content: bytes, statuses: set[int], kind: tuple[str, str] = _JSON
    ) -> Iterator[Finding]:
        request, answer = self._sent(path, content, kind)
        expected = " or ".join(map(str, sorted(statuses)))
        if answer.status not in statuses:
            yield _finding(expected, str(answer.status or answer.error), request, answer)
        elif not isinstance(dig(answer.body, "error", "message"), str):
            yield _finding(f"{expected} with the error envelope", answer.text[:120] or "no body", request, answer)

    def _sent(self, path: str, content: bytes, kind: tuple[str, str]) -> tuple[Request, Answer]:
        request = self._wire.request("POST", path, content, headers=[kind])
        return request, self._wire.send(request)


def _bytes(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


def is_object(raw: bytes) -> bool:
    """Whether these bytes are a JSON object in UTF-8, by the letter."""
    try:
        body = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict)


def _no_number(name: str) -> float:
    raise ValueError(name)


def _large(body: dict[str, Any]) -> Iterator[Parts]:
    """Bodies, as the texts that make them up. The bulk stands in a field that nobody reads, so that no model is asked with it."""
    head, tail = (f'{json.dumps(body)[:-1]}, "padding": ', 1), ("}", 1)
    for opens, closes in (("[", "]"), ('{"a":', "}")):
        for depth in _DEPTHS:
            yield head, (opens, depth), ("1", 1), (closes, depth), tail
    yield head, ("1", 1_000_000), tail
    yield head, ('"', 1), ("a", _MEGABYTES * 1024 * 1024), ('"', 1), tail


def _finding(expected: str, actual: str, request: Request, answer: Answer) -> Finding:
    return Finding("body", label_of(request), expected, actual, request, answer)
