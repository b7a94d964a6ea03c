"""A server that keeps conversations in memory and demands what some real servers demand.

`python demanding.py PORT MODEL_URL [DEMAND …]` starts it. The demands: `uuid` (session ids and slugs are UUIDs, else 422), `agent` (every turn has the body field
`agent_id`), `no-model` (a turn with `model` is refused), `conversation_id` (the name of `conversation`), `users` (the header X-User-Id says who it is, as a proxy
sets it), `base` (the API is under /api), `header` (a header that is empty is refused), `chat-header` (the header is refused on /v1/responses), `made` (slugs are texts that POST /v1/conversations made, for an agent). Who sends no session id gets a new UUID.
"""

import asyncio
import json
import os
import sys
import uuid
from collections import defaultdict

import aiohttp
from aiohttp import web
from hostile import completion, response
from responses_only import Messages, input_messages

HEADER = "X-Chat-Id"


class RefusedError(Exception):
    """The request does not meet a demand. The first argument is the status."""


class Demanding:
    """Conversations by their owner and their id, and the owners of responses."""

    def __init__(self, model: str, demands: frozenset[str]) -> None:
        self._model = model
        self._demands = demands
        self._histories: dict[tuple[str, str], Messages] = defaultdict(list)
        self._responses: dict[tuple[str, object], tuple[str, Messages]] = {}
        self._turns: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._made: set[str] = set()

    async def health(self, _: web.Request) -> web.Response:
        return web.json_response({"environment": dict(os.environ)})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._checked(request)
        session = request.headers.get(HEADER) or str(uuid.uuid4())
        said = [{"role": "user", "content": json.dumps(body.get("messages"))}]
        answer = await self._turn(request, session, said)
        return await _send(request, completion(uuid.uuid4().hex, answer), session, stream=body.get("stream") is True)

    async def converse(self, request: web.Request) -> web.Response:
        """Make a slug."""
        await self._checked(request)
        made = str(uuid.uuid4())
        self._made.add(made)
        return web.json_response({"id": made, "object": "conversation"})

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """A turn of a slug, of the session of the previous response, or of a branch of it."""
        body = await self._checked(request)
        if "chat-header" in self._demands and HEADER in request.headers:
            raise RefusedError(400, "the header names sessions on chat only")
        slug = body.get("conversation_id" if "conversation_id" in self._demands else "conversation")
        if "made" in self._demands and slug is not None and (not isinstance(slug, str) or slug not in self._made):
            raise RefusedError(404, "there is no such conversation")
        slug = slug.get("id") or "" if isinstance(slug, dict) else slug
        previous, user = body.get("previous_response_id"), self._user(request)
        if (previous and (user, previous) not in self._responses) or (previous and slug):
            raise RefusedError(400, "there is no such response")
        session = self._id(slug) if slug is not None else str(uuid.uuid4())
        if previous:
            last, history = self._responses[user, previous]
            session = last if self._histories[user, last] == history else session
            self._histories[user, session] = [*history]
        said = input_messages(body.get("input"))
        whole = response(
            uuid.uuid4().hex, await self._turn(request, session, said, store=body.get("store") is not False)
        )
        if body.get("store") is not False:
            self._responses[user, whole["id"]] = (session, [*self._histories[user, session]])
        return await _send(request, whole, session, stream=body.get("stream") is True)

    async def _checked(self, request: web.Request) -> dict[str, object]:
        body = parsed(await request.read())
        if "agent" in self._demands and body.get("agent_id") != "agent-7":
            raise RefusedError(400, "agent_id is missing")
        if "no-model" in self._demands and "model" in body:
            raise RefusedError(400, "model is not taken here")
        if request.headers.get(HEADER) or ("header" in self._demands and HEADER in request.headers):
            self._id(request.headers[HEADER])
        return body

    def _id(self, text: object) -> str:
        if not isinstance(text, str) or not text or len(text) > 256:
            raise RefusedError(400, "this is no id")
        try:
            return str(uuid.UUID(text)) if "uuid" in self._demands else text
        except ValueError:
            raise RefusedError(422, f"{text} is no UUID") from None

    def _user(self, request: web.Request) -> str:
        user = request.headers.get("X-User-Id", "") if "users" in self._demands else "somebody"
        if not user:
            raise RefusedError(401, "nobody says who this is")
        return user

    async def _turn(self, request: web.Request, session: str, said: Messages, *, store: bool = True) -> str:
        user = self._user(request)
        async with self._turns[user, session]:
            history = self._histories[user, session]
            asked = [*history, *said]
            url = f"{self._model}/chat/completions"
            async with aiohttp.ClientSession() as client, client.post(url, json={"messages": asked}) as got:
                if got.status != 200:
                    raise RefusedError(502, "the model failed")
                answer = (await got.json())["choices"][0]["message"]["content"]
            history[:] = [*asked, {"role": "assistant", "content": answer}] if store else history
        return str(answer)


def parsed(body: bytes) -> dict[str, object]:
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RefusedError(400, "this is no JSON object")
    return value


async def _send(request: web.Request, whole: dict[str, object], session: str, *, stream: bool) -> web.StreamResponse:
    if not stream:
        return web.json_response(whole, headers={HEADER: session})
    events = web.StreamResponse(headers={"Content-Type": "text/event-stream", HEADER: session})
    await events.prepare(request)
    text = whole["choices"][0]["message"]["content"] if "choices" in whole else ""
    chunk = {**whole, "object": "chat.completion.chunk"}
    parts = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    chunks = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in parts]
    for event in chunks if "choices" in whole else [{"type": "response.completed", "response": whole}]:
        await events.write(f"data: {json.dumps(event)}\n\n".encode())
    await events.write(b"data: [DONE]\n\n" if "choices" in whole else b"")
    return events


@web.middleware
async def refusals(request: web.Request, handler: object) -> web.StreamResponse:
    try:
        return await handler(request)  # type: ignore[operator, no-any-return]
    except RefusedError as refused:
        status, message = refused.args
        sys.stderr.write(f"refused with {status}: {message}\n")
        return web.json_response({"detail": message}, status=status)


def app(model: str, demands: frozenset[str]) -> web.Application:
    server = Demanding(model, demands)
    base = "/api" if "base" in demands else ""
    built = web.Application(middlewares=[refusals])
    turns = [
        web.post(f"{base}/v1/chat/completions", server.chat),
        web.post(f"{base}/v1/responses", server.respond),
        *([web.post(f"{base}/v1/conversations", server.converse)] if "made" in demands else []),
    ]
    built.add_routes([web.get("/health", server.health), *turns])
    return built


if __name__ == "__main__":
    demanding = app(sys.argv[2], frozenset(sys.argv[3:]))
    web.run_app(demanding, host="127.0.0.1", port=int(sys.argv[1]), print=None)
