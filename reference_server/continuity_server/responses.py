"""POST, GET and DELETE /v1/responses: translates between response objects and turns, and decides nothing."""

import time
from typing import Any

from aiohttp import web

from continuity_server.agent import Agent
from continuity_server.body import LONGEST_NAME, expect, fingerprint, name_of, parsed, sampling
from continuity_server.continuity import Rules
from continuity_server.echo import Surface
from continuity_server.errors import Case, Refusal, invalid
from continuity_server.items import messages_of, output_of, tools_of
from continuity_server.records import StoredResponse
from continuity_server.request import PRINCIPAL, Caller, answer, check_may_continue, idempotency_key
from continuity_server.response_stream import ResponseStream
from continuity_server.settings import DEFAULT_MODEL
from continuity_server.sse import EventStream
from continuity_server.turn import Ask, Made, NoSink


class Responses:
    """The endpoints."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent = agent
        self._rules = rules

    async def post(self, request: web.Request) -> web.StreamResponse:
        ask = self._ask(request, parsed(await request.read()))
        if ask.stream:
            frame = response_object(ask, int(time.time()))
            return await ResponseStream(EventStream(request), self._rules, ask, frame).run(self._agent)
        outcome = await self._agent.turn(ask, NoSink())
        return answer(outcome.body, self._rules.answer_fields(outcome.told, Surface.RESPONSES, streamed=False))

    def _ask(self, request: web.Request, body: dict[str, Any]) -> Ask:
        caller = Caller.of(request, self._rules)
        slug, previous = slug_of(body), name_of(body, "previous_response_id")
        if slug is not None and previous is not None:
            message = "conversation and previous_response_id exclude each other. Send one of them."
            raise Refusal(Case.MUTUALLY_EXCLUSIVE, message, param="previous_response_id")
        if slug is not None or previous is not None:
            check_may_continue(request)
        created = int(time.time())
        ask = Ask(
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
            sampling=sampling(body),
            idempotency_key=idempotency_key(request),
            fingerprint=fingerprint(body),
        )
        return ask

    async def get(self, request: web.Request) -> web.Response:
        """SLUG-15: the stored response. ISOLATE-06: a foreign one is as unknown."""
        return answer(self._found(request).body)

    async def delete(self, request: web.Request) -> web.Response:
        """SLUG-15, -18: that response only; its slug goes on in the same session."""
        owner, ident = request[PRINCIPAL], self._found(request).id
        await self._agent.store.execute(
            ("DELETE FROM responses WHERE owner=? AND id=?", (owner, ident)),
            ("UPDATE conversations SET response_id=NULL WHERE owner=? AND response_id=?", (owner, ident)),
        )
        return answer({"id": ident, "object": "response", "deleted": True})

    def _found(self, request: web.Request) -> StoredResponse:
        check_may_continue(request)
        found = self._agent.store.response(request[PRINCIPAL], request.match_info["id"])
        if found is None:
            raise Refusal(
                Case.RESPONSE_NOT_FOUND, "There is no response with this id. It was never stored, or it is gone."
            )
        return found


def slug_of(body: dict[str, Any]) -> str | None:
    """SLUG-14: any non-empty string of up to 256 characters, or an object with such an `id`."""
    said = body.get("conversation")
    if said is None:
        return None
    slug = said.get("id") if isinstance(said, dict) else said
    if not isinstance(slug, str) or not slug or len(slug.strip()) > LONGEST_NAME:
        raise invalid(f"conversation is no text of 1 to {LONGEST_NAME} characters.", "conversation")
    return slug


def response_object(ask: Ask, created: int, made: Made | None = None) -> dict[str, Any]:
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


def _usage(made: Made) -> dict[str, Any]:
    usage = made.usage
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }
