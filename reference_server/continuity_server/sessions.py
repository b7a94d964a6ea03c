"""GET and DELETE /v1/sessions/{id}, GET /v1/sessions/{id}/messages: what is stored, as it is stored."""

from aiohttp import web

from continuity_server.agent import Agent
from continuity_server.continuity import Rules
from continuity_server.echo import Surface
from continuity_server.errors import Case, Refusal
from continuity_server.lineage import Session
from continuity_server.request import PRINCIPAL, answer, check_may_continue
from continuity_server.schema import DELETE_CHAIN


class Sessions:
    """The endpoints. An id names that one session here: a stale parent shows itself, not its tip (COMPRESS-10)."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent = agent
        self._rules = rules

    async def get(self, request: web.Request) -> web.Response:
        owner, session = self._found(request)
        tip = self._agent.resolver.tip(owner, session.id) or session
        return answer(
            {
                "id": session.id,
                "object": "session",
                "created_at": session.created,
                "parent_id": session.parent,
                "end_reason": session.end_reason,
                "tip_id": tip.id,
            }
        )

    async def messages(self, request: web.Request) -> web.Response:
        owner, session = self._found(request)
        line = self._rules.line(session.id, Surface.CHAT)
        stored = self._agent.store.messages(owner, line, session.epoch)
        return answer({"object": "list", "data": stored})

    async def delete(self, request: web.Request) -> web.Response:
        """DELETE-01: the whole compression chain, once its running turn is over."""
        owner, session = self._found(request)
        async with self._agent.locks.hold(("chain", owner, session.root)):
            self._found(request)
            await self._agent.store.execute(*((statement, (owner, session.root)) for statement in DELETE_CHAIN))
        return answer({"id": session.id, "object": "session", "deleted": True})

    def _found(self, request: web.Request) -> tuple[str, Session]:
        """ISOLATE-06: a foreign session is as unknown."""
        check_may_continue(request)
        ident = request.match_info["id"]
        owner = self._rules.owner(request[PRINCIPAL], ident)
        session = self._agent.store.session(owner, ident)
        if session is None:
            raise Refusal(Case.SESSION_NOT_FOUND, "There is no session with this id.")
        return owner, session
