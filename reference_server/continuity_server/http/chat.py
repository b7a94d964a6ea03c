"""POST /v1/chat/completions: translates between chat completions and turns, and decides nothing."""

import time
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from continuity_server.http.body import check_tools, expect, fingerprint, model_of, sampling
from continuity_server.http.request import Access, answer, idempotency_key, json_body
from continuity_server.http.sse import EventStream
from continuity_server.http.turn_stream import TurnStream
from continuity_server.rules import Rules
from continuity_server.rules.echo import SessionInfo, Surface
from continuity_server.rules.error import Refusal, invalid
from continuity_server.rules.messages import Message, check_message
from continuity_server.rules.stream import DONE, Event
from continuity_server.turn.agent import Agent
from continuity_server.turn.types import NoSink, Outcome, TurnOutput, TurnRequest


class ChatStream(TurnStream):
    """A streamed chat completion. STREAM-01: one id in all chunks; STREAM-02: it ends with `data: [DONE]`."""

    def __init__(self, stream: EventStream, rules: Rules, request: TurnRequest) -> None:
        super().__init__(stream, rules, request)
        self._frame = {
            "id": request.answer_id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": request.model,
        }
        self._sent = 0

    async def text(self, session_info: SessionInfo, delta: str) -> None:
        await self._open(session_info)
        self._sent += len(delta)
        await self._stream.send(self._chunk({"content": delta}))

    async def _begin(self) -> None:
        await self._stream.send(self._chunk({"role": "assistant", "content": ""}))

    async def _finish(self, outcome: Outcome) -> None:
        """COMPRESS-07: the chunk with the finish_reason carries `session`."""
        body = outcome.body
        if outcome.replayed:
            self._frame = {**self._frame, "id": body["id"], "created": body["created"]}
        choice = body["choices"][0]
        await self._open(outcome.session_info)
        if rest := (choice["message"]["content"] or "")[self._sent :]:
            await self._stream.send(self._chunk({"content": rest}))
        if calls := choice["message"].get("tool_calls"):
            numbered = [{"index": index, **call} for index, call in enumerate(calls)]
            await self._stream.send(self._chunk({"tool_calls": numbered}))
        finish = self._chunk({}, choice["finish_reason"])
        usage = self._framed([], usage=body["usage"]) if self._request.include_usage else None
        await self._send_all(self._rules.chat_ending(finish, _session(body), usage))

    async def _fail(self, refusal: Refusal) -> None:
        """After the first event a failure is an event too, and then the end."""
        await self._send_all([(None, self._rules.error_body(refusal)), DONE])

    async def _send_all(self, events: Sequence[Event | None]) -> None:
        for event in events:
            await (self._stream.send(event[1], event[0]) if event is not DONE else self._stream.done())

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return self._framed([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}])

    def _framed(self, choices: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        return {**self._frame, "choices": choices, **more}


class ChatHandler:
    """The endpoint."""

    def __init__(self, rules: Rules, access: Access, agent: Agent, stream: type[ChatStream]) -> None:
        self._rules = rules
        self._access = access
        self._agent = agent
        self._stream = stream

    async def post(self, request: web.Request) -> web.StreamResponse:
        turn = self._turn_request(request, await json_body(request, self._rules))
        if turn.stream:
            return await self._stream(EventStream(request), self._rules, turn).run(self._agent)
        return self._answered(await self._agent.turn(turn, NoSink()))

    def _answered(self, outcome: Outcome) -> web.Response:
        return answer(outcome.body, self._rules.answer_fields(outcome.session_info))

    def _turn_request(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        caller = self._access.caller(request)
        messages = self._messages(body)
        model, ident = model_of(body), self._rules.minted("chatcmpl-")
        created, key = int(time.time()), idempotency_key(request)
        return TurnRequest(
            surface=Surface.CHAT,
            principal=caller.principal,
            messages=messages,
            shape=lambda output, info: self._rules.with_session(completion(ident, created, model, output), info),
            answer_id=ident,
            model=model,
            body=body,
            header=caller.session,
            stream=expect(body, "stream", bool, default=False),
            include_usage=expect(expect(body, "stream_options", dict, {}), "include_usage", bool, default=False),
            tools=check_tools(body),
            sampling=sampling(body, self._rules),
            idempotency_key=key,
            fingerprint=fingerprint(body, key),
        )

    def _messages(self, body: dict[str, Any]) -> list[Message]:
        messages = expect(body, "messages", list)
        if not messages:
            raise invalid("messages is missing or empty. Send at least one message.", "messages")
        checked = [check_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
        if not any(message["role"] == "user" for message in checked) and checked[-1]["role"] != "tool":
            raise invalid("messages has no user message. Send one.", "messages")
        return checked


def completion(ident: str, created: int, model: str, output: TurnOutput) -> dict[str, Any]:
    """ECHO-09: a chat.completion as an unmodified OpenAI client reads it."""
    calls = {"tool_calls": list(output.client_calls)} if output.client_calls else {}
    message = {"role": "assistant", "content": output.text or (None if calls else ""), "refusal": None, **calls}
    reason = "tool_calls" if calls else "length" if output.cut else "stop"
    usage = output.usage
    return {
        "id": ident,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.prompt + usage.completion,
        },
    }


def _session(body: dict[str, Any]) -> dict[str, Any]:
    return {"session": body["session"]} if "session" in body else {}
