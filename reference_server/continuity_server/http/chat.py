"""POST /v1/chat/completions: translates between chat completions and turns, and decides nothing."""

import time
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from continuity_server.http.body import check_tools, expect, fingerprint, name_of, sampling
from continuity_server.http.request import Caller, answer, idempotency_key, json_body
from continuity_server.http.sse import EventStream
from continuity_server.rules import Rules
from continuity_server.rules.echo import Event, SessionInfo, Surface
from continuity_server.rules.error import Refusal, invalid
from continuity_server.rules.messages import check_message
from continuity_server.settings import DEFAULT_MODEL
from continuity_server.turn.agent import Agent
from continuity_server.turn.types import NoSink, Outcome, TurnOutput, TurnRequest


class ChatHandler:
    """The endpoint."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent = agent
        self._rules = rules

    async def post(self, request: web.Request) -> web.StreamResponse:
        ask = self._ask(request, await json_body(request, self._rules))
        if ask.stream:
            return await ChatStream(EventStream(request), self._rules, ask).run(self._agent)
        outcome = await self._agent.turn(ask, NoSink())
        return answer(outcome.body, self._rules.answer_fields(outcome.told, Surface.CHAT, streamed=False))

    def _ask(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        caller = Caller.of(request, self._rules)
        messages = expect(body, "messages", list)
        if not messages:
            raise invalid("messages is missing or empty. Send at least one message.", "messages")
        checked = [
            self._rules.readable(check_message(message, f"messages[{index}]")) for index, message in enumerate(messages)
        ]
        if not any(message["role"] == "user" for message in checked) and checked[-1]["role"] != "tool":
            raise invalid("messages has no user message. Send one.", "messages")
        model, ident = name_of(body, "model") or DEFAULT_MODEL, self._rules.minted("chatcmpl-")
        created = int(time.time())
        return TurnRequest(
            surface=Surface.CHAT,
            principal=caller.principal,
            messages=checked,
            shape=lambda made, told: self._rules.with_session(completion(ident, created, model, made), told),
            answer_id=ident,
            model=model,
            body=body,
            header=caller.session,
            stream=expect(body, "stream", bool, default=False),
            include_usage=expect(expect(body, "stream_options", dict, {}), "include_usage", bool, default=False),
            tools=check_tools(body),
            sampling=sampling(body, self._rules),
            idempotency_key=idempotency_key(request),
            fingerprint=fingerprint(body),
        )


def completion(ident: str, created: int, model: str, made: TurnOutput) -> dict[str, Any]:
    """ECHO-09: a chat.completion as an unmodified OpenAI client reads it."""
    calls = {"tool_calls": list(made.client_calls)} if made.client_calls else {}
    message = {"role": "assistant", "content": made.text or (None if calls else ""), "refusal": None, **calls}
    reason = "tool_calls" if calls else "stop"
    usage = made.usage
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


class ChatStream:
    """A streamed chat completion. STREAM-01: one id in all chunks; STREAM-02: it ends with `data: [DONE]`."""

    def __init__(self, stream: EventStream, rules: Rules, ask: TurnRequest) -> None:
        self._stream = stream
        self._rules = rules
        self._ask = ask
        self._frame = {
            "id": ask.answer_id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": ask.model,
        }
        self._sent = 0

    async def run(self, agent: Agent) -> web.StreamResponse:
        try:
            await self._finish(await agent.turn(self._ask, self))
        except Refusal as refusal:
            if not self._stream.opened:
                raise
            # Settled: after the first event a failure is an event, and then the end.
            await self._send_all(self._rules.failed_end([(None, self._rules.error_body(refusal)), None]))
        return self._stream.response

    @property
    def gone(self) -> bool:
        return self._stream.gone

    async def text(self, told: SessionInfo, delta: str) -> None:
        await self._open(told)
        self._sent += len(delta)
        await self._stream.send(self._chunk({"content": delta}))

    async def _open(self, told: SessionInfo) -> None:
        if not self._stream.opened:
            await self._stream.open(self._rules.answer_fields(told, Surface.CHAT, streamed=True))
            await self._stream.send(self._chunk({"role": "assistant", "content": ""}))

    async def _finish(self, outcome: Outcome) -> None:
        """COMPRESS-07: the chunk with the finish_reason carries `session`."""
        body = outcome.body
        if outcome.replayed:
            self._frame = {**self._frame, "id": body["id"], "created": body["created"]}
        choice = body["choices"][0]
        await self._open(outcome.told)
        if rest := (choice["message"]["content"] or "")[self._sent :]:
            await self._stream.send(self._chunk({"content": rest}))
        if calls := choice["message"].get("tool_calls"):
            numbered = [{"index": index, **call} for index, call in enumerate(calls)]
            await self._stream.send(self._chunk({"tool_calls": numbered}))
        finish = self._chunk({}, choice["finish_reason"])
        usage = [(None, self._framed([], usage=body["usage"]))] if self._ask.include_usage else []
        await self._send_all(self._rules.chat_end([*self._rules.last_chunks(finish, _session(body)), *usage]))

    async def _send_all(self, events: Sequence[Event | None]) -> None:
        for event in events:
            await (self._stream.send(event[1], event[0]) if event is not None else self._stream.done())

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return self._framed([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}])

    def _framed(self, choices: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        ident = self._rules.stream_id(str(self._frame["id"]), "chunk")
        return {**self._frame, "id": ident, "choices": choices, **more}


def _session(body: dict[str, Any]) -> dict[str, Any]:
    return {"session": body["session"]} if "session" in body else {}
