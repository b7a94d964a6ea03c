"""The server of the tutorial: chat completions that continue a session, in about 70 lines. It has one defect, which the tutorial finds and fixes."""
import argparse
import asyncio
import json
import secrets
import time
from collections import defaultdict

import aiohttp
from aiohttp import web

HEADER = "X-Hermes-Session-Id"
sessions: dict[str, list[dict]] = defaultdict(list)  # the history of each session, without system prompts
locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)


def is_system(message: dict) -> bool:
    return message["role"] in ("system", "developer")


def new_input(messages: list[dict]) -> list[dict]:
    """What this turn adds: the last user message, or the tool results at the end."""
    spoken = [each for each in messages if not is_system(each)]
    start = len(spoken) - 1
    while start > 0 and spoken[start]["role"] == spoken[start - 1]["role"] == "tool":
        start -= 1
    return spoken[start:]


async def chat(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    session = request.headers.get(HEADER, "").strip() or f"sess_{secrets.token_hex(16)}"
    async with locks[session]:  # one turn of a session at a time
        history = sessions[session]
        prompts = [each for each in body["messages"] if is_system(each)]
        added = [each for each in body["messages"] if not is_system(each)]
        answer = await ask_model(request.app, {**body, "stream": False, "messages": prompts + history + added})
        message = answer["choices"][0]["message"]
        history += [*added, message]
    return await send(request, session, message, streamed=body.get("stream") is True)


async def ask_model(app: web.Application, body: dict) -> dict:
    async with aiohttp.ClientSession() as client, client.post(f"{app['model']}/chat/completions", json=body) as answer:
        answer.raise_for_status()
        return await answer.json()


async def send(request: web.Request, session: str, message: dict, streamed: bool) -> web.StreamResponse:
    completion = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": "default"}
    if not streamed:
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({**completion, "object": "chat.completion", "choices": [choice]}, headers={HEADER: session})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", HEADER: session})
    await response.prepare(request)
    for delta, reason in ((message, None), ({}, "stop")):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        chunk = {**completion, "object": "chat.completion.chunk", "choices": [choice]}
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


async def health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, default=8080)
    arguments.add_argument("--model", default="http://127.0.0.1:9100/v1", help="an OpenAI-compatible model")
    options = arguments.parse_args()
    app = web.Application()
    app["model"] = options.model
    app.add_routes([web.post("/v1/chat/completions", chat), web.get("/health", health)])
    web.run_app(app, host="127.0.0.1", port=options.port, print=None)
