"""GET and DELETE /v1/sessions…: what is stored, as it is stored."""

from typing import Any, Final

from aiohttp import web

from continuity_server.http.request import PRINCIPAL, answer
from continuity_server.http.stored import StoredHandler
from continuity_server.rules.compress import Session
from continuity_server.rules.echo import is_id
from continuity_server.rules.error import Case, Refusal, invalid

_LONGEST_NUMBER: Final = 20
"""Digits of a number that is read. What is longer is too large, whatever follows."""


class SessionsHandler(StoredHandler):
    """The endpoints. An id names that one session here: a compressed parent shows itself, not its tip (COMPRESS-10)."""

    async def get(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        tip = self._resolver.tip(session.owner, session.id) or session
        slug = self._store.slug_of(session.owner, session.root)
        return answer({**_as_json(session), "tip_id": tip.id, "conversation": slug})

    async def list(self, request: web.Request) -> web.Response:
        """ISOLATE-06: the principal's own sessions, the newest first."""
        await self._prepare()
        limit = self._rules.page_limit(request.query.get("limit", "20")[:_LONGEST_NUMBER])
        after = request.query.get("after")
        if after is not None and not is_id(after):
            raise invalid("after is no id of a session.", "after")
        sessions = self._store.page_of_sessions(request[PRINCIPAL], after, limit + 1)
        page = [_as_json(session) for session in sessions[:limit]]
        return answer({"object": "list", "data": page, "has_more": len(sessions) > limit})

    async def messages(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        stored = self._store.messages(session.owner, session.id, session.epoch)
        # A client may leave out the content of an assistant message with tool calls. Here each message has one.
        messages = [{"content": None, **message} for message in stored]
        return answer({"object": "list", "data": messages, "has_more": False})

    async def delete(self, request: web.Request) -> web.Response:
        """DELETE-01: the whole compression chain, once its running turn is over."""
        session = await self._session(request)
        async with self._locks.chain(session.owner, session.root):
            session = await self._session(request)
            await self._delete_environment(session)
            await self._store.delete_sessions(session.owner, self._deleted_with(session))
        return answer({"id": session.id, "object": "session", "deleted": True})

    async def _session(self, request: web.Request) -> Session:
        """ISOLATE-06: the session of another principal is unknown."""
        await self._prepare()
        session = self._resolver.find(request[PRINCIPAL], request.match_info["id"])
        if session is None:
            raise Refusal(Case.SESSION_NOT_FOUND, "There is no session with this id.")
        return session

    async def _prepare(self) -> None:
        """MIGRATE-06: take over what a program with the old schema wrote, or else it would outlive the deletion of its session."""
        self._access.check_may_continue()
        await self._store.backfill()


def _as_json(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "object": "session",
        "created_at": session.created,
        "parent_id": session.parent,
        "end_reason": session.end_reason,
    }
