"""GET and DELETE /v1/sessions…: what is stored, as it is stored."""

from typing import Any

from aiohttp import web

from continuity_server.http.body import LONGEST_NAME
from continuity_server.http.request import PRINCIPAL, answer, check_may_continue
from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.rules.isolate import Act
from continuity_server.store.schema import ERASE
from continuity_server.turn.agent import Agent


class SessionsHandler:
    """The endpoints. An id names that one session here: a stale parent shows itself, not its tip (COMPRESS-10)."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent = agent
        self._rules = rules

    async def get(self, request: web.Request) -> web.Response:
        owner, session = self._found(request, Act.READ)
        tip = self._agent.resolver.tip(owner, session.id) or session
        return answer(
            {**_shown(session), "tip_id": tip.id, "conversation": self._agent.store.slug_of(owner, session.root)}
        )

    async def list(self, request: web.Request) -> web.Response:
        """ISOLATE-06: the principal's own sessions, the newest first."""
        self._begin(request)
        limit = self._rules.page_limit(request.query.get("limit", "20"))
        after = request.query.get("after")
        if after is not None and not 0 < len(after) <= LONGEST_NAME:
            raise invalid(f"after is no id of 1 to {LONGEST_NAME} characters.", "after")
        owners = self._rules.listed(request[PRINCIPAL], self._agent.store.owners)
        found = self._agent.store.sessions(owners, after, limit + 1)
        shown = [_shown(session) for session in found[:limit]]
        return answer({"object": "list", "data": shown, "has_more": len(found) > limit})

    async def messages(self, request: web.Request) -> web.Response:
        owner, session = self._found(request, Act.READ)
        line = self._rules.line(session.id, Surface.CHAT)
        stored = self._agent.store.messages(owner, line, session.epoch)
        return answer({"object": "list", "data": stored, "has_more": False})

    async def delete(self, request: web.Request) -> web.Response:
        """DELETE-01: the whole compression chain, once its running turn is over."""
        owner, session = self._found(request, Act.DELETE)
        rules, store = self._rules, self._agent.store
        async with self._agent.locks.hold(rules.chain_lock(owner, session.root, session.id)):
            self._found(request, Act.DELETE)
            gone = rules.deleted_with(session, store.family(owner, session.root))
            statements = [statement for trace, statement in ERASE if trace in rules.erased()]
            await store.execute(*((statement, (owner, ident)) for ident in gone for statement in statements))
        return answer({"id": session.id, "object": "session", "deleted": True})

    def _found(self, request: web.Request, act: Act) -> tuple[str, Session]:
        """ISOLATE-06: a foreign session is as unknown."""
        self._begin(request)
        ident = request.match_info["id"]
        store = self._agent.store
        owner = self._rules.whose(request[PRINCIPAL], ident, act, lambda: store.holder(ident))
        session = store.session(self._rules.owner(owner, ident), ident)
        if session is None:
            raise Refusal(Case.SESSION_NOT_FOUND, "There is no session with this id.")
        return self._rules.owner(owner, ident), session

    def _begin(self, request: web.Request) -> None:
        """MIGRATE-06: what a writer of the old shape wrote of a session is taken over first, or else it would outlive its deletion."""
        check_may_continue(request)
        self._agent.store.adopt()


def _shown(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "object": "session",
        "created_at": session.created,
        "parent_id": session.parent,
        "end_reason": session.end_reason,
    }
