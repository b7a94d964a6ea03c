"""Who is calling, with which session in the header; and how a handler answers. What every handler needs of a request."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from continuity_server import fast_json
from continuity_server.http.body import parsed
from continuity_server.rules import Rules
from continuity_server.rules.echo import Fields
from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.settings import KEYLESS, Settings

PRINCIPAL: Final = web.RequestKey("principal", str)
STREAMING: Final = web.RequestKey("streaming", bool)
_LONGEST_KEY: Final = 256


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

    def caller(self, request: web.Request) -> Caller:
        session = self._rules.sent_id(fields(request, self._names), self._settings.headers)
        if session is not None:
            self.check_may_continue()
        return Caller(request[PRINCIPAL], session)

    def check_may_continue(self) -> None:
        """ISOLATE-02: where nobody can prove that a session is theirs, none is continued."""
        self._rules.check_may_continue(keys=bool(self._settings.keys), single_user=self._single_user)


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
    return key or None


async def json_body(request: web.Request, rules: Rules) -> dict[str, Any]:
    """Read the body, which must be a JSON object."""
    return parsed(await request.read(), request.headers.get("Content-Type", ""), rules)


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
