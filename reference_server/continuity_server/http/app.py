"""The application: which handler answers which path."""

from aiohttp import web

from continuity_server.http.chat import ChatHandler
from continuity_server.http.control import ControlHandler
from continuity_server.http.conversations import ConversationsHandler
from continuity_server.http.middleware import Middleware
from continuity_server.http.request import answer
from continuity_server.http.responses import ResponsesHandler
from continuity_server.http.sessions import SessionsHandler
from continuity_server.rules import Rules
from continuity_server.settings import DEFAULT_MODEL, Settings
from continuity_server.store.interface import AnyStore


class App:
    """All endpoints. Those that say something about the server itself are here."""

    def __init__(  # noqa: PLR0913 - one parameter a handler
        self,
        settings: Settings,
        rules: Rules,
        middleware: Middleware,
        store: AnyStore,
        *,
        chat: ChatHandler,
        responses: ResponsesHandler,
        conversations: ConversationsHandler,
        sessions: SessionsHandler,
        control: ControlHandler,
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._middleware = middleware
        self._store = store
        self._chat = chat
        self._responses = responses
        self._conversations = conversations
        self._sessions = sessions
        self._control = control

    def build(self) -> web.Application:
        around = self._middleware
        app = web.Application(
            middlewares=[around.errors, around.cors, around.key], client_max_size=self._settings.max_body
        )
        app.on_response_prepare.append(around.headers)
        app.add_routes(self.routes())
        return app

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/health", self._health),
            web.get("/v1/models", self._models),
            web.get("/v1/capabilities", self._capabilities),
            web.post("/v1/chat/completions", self._chat.post),
            web.post("/v1/responses", self._responses.post),
            web.get("/v1/responses/{id:[^/]+}", self._responses.get),
            web.delete("/v1/responses/{id:[^/]+}", self._responses.delete),
            web.post("/v1/conversations", self._conversations.post),
            web.get("/v1/conversations/{id:[^/]+}", self._conversations.get),
            web.delete("/v1/conversations/{id:[^/]+}", self._conversations.delete),
            web.get("/v1/sessions", self._sessions.list),
            web.get("/v1/sessions/{id:[^/]+}", self._sessions.get),
            web.delete("/v1/sessions/{id:[^/]+}", self._sessions.delete),
            web.get("/v1/sessions/{id:[^/]+}/messages", self._sessions.messages),
            web.post("/conformance/v1/{control}", self._control.post),
        ]

    async def _health(self, _: web.Request) -> web.Response:
        """Say whether the store works too. The status stays 200: this server runs, and a restart mends no disk."""
        failures = self._store.failures()
        return answer({"status": "degraded", "store": failures} if failures else {"status": "ok"})

    async def _models(self, _: web.Request) -> web.Response:
        model = {"id": DEFAULT_MODEL, "object": "model", "created": 0, "owned_by": "session-continuity"}
        return answer({"object": "list", "data": [model]})

    async def _capabilities(self, _: web.Request) -> web.Response:
        capabilities = self._rules.capabilities(self._settings)
        return answer({"object": "capabilities", "continuity": capabilities})
