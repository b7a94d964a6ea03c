"""Redaction: keeps secrets out of everything that a run writes (results, reports, messages).

A secret is hidden in every form in which the kit and its libraries write it: plain, percent-encoded, inside JSON and inside base64. A value of fewer than four
characters cannot be told apart from ordinary text; it is hidden only as the value of its header field.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.text import visible, without_middle
from continuity_conformance.core.urls import split
from continuity_conformance.core.verdicts import Result
from continuity_conformance.http.curl import HIDDEN
from continuity_conformance.target.profile import DEFAULT_HEADER, Profile

BODY_KEPT: Final = 4000
_HEADERS_KEPT: Final = 100
_SHORTEST: Final = 4
_SHORTEST_IN_BASE64: Final = 6
_WORTH_GUESSING: Final = 8
"""From this length on, a key without its last letter is hidden too. A shorter one may be an ordinary word."""
_SECRET_NAME: Final = re.compile(r"authori[sz]ation|cookie|token|secret|passw|api-?key|credential", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:bearer|basic|digest|token|api-?key)\s+(\S+)", re.IGNORECASE)


@dataclass(frozen=True)
class Redactor:
    """Hides the secrets of a run in any text. `hidden`: names of header fields whose value is never shown; `shown`: a header field whose value always is."""

    secrets: tuple[str, ...]
    hidden: frozenset[str] = field(default=frozenset())
    shown: str = ""

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """All forms of all secrets, the longest first: one may contain another."""
        return tuple(sorted({form for secret in self.secrets for form in _forms(secret)}, key=len, reverse=True))

    def hides(self, text: str) -> bool:
        """Whether the text contains a secret."""
        return any(form in text for form in self._forms)

    def text(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return str(visible(text))

    def body(self, text: str) -> str:
        """Redact, then cut a long text and say by how much. Cutting first could leave half a secret."""
        text = self.text(text)
        return text if len(text) <= BODY_KEPT else f"{text[:BODY_KEPT]}… ({len(text) - BODY_KEPT} more characters)"

    def stream(self, text: str) -> str:
        """Redact a stream and cut its middle: its end says how it ended."""
        return without_middle(self.text(text), BODY_KEPT)

    def headers(self, headers: Sequence[tuple[str, str]]) -> list[list[str]]:
        kept = [[self.body(name), self._value(name, value)] for name, value in headers[:_HEADERS_KEPT]]
        more = len(headers) - _HEADERS_KEPT
        return [*kept, *([["…", f"({more} more header fields)"]] if more > 0 else [])]

    def _value(self, name: str, value: str) -> str:
        secret = name.lower() in self.hidden or names_a_secret(name)
        return HIDDEN if secret and name.lower() != self.shown.lower() else self.body(value)

    def result(self, result: Result) -> Result:
        """The result with its reasons redacted. Exchanges and failures were redacted when they were recorded."""
        evidence = tuple(replace(each, reason=self.body(each.reason)) for each in result.evidence)
        return replace(result, reason=self.body(result.reason), evidence=evidence)

    def error(self, error: ContinuityError) -> ContinuityError:
        return type(error)(self.text(error.what), where=self.text(error.where), do=self.text(error.do))


def names_a_secret(field: str) -> bool:
    """Whether the name of a header field suggests that its value is a secret."""
    return _SECRET_NAME.search(field) is not None


def redactor_of(profile: Profile, *urls: str) -> Redactor:
    """The redactor of a run with this profile: it hides the profile's secrets, their parts, and secrets in URLs."""
    configured = (*profile.secrets, *(part for value in profile.headers.values() for part in _parts(value)))
    in_urls = (secret for url in (*urls, profile.probe) for secret in url_secrets(url))
    identities = [name for fields in profile.identities.values() for name in fields]
    names = frozenset(name.lower() for name in (*profile.headers, *identities, profile.key_field.name))
    # ISOLATE-01 sends keys with one error; whoever reads one of them knows the key.
    long = [key for key in profile.principals.values() if len(key) >= _WORTH_GUESSING]
    almost = (form for key in long for form in (key[:-1], key.swapcase()))
    return Redactor((*configured, *almost, *in_urls), names, profile.header or DEFAULT_HEADER)


def url_secrets(url: str) -> Iterator[str]:
    """The password and the values of the query, encoded and decoded."""
    parts = split(url)
    account = parts.netloc.rpartition("@")[0]
    password = account.partition(":")[2]
    yield from (password, unquote(password), unquote(account) if password else "")
    yield from (value for _, value in parse_qsl(parts.query))


def _parts(value: str) -> Iterator[str]:
    """The credentials inside a header value. A server may repeat them without the rest of the value."""
    scheme = _SCHEME.fullmatch(value.strip())
    if scheme:
        yield scheme[1]
        yield from _password(scheme[1])
    yield from (each.partition("=")[2].strip() for each in value.split(";") if "=" in each)


def _password(encoded: str) -> Iterator[str]:
    """The password in `user:password` of basic authentication."""
    try:
        account = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return
    yield account.partition(":")[2]


def _forms(secret: str) -> Iterable[str]:
    """Every form in which the kit or a library may have written the secret."""
    if len(secret) < _SHORTEST:
        return
    yield from (secret, repr(secret)[1:-1])
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        # Bodies are JSON, and some contain JSON inside strings (tool arguments, errors of other servers).
        yield from (once, json.dumps(once, ensure_ascii=ascii_only)[1:-1])
    for encoded in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield from (encoded, re.sub("%..", lambda match: match[0].lower(), encoded))
    if len(secret) >= _SHORTEST_IN_BASE64:
        yield from (_inside_base64(secret.encode("utf-8", "surrogateescape"), before) for before in range(3))


def _inside_base64(secret: bytes, before: int) -> str:
    """The base64 digits that depend on the secret alone, where `before` bytes (modulo three) precede it."""
    digits = base64.b64encode(bytes(before) + secret).decode()
    return digits[-(-before * 4 // 3) : (before + len(secret)) * 4 // 3]
