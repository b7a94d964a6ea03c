"""POST /conformance/v1/…: what a conformance kit may do to this server. Off by default, loopback only, with a token of its own."""

import hmac
from typing import Any

from aiohttp import web

from continuity_server.http.body import expect
from continuity_server.http.request import PRINCIPAL, SETTINGS, answer, json_body
from continuity_server.rules import Rules
from continuity_server.rules.compress import COMPRESSION, FORK, Session
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.settings import is_loopback
from continuity_server.store.faults import Fault
from continuity_server.store.records import HistoryWrite, Write
from continuity_server.turn.agent import Agent

JSON = dict[str, Any]


class ControlHandler:
    """The control API."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent = agent
        self._rules = rules
        self._controls = {
            "evict": self._evict,
            "compress": self._compress,
            "fault": self._fault,
            "fork": self._fork,
            "link": self._link,
            "lineage": self._lineage,
        }

    async def post(self, request: web.Request) -> web.Response:
        """404 when it is off, when the token is wrong, and from afar: who may not use it does not learn that it is there."""
        control = self._controls.get(request.match_info["control"])
        token = request.app[SETTINGS].controls or ""
        sent = request.headers.get("X-Conformance-Token", "")
        known = bool(token) and hmac.compare_digest(token.encode(), sent.encode("utf-8", "surrogateescape"))
        if control is None or not known or not is_loopback(request.remote or ""):
            raise Refusal(Case.NOT_FOUND, "There is nothing under this path.")
        return answer(await control(request[PRINCIPAL], await json_body(request, self._rules)))

    async def _evict(self, principal: str, body: JSON) -> JSON:
        """As the cache would: the response goes, its slug stays untouched."""
        await self._agent.store.execute(
            ("DELETE FROM responses WHERE owner=? AND response_id=?", (principal, _text(body, "response_id")))
        )
        return {"evicted": body["response_id"]}

    async def _compress(self, principal: str, body: JSON) -> JSON:
        owner, session = self._session(principal, body)
        tip = self._agent.resolver.tip(owner, session.id) or session
        await self._agent.store.execute(("UPDATE sessions SET compress_next=1 WHERE owner=? AND id=?", (owner, tip.id)))
        return {"session_id": tip.id}

    async def _fault(self, principal: str, body: JSON) -> JSON:  # noqa: ARG002 - a store breaks for everybody
        try:
            fault = Fault(_text(body, "what"))
        except ValueError:
            raise invalid("what is read, write or lineage.", "what") from None
        on = bool(_given(body, "on", bool))
        self._agent.store.faults.set(fault, on=on)
        return {"what": fault.value, "on": on}

    async def _fork(self, principal: str, body: JSON) -> JSON:
        """Copy a session as a child that is no compression (COMPRESS-05)."""
        owner, session = self._session(principal, body)
        stored = self._agent.store.messages(owner, self._rules.line(session.id, Surface.CHAT), session.epoch)
        ident = self._rules.minted("sess_")
        line = self._rules.line(ident, Surface.CHAT)
        copy = HistoryWrite(ident, ident, line, tuple(stored), parent=session.id, kind=FORK)
        await self._agent.store.commit(Write(owner, copy, ended=self._agent.keeper.ended(session.id, kind=FORK)))
        return {"session_id": ident}

    async def _link(self, principal: str, body: JSON) -> JSON:
        owner, session = self._session(principal, body)
        if "next" not in body:
            raise invalid("next is missing; null makes the session its own tip again.", "next")
        following = expect(body, "next", str)
        statement = "UPDATE sessions SET next=?, end_reason=? WHERE owner=? AND id=?"
        reason = COMPRESSION if following is not None else None
        await self._agent.store.execute((statement, (following, reason, owner, session.id)))
        return {"session_id": session.id, "next": following}

    async def _lineage(self, principal: str, body: JSON) -> JSON:
        owner, session = self._session(principal, body)
        family = self._agent.store.family(owner, session.root)
        return {
            "session_id": session.id,
            "parent_id": session.parent,
            "end_reason": session.end_reason,
            "children": [one.id for one in family if one.parent == session.id],
        }

    def _session(self, principal: str, body: JSON) -> tuple[str, Session]:
        ident = _text(body, "session_id")
        owner = self._rules.owner(principal, ident)
        session = self._agent.store.session(owner, ident)
        if session is None:
            raise Refusal(Case.SESSION_NOT_FOUND, "There is no session with this id.")
        return owner, session


def _text(body: JSON, name: str) -> str:
    return str(_given(body, name, str))


def _given(body: JSON, name: str, kind: type) -> object:
    value: object = expect(body, name, kind)
    if value is None:
        raise invalid(f"{name} is missing.", name)
    return value
