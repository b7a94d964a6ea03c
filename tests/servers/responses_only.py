"""A server that keeps conversations on /v1/responses only: chains of responses and slugs, in memory. It has no chat and names no session.

`python responses_only.py PORT MODEL_URL` starts it.
"""

import asyncio
import json
import secrets
import sys
from collections import defaultdict

import aiohttp
from aiohttp import web
from hostile import response

Messages = list[dict[str, str]]


def input_messages(said: object) -> Messages:
    """The messages of an `input`: a text, or a list of items."""
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    items = said if isinstance(said, list) else []
    return [{"role": str(item.get("role")), "content": item.get("content")} for item in items]


class ResponsesOnly:
    """Everything that it stores is whole turns: what the model saw, and its answer."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._histories: dict[str, Messages] = {}
        self._slugs: dict[str, str] = {}
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        slug = body.get("conversation")
        async with self._turns[slug] if slug else asyncio.Lock():
            previous = self._slugs.get(slug) if slug else body.get("previous_response_id")
            if previous is not None and previous not in self._histories:
                return web.json_response({"error": {"message": "There is no such response."}}, status=404)
            asked = [*self._histories.get(previous, []), *input_messages(body["input"])]
            answer = await self._ask(asked)
            if answer is None:
                return web.json_response({"error": {"message": "The model failed."}}, status=502)
            whole = response(secrets.token_hex(16), answer)
            if body.get("store") is not False:
                self._histories[str(whole["id"])] = [*asked, {"role": "assistant", "content": answer}]
                self._slugs.update({slug: str(whole["id"])} if slug else {})
        return await _send(request, whole, stream=body.get("stream") is True)

    async def _ask(self, messages: Messages) -> str | None:
        asked = {"model": "m", "messages": messages}
        url = f"{self._model}/chat/completions"
        async with aiohttp.ClientSession() as client, client.post(url, json=asked) as got:
            return (await got.json())["choices"][0]["message"]["content"] if got.status == 200 else None


async def _send(request: web.Request, whole: dict[str, object], *, stream: bool) -> web.StreamResponse:
    if not stream:
        return web.json_response(whole)
    events = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await events.prepare(request)
    started = {**whole, "status": "in_progress", "output": []}
    for event in (
        {"type": "response.created", "response": started},
        {"type": "response.completed", "response": whole},
    ):
        await events.write(f"data: {json.dumps(event)}\n\n".encode())
    return events


def app(server: ResponsesOnly) -> web.Application:
    built = web.Application()
    built.add_routes([web.get("/health", server.health), web.post("/v1/responses", server.respond)])
    return built


if __name__ == "__main__":
    web.run_app(app(ResponsesOnly(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), print=None)
