"""Who is calling, and by which id: what every handler needs of a request, and how it answers."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from continuity_server.http.body import parsed
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.settings import KEYLESS, Key, Settings

PRINCIPAL: Final = web.RequestKey("principal", str)
SETTINGS: Final = web.AppKey("settings", Settings)
RULES: Final = web.AppKey("rules", Rules)
STREAMING: Final = web.RequestKey("streaming", bool)
_LONGEST_KEY: Final = 256


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal, and the session that its header names."""

    principal: str
    session: str | None

    @classmethod
    def of(cls, request: web.Request, rules: Rules) -> "Caller":
        session = rules.sent_id(fields(request))
        if session is not None:
            check_may_continue(request)
        return cls(request[PRINCIPAL], session)


def fields(request: web.Request) -> Iterable[tuple[str, str]]:
    """Give the header fields as they were sent; bytes that are no UTF-8 come out as lone surrogates."""
    return (
        (name.decode("ascii", "replace"), value.decode("utf-8", "surrogateescape"))
        for name, value in request.raw_headers
    )


def check_may_continue(request: web.Request) -> None:
    """ISOLATE-02: where nobody can prove that a session is theirs, none is continued."""
    settings, rules = request.app[SETTINGS], request.app[RULES]
    if not rules.may_continue(keys=bool(settings.keys), single_user=settings.single_user):
        message = "This server has no keys, so nobody can prove that a session is theirs. Configure a key to continue sessions."
        raise Refusal(Case.REQUIRES_KEY, message)


def principal_of(request: web.Request, keys: tuple[Key, ...], rules: Rules) -> str:
    """ISOLATE-01: a missing or wrong key is 401. Every key is compared."""
    if not keys:
        return KEYLESS
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    sent = secret.strip() if scheme.lower() == "bearer" else ""
    found = [key.principal for key in keys if rules.is_key(key.secret, sent)]
    if not found:
        raise rules.unknown_key(fields(request))
    return found[0]


def idempotency_key(request: web.Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and len(key) > _LONGEST_KEY:
        raise invalid(f"The Idempotency-Key has more than {_LONGEST_KEY} characters. Send a shorter one.")
    return key or None


async def json_body(request: web.Request, rules: Rules) -> dict[str, Any]:
    """Read the body, which is a JSON object."""
    return parsed(await request.read(), request.headers.get("Content-Type", ""), rules)


def answer(body: dict[str, Any], said: Iterable[tuple[str, str]] = (), status: int = 200) -> web.Response:
    response = web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")
    response.headers.extend(said)
    return response


def refused(refusal: Refusal, rules: Rules) -> web.Response:
    """Answer with a refusal (ISOLATE-12, ECHO-08, CONCUR-05)."""
    said = rules.error_fields(refusal.session)
    if refusal.retry_after is not None:
        said = [*said, ("Retry-After", str(refusal.retry_after))]
    text, content_type = rules.error_text(rules.error_body(refusal))
    response = web.Response(text=text, status=rules.error_kind(refusal.case).status, content_type=content_type)
    response.headers.extend(said)
    return response
