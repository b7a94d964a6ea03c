"""Servers that meet nothing of the spec. Each gives the same answer to every request. Start one with `python hostile.py NAME [PORT]`."""

import asyncio
import json
import secrets
import sys
import time

from aiohttp import web

HEADER = "X-Hermes-Session-Id"


def completion(identity: str, text: str = "Hello.") -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": f"chatcmpl-{identity}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def response(identity: str, text: str = "Hello.") -> dict[str, object]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": f"resp_{identity}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": "m",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


async def valid(request: web.Request, identity: str, headers: dict[str, str]) -> web.StreamResponse:
    """A valid OpenAI object for whatever was asked, plain or streamed."""
    body = await request.json() if request.can_read_body else {}
    wanted = response(identity) if request.path.startswith("/v1/responses") else completion(identity)
    if not body.get("stream"):
        return web.json_response(wanted, headers=headers)
    stream = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream"})
    await stream.prepare(request)
    chunks = [
        {
            **completion(identity),
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        for delta, reason in (({"role": "assistant", "content": "Hello."}, None), ({}, "stop"))
    ]
    events = (
        [{"type": "response.completed", "sequence_number": 0, "response": wanted}] if "output" in wanted else chunks
    )
    await stream.write("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n")
    return stream


async def random_ids(request: web.Request) -> web.StreamResponse:
    return await valid(request, secrets.token_hex(16), {HEADER: secrets.token_hex(16)})


async def constant_ids(request: web.Request) -> web.StreamResponse:
    return await valid(request, "constant", {HEADER: "constant"})


async def echoed_headers(request: web.Request) -> web.StreamResponse:
    kept = {name: value for name, value in request.headers.items() if name.lower().startswith("x-")}
    return await valid(request, "constant", kept)


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def dribble(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse(headers={"Content-Type": "application/json"})
    await stream.prepare(request)
    while True:
        await stream.write(b" ")
        await asyncio.sleep(0.05)


async def hang_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def fixed(status: int, body: str, content_type: str = "application/json"):
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body, content_type=content_type)

    return answer


ERROR = '{"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": null}}'
SERVERS = {
    "200 {}": fixed(200, "{}"),
    "200 []": fixed(200, "[]"),
    "200 null": fixed(200, "null"),
    "200 without a body": fixed(200, ""),
    "400": fixed(400, ERROR),
    "401": fixed(401, ERROR),
    "404": fixed(404, ERROR),
    "500": fixed(500, ERROR),
    "HTML": fixed(200, "<html><body>It works!</body></html>", "text/html"),
    "deep JSON": fixed(200, "[" * 100_000),
    "echoed headers": echoed_headers,
    "random ids": random_ids,
    "constant ids": constant_ids,
    "hangs": hang,
    "dribbles": dribble,
    "hangs up": hang_up,
}


async def main(name: str, port: str = "0") -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", SERVERS[name])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(port)).start()
    print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
