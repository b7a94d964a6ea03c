"""Middleware: what every request passes through (errors, CORS, key), and the headers that every answer carries."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from continuity_server.http.request import PRINCIPAL, STREAMING, Access, refused
from continuity_server.rules import Rules
from continuity_server.rules.echo import CORS_ALLOWED, CORS_EXPOSED
from continuity_server.rules.error import Case, Refusal
from continuity_server.settings import Settings
from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.store import StoreUnreadableError

logger = logging.getLogger("continuity.app")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_HTTP_CASES: Final = {404: Case.NOT_FOUND, 405: Case.METHOD_NOT_ALLOWED, 413: Case.TOO_LARGE}
_HTTP_MESSAGES: Final = {
    404: "There is nothing under this path.",
    405: "This path does not take that method.",
    413: "The body is larger than this server takes. Send less.",
}


class Middleware:
    """The layers around all handlers."""

    def __init__(self, settings: Settings, rules: Rules, access: Access) -> None:
        self._settings = settings
        self._rules = rules
        self._access = access

    @web.middleware
    async def errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """ISOLATE-12: every error is the OpenAI envelope, with no trace, path, SQL or key in it."""
        try:
            return await handler(request)
        except Refusal as refusal:
            return refused(refusal, self._rules)
        except (StoreUnreadableError, StoreUnwritableError):
            unusable = Refusal(Case.HISTORY_UNAVAILABLE, "The store cannot be used now. Try again later.")
            return refused(unusable, self._rules)
        except web.HTTPException as error:
            return self._http_error(error)
        except Exception:  # what nobody foresaw is logged here, and answered without its trace
            logger.exception("%s %s failed", request.method, request.path)
            if STREAMING in request:
                raise
            internal = Refusal(Case.INTERNAL, "The server has a defect. Report it, with the time of this answer.")
            return refused(internal, self._rules)

    def _http_error(self, error: web.HTTPException) -> web.Response:
        case = _HTTP_CASES.get(error.status, Case.INVALID_REQUEST)
        message = _HTTP_MESSAGES.get(error.status, "The request cannot be understood.")
        response = refused(Refusal(case, message), self._rules)
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers.extend(self._rules.allow_fields(error.allowed_methods))
        return response

    @web.middleware
    async def cors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """ECHO-07: answer the preflight request of a web origin that may call."""
        if request.method != "OPTIONS" or not self._allowed_origin(request):
            return await handler(request)
        headers = {
            "Access-Control-Allow-Headers": ", ".join([*CORS_ALLOWED, *self._settings.other_headers]),
            "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
            "Access-Control-Max-Age": "600",
        }
        return web.Response(status=204, headers=headers)

    @web.middleware
    async def key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """ISOLATE-01: the key is checked first, before anything is read. Without keys it is where the request comes from."""
        wanted = self._rules.wants_key(request.method, request.path)
        if wanted:
            self._access.check_origin(request)
        request[PRINCIPAL] = self._access.principal(request) if wanted else self._settings.first_principal
        return await handler(request)

    async def headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers of every answer, also of streams and errors. ISOLATE-11: no cache keeps a conversation."""
        response.headers["Cache-Control"] = "no-store"
        if not self._settings.cors:
            return
        response.headers.add("Vary", "Origin")
        if origin := self._allowed_origin(request):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = ", ".join(CORS_EXPOSED)

    def _allowed_origin(self, request: web.Request) -> str | None:
        origin, allowed = request.headers.get("Origin"), self._settings.cors
        return origin if origin is not None and (origin in allowed or "*" in allowed) else None
