"""POST, GET and DELETE /v1/responses: translates between response objects and turns, and decides nothing."""

import time
from typing import Any

from aiohttp import web

from continuity_server.http.body import expect, fingerprint, model_of, name_of, sampling
from continuity_server.http.items import messages_of, output_of, tools_of
from continuity_server.http.request import PRINCIPAL, Access, answer, idempotency_key, json_body
from continuity_server.http.response_events import ResponseEvents
from continuity_server.http.sse import EventStream
from continuity_server.rules import Rules
from continuity_server.rules.echo import Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.store.interface import AnyStore
from continuity_server.turn.agent import Agent
from continuity_server.turn.types import NoSink, Outcome, TurnOutput, TurnRequest


class ResponsesHandler:
    """The endpoints."""

    def __init__(
        self, rules: Rules, access: Access, agent: Agent, store: AnyStore, events: type[ResponseEvents]
    ) -> None:
        self._rules = rules
        self._access = access
        self._agent = agent
        self._store = store
        self._events = events

    async def post(self, request: web.Request) -> web.StreamResponse:
        turn = self._turn_request(request, await json_body(request, self._rules))
        if turn.stream:
            frame = response_object(turn, int(time.time()))
            return await self._events(EventStream(request), self._rules, turn, frame).run(self._agent)
        return self._answered(await self._agent.turn(turn, NoSink()))

    def _answered(self, outcome: Outcome) -> web.Response:
        return answer(outcome.body, self._rules.answer_fields(outcome.session_info))

    def _turn_request(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        caller = self._access.caller(request)
        conversation, previous = body.get("conversation"), name_of(body, "previous_response_id")
        slug = self._rules.checked_slug(conversation) if conversation is not None else None
        self._rules.check_one_of(slug, previous)
        if slug is not None or previous is not None:
            self._access.check_may_continue()
        created, key = int(time.time()), idempotency_key(request)
        turn = TurnRequest(
            surface=Surface.RESPONSES,
            principal=caller.principal,
            messages=messages_of(body),
            shape=lambda output, info: self._rules.with_session(response_object(turn, created, output), info),
            answer_id=self._rules.minted("resp_"),
            model=model_of(body),
            body=body,
            header=caller.session,
            slug=slug,
            previous=previous,
            store=expect(body, "store", bool, default=True),
            stream=expect(body, "stream", bool, default=False),
            tools=tools_of(body),
            sampling=sampling(body, self._rules),
            idempotency_key=key,
            fingerprint=fingerprint(body, key),
        )
        return turn

    async def get(self, request: web.Request) -> web.Response:
        """SLUG-15: the stored response."""
        body = self._response(request)
        await self._store.touch(request[PRINCIPAL], body["id"])
        return answer(body)

    async def delete(self, request: web.Request) -> web.Response:
        """SLUG-15, -18: that response only; its slug goes on in the same session."""
        await self._store.backfill()
        body = self._response(request)
        await self._store.delete_response(request[PRINCIPAL], body["id"])
        return answer({"id": body["id"], "object": "response", "deleted": True})

    def _response(self, request: web.Request) -> dict[str, Any]:
        """ISOLATE-06: the response of another principal is unknown."""
        self._access.check_may_continue()
        response = self._store.response(request[PRINCIPAL], request.match_info["id"])
        if response is None or response.body is None:
            raise Refusal(
                Case.RESPONSE_NOT_FOUND, "There is no response with this id. It was never stored, or it is gone."
            )
        return response.body


def response_object(request: TurnRequest, created: int, output: TurnOutput | None = None) -> dict[str, Any]:
    """ECHO-09: a response as an unmodified OpenAI client reads it; without an output it is in progress."""
    body, cut = request.body, output is not None and output.cut
    return {
        "id": request.answer_id,
        "object": "response",
        "created_at": created,
        "status": "incomplete" if cut else "completed" if output else "in_progress",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "model": request.model,
        "output": output_of(output, request.answer_id) if output else [],
        "parallel_tool_calls": True,
        "previous_response_id": request.previous,
        "conversation": {"id": request.slug} if request.slug is not None else None,
        "store": request.store,
        "temperature": body.get("temperature"),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": _usage(output) if output else None,
    }


def _usage(output: TurnOutput) -> dict[str, Any]:
    usage = output.usage
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }
