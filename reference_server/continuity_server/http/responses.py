"""POST, GET and DELETE /v1/responses: translates between response objects and turns, and decides nothing."""

import time
from typing import Any, Final

from aiohttp import web

from continuity_server.http.body import expect, fingerprint, name_of, sampling
from continuity_server.http.items import messages_of, output_of, tools_of
from continuity_server.http.request import PRINCIPAL, Caller, answer, check_may_continue, idempotency_key, json_body
from continuity_server.http.response_events import ResponseEvents
from continuity_server.http.sse import EventStream
from continuity_server.rules import Rules
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.isolate import Act
from continuity_server.rules.slug import Part
from continuity_server.settings import DEFAULT_MODEL
from continuity_server.turn.agent import Agent
from continuity_server.turn.types import NoSink, TurnOutput, TurnRequest

# What a deletion does for each part that it takes. A slug of the old shape learns its session before the response that told it is gone.
_DELETIONS: Final = (
    (Part.MAPPING, "DELETE FROM conversations WHERE owner=? AND response_id=?"),
    (Part.BODY, "UPDATE responses SET data='' WHERE owner=? AND response_id=?"),
    (Part.ROW, "DELETE FROM responses WHERE owner=? AND response_id=?"),
    (
        Part.BRANCHES,
        (
            "DELETE FROM messages WHERE owner=?1 AND session IN (SELECT b.id FROM sessions b JOIN responses r "
            "ON r.owner=b.owner AND r.session=b.parent WHERE b.owner=?1 AND b.kind='branch' AND r.response_id=?2)"
        ),
    ),
    (
        Part.ANCHORS,
        (
            "UPDATE responses SET upto=0 WHERE owner=?1 AND response_id<>?2 "
            "AND session=(SELECT session FROM responses WHERE owner=?1 AND response_id=?2)"
        ),
    ),
    (
        Part.RESPONSE,
        (
            "UPDATE conversations SET response_id=NULL, session=coalesce(session, (SELECT session FROM responses "
            "WHERE owner=?1 AND response_id=?2)) WHERE owner=?1 AND response_id=?2"
        ),
    ),
    (Part.RESPONSE, "DELETE FROM responses WHERE owner=? AND response_id=?"),
)


class ResponsesHandler:
    """The endpoints."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent = agent
        self._rules = rules

    async def post(self, request: web.Request) -> web.StreamResponse:
        ask = self._ask(request, await json_body(request, self._rules))
        if ask.stream:
            frame = response_object(ask, int(time.time()))
            return await ResponseEvents(EventStream(request), self._rules, ask, frame).run(self._agent)
        outcome = await self._agent.turn(ask, NoSink())
        return answer(outcome.body, self._rules.answer_fields(outcome.told, Surface.RESPONSES, streamed=False))

    def _ask(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        caller = Caller.of(request, self._rules)
        said, previous = body.get("conversation"), name_of(body, "previous_response_id")
        slug = self._rules.checked_slug(said) if said is not None else None
        self._rules.check_one_of(slug, previous)
        if slug is not None or previous is not None:
            check_may_continue(request)
        created = int(time.time())
        ask = TurnRequest(
            surface=Surface.RESPONSES,
            principal=caller.principal,
            messages=messages_of(body),
            shape=lambda made, told: self._rules.with_session(response_object(ask, created, made), told),
            answer_id=self._rules.minted("resp_"),
            model=name_of(body, "model") or DEFAULT_MODEL,
            body=body,
            header=caller.session,
            slug=slug,
            previous=previous,
            store=expect(body, "store", bool, default=True),
            stream=expect(body, "stream", bool, default=False),
            tools=tools_of(body),
            sampling=sampling(body, self._rules),
            idempotency_key=idempotency_key(request),
            fingerprint=fingerprint(body),
        )
        return ask

    async def get(self, request: web.Request) -> web.Response:
        """SLUG-15: the stored response. ISOLATE-06: a foreign one is as unknown."""
        owner, ident, body = self._found(request, Act.READ)
        await self._agent.store.touch(owner, ident)
        return answer(body)

    async def delete(self, request: web.Request) -> web.Response:
        """SLUG-15, -18: that response only; its slug goes on in the same session."""
        self._agent.store.adopt()
        owner, ident, _ = self._found(request, Act.DELETE)
        parts = self._rules.deleted()
        statements = [statement for part, statement in _DELETIONS if part in parts]
        await self._agent.store.execute(*((statement, (owner, ident)) for statement in statements))
        return answer({"id": ident, "object": "response", "deleted": True})

    def _found(self, request: web.Request, act: Act) -> tuple[str, str, dict[str, Any]]:
        check_may_continue(request)
        store, ident = self._agent.store, request.match_info["id"]
        owner = self._rules.whose(request[PRINCIPAL], ident, act, lambda: store.holder(ident))
        found = store.response(owner, ident)
        if found is None or found.body is None:
            raise Refusal(
                Case.RESPONSE_NOT_FOUND, "There is no response with this id. It was never stored, or it is gone."
            )
        return owner, found.id, found.body


def response_object(ask: TurnRequest, created: int, made: TurnOutput | None = None) -> dict[str, Any]:
    """ECHO-09: a response as an unmodified OpenAI client reads it; without `made` one that is in progress."""
    body = ask.body
    return {
        "id": ask.answer_id,
        "object": "response",
        "created_at": created,
        "status": "completed" if made else "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "model": ask.model,
        "output": output_of(made, ask.answer_id) if made else [],
        "parallel_tool_calls": True,
        "previous_response_id": ask.previous,
        "conversation": {"id": ask.slug} if ask.slug is not None else None,
        "store": ask.store,
        "temperature": body.get("temperature"),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": _usage(made) if made else None,
    }


def _usage(made: TurnOutput) -> dict[str, Any]:
    usage = made.usage
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }
