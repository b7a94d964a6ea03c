"""POST /conformance/v1/…: what a conformance kit may do to this server. Off by default, loopback only, with a token of its own."""

import hmac
from typing import Any

from aiohttp import web

from continuity_server.http.body import expect
from continuity_server.http.request import PRINCIPAL, answer, json_body
from continuity_server.rules import Rules
from continuity_server.rules.compress import FORK, Session
from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.settings import Settings, is_loopback
from continuity_server.store.faults import Fault
from continuity_server.store.interface import AnyStore
from continuity_server.store.records import HistoryWrite, Write
from continuity_server.turn.commit import Committer
from continuity_server.turn.resolve import Resolver

JSON = dict[str, Any]


class ControlHandler:
    """The control API."""

    def __init__(
        self, settings: Settings, rules: Rules, store: AnyStore, resolver: Resolver, committer: Committer
    ) -> None:
        self._token = settings.controls or ""
        self._rules = rules
        self._store = store
        self._resolver = resolver
        self._committer = committer
        self._controls = {
            "evict": self._evict,
            "compress": self._compress,
            "fault": self._fault,
            "fork": self._fork,
            "link": self._link,
            "lineage": self._lineage,
        }

    async def post(self, request: web.Request) -> web.Response:
        """Answer 404 when it is off, when the token is wrong, and from afar: others do not learn that it exists."""
        control = self._controls.get(request.match_info["control"])
        if control is None or not self._has_token(request) or not is_loopback(request.remote or ""):
            raise Refusal(Case.NOT_FOUND, "There is nothing under this path.")
        return answer(await control(request[PRINCIPAL], await json_body(request, self._rules)))

    def _has_token(self, request: web.Request) -> bool:
        sent = request.headers.get("X-Conformance-Token", "").encode("utf-8", "surrogateescape")
        return bool(self._token) and hmac.compare_digest(self._token.encode(), sent)

    async def _evict(self, principal: str, body: JSON) -> JSON:
        """Remove a response as the cache does: its slug stays as it is."""
        response = _text(body, "response_id")
        await self._store.evict(principal, response)
        return {"evicted": response}

    async def _compress(self, principal: str, body: JSON) -> JSON:
        session = self._session(principal, body)
        tip = self._resolver.tip(session.owner, session.id) or session
        await self._store.mark_for_compression(session.owner, tip.id)
        return {"session_id": tip.id}

    async def _fault(self, principal: str, body: JSON) -> JSON:  # noqa: ARG002 - a store breaks for everybody
        try:
            fault = Fault(_text(body, "what"))
        except ValueError:
            raise invalid("what is read, write or lineage.", "what") from None
        on = bool(_given(body, "on", bool))
        self._store.faults.set(fault, on=on)
        return {"what": fault.value, "on": on}

    async def _fork(self, principal: str, body: JSON) -> JSON:
        """Copy a session as a child that is no compression (COMPRESS-05)."""
        session = self._session(principal, body)
        messages = self._store.messages(session.owner, session.id, session.epoch)
        ident = self._rules.minted("sess_")
        copy = HistoryWrite(ident, ident, tuple(messages), parent=session.id, kind=FORK)
        ended = self._committer.ended(session.id, kind=FORK)
        await self._store.commit(Write(session.owner, copy, ended=ended))
        return {"session_id": ident}

    async def _link(self, principal: str, body: JSON) -> JSON:
        session = self._session(principal, body)
        if "next" not in body:
            raise invalid("next is missing; null makes the session its own tip again.", "next")
        following = expect(body, "next", str)
        await self._store.link(session.owner, session.id, following)
        return {"session_id": session.id, "next": following}

    async def _lineage(self, principal: str, body: JSON) -> JSON:
        session = self._session(principal, body)
        family = self._store.family(session.owner, session.root)
        return {
            "session_id": session.id,
            "parent_id": session.parent,
            "end_reason": session.end_reason,
            "children": [one.id for one in family if one.parent == session.id],
        }

    def _session(self, principal: str, body: JSON) -> Session:
        session = self._resolver.find(principal, _text(body, "session_id"))
        if session is None:
            raise Refusal(Case.SESSION_NOT_FOUND, "There is no session with this id.")
        return session


def _text(body: JSON, name: str) -> str:
    return str(_given(body, name, str))


def _given(body: JSON, name: str, kind: type) -> object:
    value: object = expect(body, name, kind)
    if value is None:
        raise invalid(f"{name} is missing.", name)
    return value
