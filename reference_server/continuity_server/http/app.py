"""The application: routes, and the borders that every request crosses (key, errors, CORS, caching)."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from continuity_server.http.chat import ChatHandler
from continuity_server.http.control import ControlHandler
from continuity_server.http.request import PRINCIPAL, RULES, SETTINGS, STREAMING, answer, principal_of, refused
from continuity_server.http.responses import ResponsesHandler
from continuity_server.http.sessions import SessionsHandler
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Refusal
from continuity_server.settings import DEFAULT_MODEL, HEADER, RELEASE, Settings
from continuity_server.store.store import StoreUnreadableError, StoreUnwritableError
from continuity_server.turn.agent import Agent

logger = logging.getLogger("continuity.app")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_HTTP_CASES: Final = {404: Case.NOT_FOUND, 405: Case.METHOD_NOT_ALLOWED, 413: Case.TOO_LARGE}
_HTTP_MESSAGES: Final = {
    404: "There is nothing under this path.",
    405: "This path does not take that method.",
    413: "The body is larger than this server takes. Send less.",
}


def build(settings: Settings, rules: Rules, agent: Agent) -> web.Application:
    app = web.Application(middlewares=[_errors, _cors, _key, _offered], client_max_size=settings.max_body)
    app[SETTINGS] = settings
    app[RULES] = rules
    app.on_response_prepare.append(_headers)
    chat, responses = ChatHandler(agent, rules), ResponsesHandler(agent, rules)
    sessions, control = SessionsHandler(agent, rules), ControlHandler(agent, rules)
    app.add_routes(
        [
            web.get("/health", _health),
            web.get("/v1/models", _models),
            web.get("/v1/capabilities", _capabilities),
            web.post("/v1/chat/completions", chat.post),
            web.post("/v1/responses", responses.post),
            web.get("/v1/responses/{id:[^/]+}", responses.get),
            web.delete("/v1/responses/{id:[^/]+}", responses.delete),
            web.get("/v1/sessions", sessions.list),
            web.get("/v1/sessions/{id:[^/]+}", sessions.get),
            web.delete("/v1/sessions/{id:[^/]+}", sessions.delete),
            web.get("/v1/sessions/{id:[^/]+}/messages", sessions.messages),
            web.post("/conformance/v1/{control}", control.post),
        ]
    )
    return app


async def _health(_: web.Request) -> web.Response:
    return answer({"status": "ok"})


async def _models(_: web.Request) -> web.Response:
    model = {"id": DEFAULT_MODEL, "object": "model", "created": 0, "owned_by": "session-continuity"}
    return answer({"object": "list", "data": [model]})


async def _capabilities(request: web.Request) -> web.Response:
    """DISCOVER-01: the name of the header, the options, and what is offered."""
    facts = capabilities(request.app[SETTINGS])
    return answer({"object": "capabilities", "continuity": request.app[RULES].claims(facts)})


def capabilities(settings: Settings) -> dict[str, Any]:
    offers = ["responses", "streaming", "compression", "idempotency", "sessions", "client-tools"]
    offers += ["cors"] if settings.cors else []
    offers += ["tenants"] if len({key.principal for key in settings.keys}) > 1 else []
    return {
        "release": RELEASE,
        "header": HEADER,
        "options": settings.options.as_json(),
        "offers": offers,
        "single_user": settings.single_user,
        "controls": settings.controls is not None,
    }


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """ISOLATE-12: every error is the OpenAI envelope, with no trace, path, SQL or key in it."""
    rules = request.app[RULES]
    try:
        return await handler(request)
    except Refusal as refusal:
        return refused(refusal, rules)
    except (StoreUnreadableError, StoreUnwritableError):
        return refused(Refusal(Case.HISTORY_UNAVAILABLE, "The store cannot be used now. Try again later."), rules)
    except web.HTTPException as error:
        case = _HTTP_CASES.get(error.status, Case.INVALID_REQUEST)
        response = refused(Refusal(case, _HTTP_MESSAGES.get(error.status, "The request cannot be understood.")), rules)
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers.extend(rules.allow_fields(error.allowed_methods))
        return response
    except Exception:  # the last border: what nobody foresaw is logged here, and told without its trace
        logger.exception("%s %s failed", request.method, request.path)
        if STREAMING in request:
            raise
        return refused(
            Refusal(Case.INTERNAL, "The server has a defect. Report it, with the time of this answer."), rules
        )


@web.middleware
async def _cors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """ECHO-07: the preflight of a web origin that may call."""
    if request.method != "OPTIONS" or not _allowed_origin(request):
        return await handler(request)
    allowed = ", ".join(request.app[RULES].cors_allowed())
    methods = "GET, POST, DELETE, OPTIONS"
    sent = {
        "Access-Control-Allow-Headers": allowed,
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Max-Age": "600",
    }
    return web.Response(status=204, headers=sent)


@web.middleware
async def _key(request: web.Request, handler: Handler) -> web.StreamResponse:
    """ISOLATE-01: the key comes first, before anything is read."""
    rules, settings = request.app[RULES], request.app[SETTINGS]
    known = rules.wants_key(request.method, request.path)
    request[PRINCIPAL] = principal_of(request, settings.keys, rules) if known else settings.first_principal
    return await handler(request)


@web.middleware
async def _offered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """DISCOVER-02: what is offered is there."""
    if not request.app[RULES].serves(request.path):
        raise Refusal(Case.NOT_FOUND, _HTTP_MESSAGES[404])
    return await handler(request)


def _allowed_origin(request: web.Request) -> str | None:
    origin, cors = request.headers.get("Origin"), request.app[SETTINGS].cors
    return origin if origin is not None and (origin in cors or "*" in cors) else None


async def _headers(request: web.Request, response: web.StreamResponse) -> None:
    """On every answer, streams and errors too."""
    cache_control = request.app[RULES].cache_control(request.method, streamed=STREAMING in request)
    if cache_control is not None:
        response.headers["Cache-Control"] = cache_control
    if not request.app[SETTINGS].cors:
        return
    response.headers.add("Vary", "Origin")
    if origin := _allowed_origin(request):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = ", ".join(request.app[RULES].cors_exposed())
