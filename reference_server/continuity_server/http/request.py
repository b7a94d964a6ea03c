"""Who is calling, with which session in the header; and how a handler answers. What every handler needs of a request."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from continuity_server import fast_json
from continuity_server.http.body import parsed
from continuity_server.rules import Rules
from continuity_server.rules.echo import Fields
from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.settings import KEYLESS, Settings, is_loopback

PRINCIPAL: Final = web.RequestKey("principal", str)
STREAMING: Final = web.RequestKey("streaming", bool)
_LONGEST_KEY: Final = 256
_BODY_SECONDS: Final = 60.0
"""How long a body may take to arrive."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal, and the session that its header names."""

    principal: str
    session: str | None


class Access:
    """Who may call, and who may continue a session."""

    def __init__(self, settings: Settings, rules: Rules) -> None:
        self._settings = settings
        self._rules = rules
        self._single_user = settings.single_user
        self._names = frozenset(header.lower().encode() for header in settings.headers)

    def principal(self, request: web.Request) -> str:
        """ISOLATE-01: a missing or wrong key is 401, with the same words for both. Every key is compared."""
        if not self._settings.keys:
            return KEYLESS
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        sent = secret.strip() if scheme.lower() == "bearer" else ""
        principals = [key.principal for key in self._settings.keys if self._rules.is_key(key.secret, sent)]
        if not principals:
            raise Refusal(Case.INVALID_KEY, "The API key is missing or wrong. Send a known one as a bearer token.")
        return principals[0]

    def check_origin(self, request: web.Request) -> None:
        """ISOLATE-02: a server without keys trusts this machine, and no web page that a browser on it shows.

        A page may send what it likes, under a name of its own for this address too (DNS rebinding). Browsers say where it comes from.
        """
        if not self._single_user:
            return
        origin = request.headers.get("Origin")
        allowed = origin is None or origin in self._settings.cors or "*" in self._settings.cors
        if not is_loopback(_hostname(f"//{request.host}")) or not (allowed or is_loopback(_hostname(origin or ""))):
            message = "This server has no keys, so it answers no web pages of other sites. Configure a key, or allow the site with --cors."
            raise Refusal(Case.REQUIRES_KEY, message)

    def caller(self, request: web.Request) -> Caller:
        session = self._rules.sent_id(fields(request, self._names), self._settings.headers)
        if session is not None:
            self.check_may_continue()
        return Caller(request[PRINCIPAL], session)

    def check_may_continue(self) -> None:
        """ISOLATE-02: where nobody can prove that a session is theirs, none is continued."""
        self._rules.check_may_continue(keys=bool(self._settings.keys), single_user=self._single_user)


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def fields(request: web.Request, names: Collection[bytes]) -> Fields:
    """Return the header fields of these names, in any case, as they were sent. Bytes that are not UTF-8 become lone surrogates."""
    return [
        (name.decode("ascii"), value.decode("utf-8", "surrogateescape"))
        for name, value in request.raw_headers
        if name.lower() in names
    ]


def idempotency_key(request: web.Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and len(key) > _LONGEST_KEY:
        raise invalid(f"The Idempotency-Key has more than {_LONGEST_KEY} characters. Send a shorter one.")
    if key is not None and not key.isascii() and any("\ud800" <= character <= "\udfff" for character in key):
        raise invalid("The Idempotency-Key is no UTF-8. Send another one.")
    return key or None


async def json_body(request: web.Request, rules: Rules) -> dict[str, Any]:
    """Read the body, which must be a JSON object. What a web page sends without a type is none: it needs nobody's leave to send that anywhere."""
    untyped = "text/plain" if "Origin" in request.headers else ""
    return parsed(await _body(request), request.headers.get("Content-Type", untyped), rules)


async def _body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        message = f"The body did not arrive within {_BODY_SECONDS:g} s. Send it again."
        raise Refusal(Case.INVALID_REQUEST, message) from None
    except ConnectionError:  # nobody reads this answer, and it is no defect that the log should show
        raise Refusal(Case.INVALID_REQUEST, "The connection was lost before the body had arrived.") from None


def answer(body: dict[str, Any], headers: Iterable[tuple[str, str]] = (), status: int = 200) -> web.Response:
    response = web.Response(body=fast_json.written(body), status=status, content_type="application/json")
    response.headers.extend(headers)
    return response


def refused(refusal: Refusal, rules: Rules) -> web.Response:
    """Answer with a refusal (ISOLATE-12, ECHO-08, CONCUR-05)."""
    text, content_type = rules.error_text(rules.error_body(refusal))
    response = web.Response(text=text, status=rules.error_kind(refusal.case).status, content_type=content_type)
    response.headers.extend(rules.error_fields(refusal.session))
    response.headers.extend(rules.retry_fields(refusal))
    return response
