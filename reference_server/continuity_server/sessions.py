"""GET and DELETE /v1/sessions…: what is stored, as it is stored."""

from typing import Any, Final

from aiohttp import web

from continuity_server.agent import Agent
from continuity_server.continuity import Rules
from continuity_server.echo import Surface
from continuity_server.errors import Case, Refusal, invalid
from continuity_server.lineage import Session
from continuity_server.request import PRINCIPAL, answer, check_may_continue
from continuity_server.schema import DELETE_CHAIN

_LONGEST_PAGE: Final = 100


class Sessions:
    """The endpoints. An id names that one session here: a stale parent shows itself, not its tip (COMPRESS-10)."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent = agent
        self._rules = rules

    async def get(self, request: web.Request) -> web.Response:
        owner, session = self._found(request)
        tip = self._agent.resolver.tip(owner, session.id) or session
        return answer(
            {**_shown(session), "tip_id": tip.id, "conversation": self._agent.store.slug_of(owner, session.root)}
        )

    async def list(self, request: web.Request) -> web.Response:
        """ISOLATE-06: the principal's own sessions, the newest first."""
        check_may_continue(request)
        limit = _limit(request.query.get("limit", "20"))
        found = self._agent.store.sessions(request[PRINCIPAL], request.query.get("after"), limit + 1)
        shown = [_shown(session) for session in found[:limit]]
        return answer({"object": "list", "data": shown, "has_more": len(found) > limit})

    async def messages(self, request: web.Request) -> web.Response:
        owner, session = self._found(request)
        line = self._rules.line(session.id, Surface.CHAT)
        stored = self._agent.store.messages(owner, line, session.epoch)
        return answer({"object": "list", "data": stored, "has_more": False})

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


def _shown(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "object": "session",
        "created_at": session.created,
        "parent_id": session.parent,
        "end_reason": session.end_reason,
    }


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _LONGEST_PAGE:
        raise invalid(f"limit is no number from 1 to {_LONGEST_PAGE}.", "limit")
    return int(text)
